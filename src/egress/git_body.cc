#include "egress/git_body.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "codec/pkt_line.h"
#include "credentials/inflate.h"
#include "egress/codes.h"
#include "manifest/cover.h"
#include "manifest/rules.h"
#include "manifest/words.h"

namespace firestop::egress {
namespace {

using http::Denial;
using manifest::EgressRule;

constexpr size_t kMostDetail = 900;     // bytes
constexpr size_t kMostNamed = 20;       // refs in a message
constexpr size_t kShortId = 12;         // hexadecimal digits
constexpr size_t kMostPatterns = 10;    // in a message
constexpr size_t kMostHeld = 2u << 20;  // bytes

Denial malformed(const std::string& rule, const std::string& what) {
  Denial denial;
  denial.status = 400;
  denial.code = codes::kBadRequest;
  denial.rule = rule;
  denial.message = what;
  denial.what_to_do = "Use an ordinary git client.";
  return denial;
}

// A body's bytes without their content coding.
class Plain {
 public:
  using Sink = std::function<Result<void>(std::string_view)>;

  explicit Plain(const std::string& coding) {
    if (!coding.empty()) inflate_ = credentials::Inflate::make(coding);
  }

  Result<void> feed(std::string_view bytes, const Sink& sink) {
    if (!inflate_) return sink(bytes);
    Result<void> outcome;
    TRY(inflate_->feed(bytes, [&](std::string_view piece) {
      if (outcome) outcome = sink(piece);
    }));
    return outcome;
  }
  size_t memory() const { return inflate_ ? inflate_->memory() : 0; }

 private:
  std::unique_ptr<credentials::Inflate> inflate_;
};

std::string patterns_of(const EgressRule::Git& git) {
  std::vector<std::string> some(git.push.begin(), git.push.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                         git.push.size(), kMostPatterns)));
  return manifest::join_words(some, " ") + (git.push.size() > some.size() ? " and others" : "");
}

const char* verb_of(GitUpdate::Kind kind) {
  switch (kind) {
    case GitUpdate::Kind::kCreate:
      return "created";
    case GitUpdate::Kind::kUpdate:
      return "updated";
    case GitUpdate::Kind::kDelete:
      return "deleted";
  }
  return "";
}

// What a rule says to a push, ref by ref.
class PushJudge {
 public:
  PushJudge(const EgressRule::Git& git, const GitPush& push) : git_(git), push_(push) {
    for (const auto& update : push.updates) reasons_.push_back(why_not(update));
    for (const auto& option : push.options)
      if (option_.empty() && !manifest::option_covered(git.options, option)) option_ = option;
  }

  bool allowed() const {
    return option_.empty() &&
           std::all_of(reasons_.begin(), reasons_.end(), [](const auto& reason) { return reason.empty(); });
  }

  Denial denial(const std::string& rule) const {
    Denial denial;
    denial.code = codes::kGitRef;
    denial.rule = rule;
    denial.message = "the push to " + git_.repository + " is refused as a whole: " + faults();
    denial.what_to_do =
        "Push only what the manifest allows (" + patterns_of(git_) + "), or ask its author for more.";
    denial.answer = refuse_git_push(push_, text(), refusals());
    return denial;
  }

 private:
  std::string why_not(const GitUpdate& update) const {
    if (!manifest::why_not_ref(update.ref).empty()) return "its name " + manifest::why_not_ref(update.ref);
    if (std::none_of(git_.push.begin(), git_.push.end(),
                     [&](const auto& pattern) { return ref_matches(pattern, update.ref); }))
      return "only " + patterns_of(git_) + " may be pushed";
    if (update.kind == GitUpdate::Kind::kDelete && !git_.deletes) return "may be pushed, but not deleted";
    return {};
  }

  // Everything that stands against it, in a sentence or two.
  std::string faults() const {
    std::string out;
    size_t named = 0, more = 0;
    for (size_t i = 0; i < reasons_.size(); ++i) {
      if (reasons_[i].empty()) continue;
      if (named == kMostNamed) {
        ++more;
        continue;
      }
      ++named;
      out += (out.empty() ? "" : "; ") + push_.updates[i].ref + " may not be " +
             verb_of(push_.updates[i].kind) + " (" + reasons_[i] + ")";
    }
    if (more > 0) out += "; and " + std::to_string(more) + " more";
    if (!option_.empty())
      out += (out.empty() ? "" : "; ") + std::string("the push option '") + option_ + "' is not allowed";
    return out;
  }

  // Also the refs that would be allowed are named, since nothing of the push goes out.
  std::vector<GitRefRefusal> refusals() const {
    std::vector<GitRefRefusal> out;
    for (size_t i = 0; i < reasons_.size(); ++i) {
      std::string reason = reasons_[i];
      if (reason.empty())
        reason = option_.empty() ? "not pushed, because another ref was refused"
                                 : "the push option '" + option_ + "' is not allowed";
      out.push_back({push_.updates[i].ref, "firestop: " + reason});
    }
    return out;
  }

  std::string text() const {
    std::string out = "Firestop: this push is refused as a whole, nothing of it has left the sandbox.\n";
    out += "This sandbox may push " + patterns_of(git_) + " in " + git_.repository;
    out += git_.deletes ? ", and delete there" : "";
    out += git_.options.empty() ? ", without push options.\n"
                                : ", with push options " + manifest::join_words(git_.options, " ") + ".\n";
    return out + "For anything else, ask whoever signs its manifest.";
  }

  const EgressRule::Git& git_;
  const GitPush& push_;
  std::vector<std::string> reasons_;  // of each update; empty: allowed
  std::string option_;                // the first that is not allowed
};

class PushBody : public GitBody {
 public:
  PushBody(EgressRule::Git git, std::string rule, const std::string& coding)
      : git_(std::move(git)), rule_(std::move(rule)), plain_(coding) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    if (state_ == State::kPassing) {
      out.append(bytes);
      return std::nullopt;
    }
    if (state_ == State::kRefused) return discard(bytes.size());
    held_.append(bytes);
    const auto read = plain_.feed(bytes, [this](std::string_view piece) -> Result<void> {
      return commands_.done() ? Result<void>() : commands_.feed(piece);
    });
    if (!read) return malformed(rule_, read.error().message);
    if (!commands_.done()) {
      // A coding may swell a short text: what is held has a bound of its own.
      if (held_.size() > kMostHeld)
        return malformed(rule_, "the push is malformed: more than 2 MiB before its commands end");
      return std::nullopt;
    }
    decide(out);
    return std::nullopt;
  }

  std::optional<Denial> finish(std::string& out) override {
    if (state_ == State::kRefused) return std::move(denial_);
    if (state_ == State::kPassing) return std::nullopt;
    if (!commands_.nothing())
      return malformed(rule_, "the push is malformed: it ends before its commands do");
    out.append(held_);
    state_ = State::kPassing;
    return std::nullopt;
  }

  // What was read of the commands is of a size with them.
  size_t held() const override { return 2 * held_.size() + plain_.memory(); }

  std::string detail() const override {
    const auto& updates = commands_.push().updates;
    if (updates.empty()) return "push: nothing";
    std::string out;
    for (size_t i = 0; i < updates.size(); ++i) {
      const auto& update = updates[i];
      std::string one = (i == 0 ? "push: " : ", ") + update.ref + " " + verb_of(update.kind);
      if (update.kind != GitUpdate::Kind::kDelete) one += " to " + update.new_id.substr(0, kShortId);
      if (out.size() + one.size() > kMostDetail)
        return out + ", and " + std::to_string(updates.size() - i) + " more";
      out += one;
    }
    return out;
  }

 private:
  enum class State { kReading, kPassing, kRefused };

  void decide(std::string& out) {
    const PushJudge judge(git_, commands_.push());
    if (judge.allowed()) {
      state_ = State::kPassing;
      out.append(held_);
    } else {
      state_ = State::kRefused;
      denial_ = judge.denial(rule_);
    }
    held_ = {};
  }

  std::optional<Denial> discard(size_t bytes) {
    discarded_ += bytes;
    return discarded_ > kMostDiscarded ? std::move(denial_) : std::nullopt;
  }

  EgressRule::Git git_;
  std::string rule_;
  Plain plain_;
  GitCommandReader commands_;
  State state_ = State::kReading;
  std::string held_;  // as it came, until it is decided
  std::optional<Denial> denial_;
  size_t discarded_ = 0;
};

// Requests of git-upload-pack: in version 2 a command each (gitprotocol-v2(5)), before it lists of what the
// client wants and has. Both only read; what would not, is refused.
class FetchBody : public GitBody {
 public:
  FetchBody(std::string rule, const std::string& coding) : rule_(std::move(rule)), plain_(coding) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    held_.append(bytes);
    const auto read = plain_.feed(bytes, [this](std::string_view piece) { return this->read(piece); });
    if (!read) return malformed(rule_, "the fetch is malformed: " + read.error().message);
    if (!first_) {
      out.append(held_);
      held_.clear();
    } else if (held_.size() > kMostHeld) {
      return malformed(rule_, "the fetch is malformed: it asks for nothing");
    }
    return std::nullopt;
  }

  std::optional<Denial> finish(std::string& out) override {
    if (!reader_.rest().empty()) return malformed(rule_, "the fetch is malformed: it ends within a line");
    out.append(held_);
    held_.clear();
    return std::nullopt;
  }

  size_t held() const override { return held_.size() + plain_.memory(); }
  std::string detail() const override { return "fetch"; }

 private:
  Result<void> read(std::string_view bytes) {
    decoded_ += bytes.size();
    if (decoded_ > kMostFetchRequest) return fail("git.fetch", "more than 64 MiB");
    reader_.feed(bytes);
    while (true) {
      TRY_ASSIGN(const auto line, reader_.next());
      if (!line) return {};
      if (line->kind == codec::PktLine::Kind::kData && first_ && !known(line->text()))
        return fail("git.fetch", "it asks for something else than reading");
      first_ = line->kind == codec::PktLine::Kind::kFlush;
    }
  }

  static bool known(std::string_view text) {
    constexpr std::string_view kCommand = "command=";
    constexpr std::string_view kCommands[] = {"ls-refs", "fetch", "object-info", "bundle-uri"};
    constexpr std::string_view kWords[] = {"want",         "have",       "shallow", "deepen",
                                           "deepen-since", "deepen-not", "filter",  "done"};
    if (text.starts_with(kCommand))
      return std::find(std::begin(kCommands), std::end(kCommands), text.substr(kCommand.size())) !=
             std::end(kCommands);
    return std::find(std::begin(kWords), std::end(kWords), text.substr(0, text.find(' '))) !=
           std::end(kWords);
  }

  std::string rule_;
  Plain plain_;
  codec::PktLineReader reader_;
  std::string held_;
  bool first_ = true;  // a section begins, whose first line is waited for
  size_t decoded_ = 0;
};

}  // namespace

std::unique_ptr<GitBody> make_push_body(const EgressRule::Git& git, const std::string& rule,
                                        const std::string& coding) {
  return std::make_unique<PushBody>(git, rule, coding);
}

std::unique_ptr<GitBody> make_fetch_body(const std::string& rule, const std::string& coding) {
  return std::make_unique<FetchBody>(rule, coding);
}

}  // namespace firestop::egress
