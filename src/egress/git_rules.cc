#include "egress/git_rules.h"

#include <algorithm>
#include <vector>

#include "egress/codes.h"
#include "egress/git_body.h"

namespace firestop::egress {
namespace {

using http::Denial;
using http::RequestHead;
using manifest::EgressRule;

constexpr size_t kMostShown = 200;  // bytes of a path in a message

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// "*" within a component. Going back to the last star only is enough: linear in the product of both.
bool part_matches(std::string_view pattern, std::string_view part) {
  size_t at = 0, i = 0, star = std::string_view::npos, resume = 0;
  while (i < part.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (at < pattern.size() && pattern[at] == part[i]) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(at), pattern.end(),
                     [](char c) { return c == '*'; });
}

// Percent-escapes what a path does not hold as it is (RFC 3986, section 3.3).
std::string in_a_path(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string_view without_git(std::string_view repository) {
  if (repository.ends_with(".git")) repository.remove_suffix(4);
  return repository;
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, kMostShown));
  std::replace_if(
      out.begin(), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f; },
      '?');
  return out + (text.size() > kMostShown ? "..." : "");
}

std::string header_of(const RequestHead& head, std::string_view name) {
  const auto* header = http::find_header(head.headers, name);
  return header ? header->value : std::string();
}

// "" or "gzip"; nothing for other codings, or for several.
std::optional<std::string> coding_of(const RequestHead& head) {
  const auto count = std::count_if(head.headers.begin(), head.headers.end(), [](const http::Header& header) {
    return http::same_name(header.name, "content-encoding");
  });
  const std::string value = header_of(head, "content-encoding");
  if (count == 0) return "";
  if (count == 1 && (http::same_name(value, "gzip") || http::same_name(value, "x-gzip"))) return "gzip";
  return std::nullopt;
}

class Judge {
 public:
  Judge(const EgressRule::Git& git, const std::string& rule, const RequestHead& head)
      : git_(git), rule_(rule), head_(head), asked_(read_git_request(head)) {}

  GitVerdict verdict() const {
    if (!head_.upgrade.empty())
      return refused(codes::kGitService, "git needs no upgrade to " + shown(head_.upgrade));
    if (asked_.repository != in_a_path(without_git(git_.repository)))
      return refused(codes::kGitRepository, "the rule is for the repository " + git_.repository + ", and " +
                                                shown(head_.target) + " is not in it");
    switch (asked_.kind) {
      case GitAsked::Kind::kRefs:
        return refs();
      case GitAsked::Kind::kRpc:
        return rpc();
      case GitAsked::Kind::kLfs:
        return refused(codes::kGitService,
                       "a rule with git does not open Git LFS, whose answers hand out addresses and keys of "
                       "other places");
      case GitAsked::Kind::kOther:
        break;
    }
    return refused(codes::kGitService,
                   "a rule with git opens fetch and push over git's smart protocol, and "
                   "nothing else of " +
                       git_.repository);
  }

 private:
  GitVerdict refused(const char* code, const std::string& message, int status = 403) const {
    Denial denial;
    denial.status = status;
    denial.code = code;
    denial.rule = rule_;
    denial.message = message;
    denial.what_to_do = status == 400 ? "Use an ordinary git client."
                                      : "Ask the manifest's author for a rule that allows it.";
    answer_in_git(head_, denial);
    return {std::move(denial), nullptr};
  }

  std::optional<GitVerdict> not_granted() const {
    if (asked_.service == GitService::kFetch && !git_.fetch)
      return refused(codes::kGitService, "fetching from " + git_.repository + " is not allowed");
    if (asked_.service == GitService::kPush && git_.push.empty())
      return refused(codes::kGitService, "pushing to " + git_.repository + " is not allowed");
    return std::nullopt;
  }

  GitVerdict refs() const {
    if (head_.method != "GET" && head_.method != "HEAD")
      return refused(codes::kMethod, "git asks for refs with GET, not with " + shown(head_.method));
    if (head_.body.kind != http::Body::Kind::kNone)
      return refused(codes::kBadRequest, "git asks for refs without a body", 400);
    if (auto denied = not_granted()) return std::move(*denied);
    return {};
  }

  GitVerdict rpc() const {
    if (head_.method != "POST")
      return refused(codes::kMethod, "git calls a service with POST, not with " + shown(head_.method));
    if (auto denied = not_granted()) return std::move(*denied);
    const std::string type = "application/x-" + std::string(program_of(asked_.service)) + "-request";
    if (!http::same_name(header_of(head_, "content-type"), type))
      return refused(codes::kBadRequest, "the Content-Type is not " + type, 400);
    const auto coding = coding_of(head_);
    if (!coding) return refused(codes::kBadRequest, "a body for git is coded as gzip or not at all", 400);
    return {std::nullopt, asked_.service == GitService::kPush ? make_push_body(git_, rule_, *coding)
                                                              : make_fetch_body(rule_, *coding)};
  }

  const EgressRule::Git& git_;
  const std::string& rule_;
  const RequestHead& head_;
  GitAsked asked_;
};

}  // namespace

bool ref_matches(std::string_view pattern, std::string_view ref) {
  const auto patterns = parts_of(pattern), parts = parts_of(ref);
  // matched[i]: the patterns so far match the first i parts.
  std::vector<char> matched(parts.size() + 1, 0);
  matched[0] = 1;
  for (const std::string_view one : patterns) {
    std::vector<char> next(parts.size() + 1, 0);
    for (size_t i = 1; i <= parts.size(); ++i) {
      if (one == "**")
        next[i] = matched[i - 1] || next[i - 1];
      else
        next[i] = matched[i - 1] && part_matches(one, parts[i - 1]);
    }
    matched = std::move(next);
  }
  return matched.back() != 0;
}

GitAsked read_git_request(const RequestHead& head) {
  std::string_view path = head.target;
  std::optional<std::string_view> query;
  if (const size_t mark = path.find('?'); mark != std::string_view::npos) {
    query = path.substr(mark + 1);
    path = path.substr(0, mark);
  }
  if (!path.starts_with('/')) return {};
  path.remove_prefix(1);
  GitAsked asked;
  const auto ends_with = [&](std::string_view end) {
    if (path.size() <= end.size() || !path.ends_with(end)) return false;
    asked.repository = without_git(path.substr(0, path.size() - end.size()));
    return true;
  };
  for (const GitService service : {GitService::kFetch, GitService::kPush}) {
    const std::string program(program_of(service));
    asked.service = service;
    if (ends_with("/info/refs") && query == "service=" + program) {
      asked.kind = GitAsked::Kind::kRefs;
      return asked;
    }
    if (ends_with("/" + program) && !query) {
      asked.kind = GitAsked::Kind::kRpc;
      return asked;
    }
  }
  // Of what is refused anyhow: where its repository would end.
  for (const std::string_view inside :
       {"/info/lfs", "/objects/", "/info/", "/HEAD", "/git-upload-pack", "/git-receive-pack"}) {
    const size_t at = path.find(inside);
    if (at == std::string_view::npos) continue;
    asked.repository = without_git(path.substr(0, at));
    if (inside == "/info/lfs") asked.kind = GitAsked::Kind::kLfs;
    return asked;
  }
  asked.repository = path;
  return asked;
}

GitVerdict judge_git_request(const EgressRule::Git& git, const std::string& rule, const RequestHead& head) {
  return Judge(git, rule, head).verdict();
}

void answer_in_git(const RequestHead& head, Denial& denial) {
  if (denial.answer) return;
  const GitAsked asked = read_git_request(head);
  std::string text = "Firestop: " + denial.message;
  if (!denial.what_to_do.empty()) text += ". " + denial.what_to_do;
  text += " [" + denial.code + "]";
  if (asked.kind == GitAsked::Kind::kRefs && head.method == "GET")
    denial.answer = refuse_git_refs(asked.service, text);
  else if (asked.kind == GitAsked::Kind::kRpc && asked.service == GitService::kFetch && head.method == "POST")
    denial.answer = refuse_git_fetch(text);
}

}  // namespace firestop::egress
