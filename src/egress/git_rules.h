// What a rule with `git` lets through of git's smart HTTP protocol (gitprotocol-http(5)): one repository,
// fetching, and pushing to refs that match its patterns. Everything else of that repository is refused: the
// dumb protocol, LFS, web pages.
//
// A push is decided by its commands, before any byte of it leaves, and as a whole. Whether an update is a
// fast-forward cannot be seen here: it takes the server's history. The server knows
// (receive.denyNonFastForwards, protected branches), so a pattern is given for what may be overwritten.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "egress/git_answer.h"
#include "http/denial.h"
#include "http/filter.h"
#include "http/message.h"
#include "manifest/manifest.h"

namespace firestop::egress {

// Patterns of refs: "*" stands for any characters of a component, "**" for one or more components.
bool ref_matches(std::string_view pattern, std::string_view ref);

// What a request asks of git, by its head alone.
struct GitAsked {
  enum class Kind { kRefs, kRpc, kLfs, kOther };
  Kind kind = Kind::kOther;
  GitService service = GitService::kFetch;  // of kRefs and kRpc
  std::string_view repository;              // as the path has it, without "/" before and ".git" behind
};
GitAsked read_git_request(const http::RequestHead& head);

// The body of a permitted POST, on its way. Decides by its beginning.
class GitBody : public http::Filter {
 public:
  bool decides() const final { return true; }
  std::string detail() const override = 0;  // once decided; bounded
};

struct GitVerdict {
  std::optional<http::Denial> denial;
  std::unique_ptr<GitBody> body;  // null: there is none
};

// `rule` is its name, for denials: "egress[2]".
GitVerdict judge_git_request(const manifest::EgressRule::Git& git, const std::string& rule,
                             const http::RequestHead& head);

// Gives a denial of anything else (no rule, a credential that is not there) the form that git shows to its
// user, if the request is one of git's. Does nothing to others.
void answer_in_git(const http::RequestHead& head, http::Denial& denial);

}  // namespace firestop::egress
