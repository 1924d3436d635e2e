#include "reconcile/reconcile.h"

#include <fnmatch.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>

#include "reconcile/mentions.h"
#include "story/paths.h"

namespace firestop::reconcile {
namespace {

constexpr size_t kMostShown = 400;  // bytes of a command line in a finding

std::string cut(std::string text) {
  if (text.size() <= kMostShown) return text;
  text.resize(kMostShown);
  return text + "...";
}

const story::Execution* last_exec(const story::Process& process) {
  return process.execs.empty() ? nullptr : &process.execs.back();
}

std::string command_of(const story::Process& process) {
  const story::Execution* exec = last_exec(process);
  if (!exec) return "(a copy of its parent)";
  return cut(exec->argv.empty() ? exec->file : story::quote_command(exec->argv));
}

std::string command_of(const Claim& claim) {
  return cut(claim.command.empty() ? story::quote_command(claim.argv) : claim.command);
}

std::optional<int> exit_of(const story::Process& process) {
  if (!process.ended) return {};
  if (WIFEXITED(process.status)) return WEXITSTATUS(process.status);
  if (WIFSIGNALED(process.status)) return 128 + WTERMSIG(process.status);
  return {};
}

RanCode code_of(const story::Script& script) {
  return {script.seq, script.how, script.path, script.interpreter, script.digest, script.note, script.size};
}

class Reconciler {
 public:
  Reconciler(const story::Story& story, const Trace& trace, const ReconcileOptions& options)
      : story_(story),
        trace_(trace),
        options_(options),
        matches_(match_claims(story, trace)),
        mentions_(story, trace, matches_, options.content) {}

  Account run() {
    account_.claims = trace_.claims.size();
    find_harness();
    walk();
    judge_code();
    judge_commands();
    judge_files();
    add_notes();
    collect();
    return std::move(account_);
  }

 private:
  enum class Place {
    kHarness,   // the declared command, and what leads from it to the claimed commands
    kClaimed,   // a claimed command, or below one
    kDeclared,  // a program of the image that a declared script ran before the agent began
    kExpected,  // what the operator said that the harness does by itself
    kUnsaid,    // none of these, or below one of them
  };

  // Everything between the declared command and a claimed one is the agent itself. The nearest parents of
  // claimed commands are its harness: what they run, the trace has to have.
  void find_harness() {
    const size_t count = story_.processes.size();
    place_.assign(count, Place::kUnsaid);
    finding_.assign(count, story::kNone);
    leads_.assign(count, false);
    runs_claims_.assign(count, false);
    for (size_t p = 0; p < count; ++p) {
      if (!matches_.is_match[p]) continue;
      size_t up = story_.processes[p].parent;
      if (up < count) runs_claims_[up] = true;
      for (; up < count && !leads_[up]; up = story_.processes[up].parent) leads_[up] = true;
    }
  }

  bool is_root(size_t p) const { return !story_.roots.empty() && story_.roots.front() == p; }

  void walk() {
    const size_t count = story_.processes.size();
    std::vector<size_t> todo(story_.roots.rbegin(), story_.roots.rend());
    std::vector<bool> seen(count, false);
    while (!todo.empty()) {
      const size_t p = todo.back();
      todo.pop_back();
      if (p >= count || seen[p]) continue;
      seen[p] = true;
      visit(p);
      const auto& children = story_.processes[p].children;
      todo.insert(todo.end(), children.rbegin(), children.rend());
    }
  }

  void visit(size_t p) {
    const story::Process& process = story_.processes[p];
    const size_t parent = process.parent;
    const bool has_parent = parent < story_.processes.size();
    if (matches_.claim_of[p] != story::kNone) {
      place_[p] = Place::kClaimed;
    } else if (has_parent && place_[parent] == Place::kUnsaid) {
      finding_[p] = finding_[parent];  // part of what its parent did
    } else if (has_parent && (place_[parent] == Place::kExpected || place_[parent] == Place::kDeclared)) {
      place_[p] = place_[parent];
    } else if (is_root(p) || leads_[p] || (process.execs.empty() && has_parent)) {
      place_[p] = Place::kHarness;
    } else if (is_expected(process)) {
      place_[p] = Place::kExpected;
      ++account_.expected;
    } else if (has_parent && launches(parent) && from_image(process)) {
      place_[p] = Place::kDeclared;
    } else {
      finding_[p] = add_process(p);
    }
  }

  // A declared script that starts the agent, or is all there is below the declared command; what it says it
  // runs was read with the manifest. Never the harness itself: what it runs, a model decided.
  bool launches(size_t p) const { return !runs_claims_[p] && leads_[p] && mentions_.runs_declared_script(p); }

  static bool from_image(const story::Process& process) {
    return std::all_of(process.execs.begin(), process.execs.end(),
                       [](const story::Execution& exec) { return exec.from_image; });
  }

  bool is_expected(const story::Process& process) const {
    if (!from_image(process)) return false;  // code of its own is never expected
    for (const story::Execution& exec : process.execs) {
      auto argv = exec.argv;
      if (!argv.empty()) argv[0] = argv[0].substr(argv[0].rfind('/') + 1);
      const std::string line = story::quote_command(argv);
      for (const auto& pattern : options_.expected)
        if (::fnmatch(pattern.c_str(), line.c_str(), 0) == 0) return true;
    }
    return false;
  }

  bool is_expected(const story::Script& script) const {
    return std::any_of(options_.expected.begin(), options_.expected.end(), [&script](const auto& pattern) {
      return pattern.starts_with('/') && ::fnmatch(pattern.c_str(), script.path.c_str(), 0) == 0;
    });
  }

  // Equal command lines are one finding.
  size_t add_process(size_t p) {
    const story::Process& process = story_.processes[p];
    const std::string what = command_of(process);
    const auto [known, added] = unsaid_.try_emplace(what, unmentioned_.size());
    if (!added) {
      ++unmentioned_[known->second].times;
      return known->second;
    }
    Finding finding{.kind = Finding::Kind::kNeverMentioned, .what = what};
    finding.process = p;
    if (!process.execs.empty()) finding.seq = process.execs.front().seq;
    finding.why = from_image(process)
                      ? "a program of the image that no call in the trace asked for"
                      : "a program that is not from the image, and that no call in the trace asked for";
    unmentioned_.push_back(std::move(finding));
    return known->second;
  }

  void judge_code() {
    for (const story::Script& script : story_.scripts) {
      const size_t p = script.process < story_.processes.size() ? script.process : story::kNone;
      const Place place = p == story::kNone ? Place::kUnsaid : place_[p];
      if (place == Place::kUnsaid) {
        add_code(p == story::kNone || finding_[p] == story::kNone ? code_finding(script, p) : finding_[p],
                 script);
      } else if (is_expected(script)) {
        ++account_.expected;
      } else if (place == Place::kClaimed) {
        const size_t claim = matches_.claim_of[p];
        if (!mentions_.claim_shows(claim, script)) add_code(claim_finding(claim, p), script);
      } else if (!mentions_.declared(script) && !mentions_.shown_anywhere(script) &&
                 !mentions_.made_of_claims(script)) {
        add_code(code_finding(script, p), script);
      }
    }
  }

  void add_code(size_t finding, const story::Script& script) {
    Finding& into = unmentioned_[finding];
    if (into.code.size() < kMostCode)
      into.code.push_back(code_of(script));
    else
      ++into.more_code;
    if (into.seq == 0) into.seq = script.seq;
  }

  size_t code_finding(const story::Script& script, size_t p) {
    const std::string name = script.path.empty() ? "code by " + script.how : script.path;
    const auto [known, added] = code_findings_.try_emplace(name, unmentioned_.size());
    if (!added) {
      ++unmentioned_[known->second].times;
      return known->second;
    }
    Finding finding{.kind = Finding::Kind::kNeverMentioned,
                    .what = cut(name),
                    .why = "code that is not from the image, and that no call in the trace shows"};
    finding.process = p;
    unmentioned_.push_back(std::move(finding));
    return known->second;
  }

  size_t claim_finding(size_t claim, size_t p) {
    const auto [known, added] = below_claim_.try_emplace(claim, unmentioned_.size());
    if (added) {
      Finding finding{.kind = Finding::Kind::kNeverMentioned,
                      .what = command_of(trace_.claims[claim]),
                      .why =
                          "below this command ran code that is not from the image, and that the call does "
                          "not name"};
      finding.process = p;
      finding.line = trace_.claims[claim].line;
      unmentioned_.push_back(std::move(finding));
    }
    return known->second;
  }

  void judge_commands() {
    for (size_t i = 0; i < trace_.claims.size(); ++i) {
      const Claim& claim = trace_.claims[i];
      const auto& match = matches_.claims[i];
      if (claim.kind != Claim::Kind::kCommand) continue;
      using State = Matches::State;
      if (match.state == State::kUnseen || match.state == State::kNoCommand) ++account_.unseen;
      if (match.state == State::kRan || match.state == State::kPartly) ++account_.ran;
      if (match.state == State::kNot || match.state == State::kPartly) {
        if (!claim.sure)
          ++account_.unsure;
        else
          never_ran(claim, match);
      }
      if (match.whole) compare_exit(claim, match.processes.front());
    }
  }

  void never_ran(const Claim& claim, const Matches::Match& match) {
    Finding finding{.kind = Finding::Kind::kNeverRan, .what = command_of(claim)};
    finding.line = claim.line;
    finding.why = match.state == Matches::State::kPartly ? "of it, no process ran " + cut(match.missing)
                                                         : "no process of the record is this command";
    never_ran_.push_back(std::move(finding));
  }

  void compare_exit(const Claim& claim, size_t p) {
    const auto recorded = exit_of(story_.processes[p]);
    if (!claim.exit || !recorded) return;
    // Some agents tell a signal as a negative number.
    const int claimed = *claim.exit < 0 ? 128 - *claim.exit : *claim.exit;
    if (claimed == *recorded) return;
    Finding finding{.kind = Finding::Kind::kOtherResult,
                    .what = command_of(claim),
                    .why = "the command ended with another status than the trace says"};
    finding.process = p;
    finding.line = claim.line;
    if (const auto& execs = story_.processes[p].execs; !execs.empty()) finding.seq = execs.front().seq;
    finding.claimed = "exit " + std::to_string(*claim.exit);
    finding.recorded = "exit " + std::to_string(*recorded);
    other_.push_back(std::move(finding));
  }

  // The last word of the trace on each file of the workspace, against the file as it was at the end.
  void judge_files() {
    std::map<std::string, size_t> last;
    for (size_t i = 0; i < trace_.claims.size(); ++i) {
      const Claim& claim = trace_.claims[i];
      if (claim.kind != Claim::Kind::kWrite && claim.kind != Claim::Kind::kDelete) continue;
      const std::string path = claim_path(claim);
      if (path.starts_with(std::string(story::kWorkspace) + "/"))
        last[path] = i;
      else
        ++account_.unseen;
    }
    std::map<std::string, std::vector<const story::FileChange*>, std::less<>> changes;
    for (const story::FileChange& change : story_.changes) {
      changes[story::recorded_path(change.path)].push_back(&change);
      if (!change.to.empty()) changes[story::recorded_path(change.to)].push_back(&change);
    }
    for (const auto& [path, end] : story_.ends) ends_[story::recorded_path(path)] = &end;
    for (const auto& [path, i] : last) judge_file(path, trace_.claims[i], changes[path]);
  }

  void judge_file(const std::string& path, const Claim& claim,
                  const std::vector<const story::FileChange*>& changes) {
    const bool deletes = claim.kind == Claim::Kind::kDelete;
    const auto found = ends_.find(path);
    const story::FileEnd* end = found == ends_.end() ? nullptr : found->second;
    if (!claim.sure) {
      ++account_.unsure;
      return;
    }
    if (changes.empty() && (!end || deletes)) {
      Finding finding{.kind = Finding::Kind::kNeverRan,
                      .what = (deletes ? "delete " : "write ") + path,
                      .why = deletes ? "nothing was done to the file" : "nothing was written to the file"};
      finding.line = claim.line;
      never_ran_.push_back(std::move(finding));
      return;
    }
    ++account_.ran;
    if (deletes || claim.digest.empty() || !end || end->digest.empty() || end->digest == claim.digest) return;
    // A command that the trace has may have changed the file afterwards: a formatter, `git checkout`.
    const story::FileChange* by = nullptr;
    for (const story::FileChange* change : changes) {
      if (change->process < place_.size() && place_[change->process] == Place::kClaimed) return;
      by = change;
    }
    Finding finding{.kind = Finding::Kind::kOtherResult,
                    .what = path,
                    .why = "the file has other bytes at the end, and no command of the trace changed it"};
    finding.line = claim.line;
    if (by) finding.seq = by->seq;
    if (by) finding.process = by->process;
    finding.claimed = "sha256 " + claim.digest;
    finding.recorded = "sha256 " + end->digest;
    other_.push_back(std::move(finding));
  }

  void add_notes() {
    uint64_t lost = 0;
    for (const auto& [what, count] : story_.lost) lost += count;
    if (lost > 0)
      account_.notes.push_back("at least " + std::to_string(lost) +
                               " events of the run were lost: what is listed as never run may be among them");
    for (const auto& missing : story_.missing)
      account_.notes.push_back("a collector did not work: " + missing);
    if (!story_.collectors_done)
      account_.notes.push_back("the collectors did not say that they told everything");
    if (!story_.note.empty()) account_.notes.push_back("the record: " + story_.note);
    if (trace_.unread > 0)
      account_.notes.push_back(std::to_string(trace_.unread) + " lines of the trace could not be read");
    if (!trace_.note.empty()) account_.notes.push_back("the trace: " + trace_.note);
  }

  void collect() {
    std::stable_sort(unmentioned_.begin(), unmentioned_.end(),
                     [](const Finding& a, const Finding& b) { return a.seq < b.seq; });
    for (auto* list : {&unmentioned_, &never_ran_, &other_})
      account_.findings.insert(account_.findings.end(), std::make_move_iterator(list->begin()),
                               std::make_move_iterator(list->end()));
  }

  const story::Story& story_;
  const Trace& trace_;
  const ReconcileOptions& options_;
  Matches matches_;
  Mentions mentions_;
  Account account_;
  std::vector<Place> place_;
  std::vector<size_t> finding_;  // by process: index into unmentioned_
  std::vector<bool> leads_, runs_claims_;
  std::vector<Finding> unmentioned_, never_ran_, other_;
  std::map<std::string, const story::FileEnd*> ends_;
  std::map<std::string, size_t> unsaid_, code_findings_;
  std::map<size_t, size_t> below_claim_;
};

}  // namespace

Account reconcile(const story::Story& story, const Trace& trace, const ReconcileOptions& options) {
  return Reconciler(story, trace, options).run();
}

}  // namespace firestop::reconcile
