#include "reconcile/claim_match.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace firestop::reconcile {
namespace {

constexpr size_t kMostNested = 4;       // `bash -c "bash -c ..."`, shells within shells that are read
constexpr size_t kMostCandidates = 64;  // processes that one simple command is compared with

using State = Matches::State;

std::vector<std::string> plain_words(const story::SimpleCommand& command) {
  std::vector<std::string> out;
  for (const story::ShellWord& word : command.words) out.push_back(word.text);
  return out;
}

// The texts that a program was given to run: of `sh -c TEXT` and, within it, of the one `eval TEXT` or `sh -c
// TEXT` that it is there for. What a harness puts around it must be a shell's own doing (`source`, `cd`,
// `pwd`): a text that also runs a program says more than the claim does.
void texts_of(std::vector<std::string> argv, std::vector<std::string>& out) {
  for (size_t depth = 0; depth < kMostNested; ++depth) {
    const std::string* text = story::shell_text_of(argv);
    if (!text) return;
    out.push_back(*text);
    std::vector<std::string> inner;
    for (const story::SimpleCommand& command : story::read_shell(*text).commands) {
      auto words = plain_words(command);
      const bool evaluates = words[0] == "eval" && words.size() > 1;
      if (!evaluates && !story::shell_text_of(words)) {
        if (!story::is_builtin(words[0]) || words[0] == "eval" || words[0] == "exec") return;
      } else if (inner.empty()) {
        inner = std::move(words);
      } else {
        return;
      }
    }
    if (!inner.empty() && inner[0] == "eval") {
      // Harnesses quote the command and append redirections of their own as further words.
      std::string joined = inner[1];
      for (size_t i = 2; i < inner.size(); ++i) joined += " " + inner[i];
      out.push_back(inner[1]);
      if (inner.size() > 2) out.push_back(std::move(joined));
      return;
    }
    argv = std::move(inner);
  }
}

class Matcher {
 public:
  Matcher(const story::Story& story, const Trace& trace, Matches& out)
      : story_(story), trace_(trace), out_(out) {}

  void run() {
    out_.read.resize(trace_.claims.size());
    out_.claims.resize(trace_.claims.size());
    out_.claim_of.assign(story_.processes.size(), story::kNone);
    out_.is_match.assign(story_.processes.size(), false);
    order_.resize(story_.processes.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(), [this](size_t a, size_t b) {
      return story_.processes[a].started_us < story_.processes[b].started_us;
    });
    for (size_t i = 0; i < trace_.claims.size(); ++i) read_claim(i);
    index_shells();
    for (size_t i = 0; i < trace_.claims.size(); ++i) match_shell(i, Exact::kYes);
    for (size_t i = 0; i < trace_.claims.size(); ++i) match_shell(i, Exact::kNo);
    mark_below();
    index_programs();
    for (size_t i = 0; i < trace_.claims.size(); ++i) match_pieces(i);
  }

 private:
  enum class Exact { kNo, kYes };

  bool is_command(size_t i) const { return trace_.claims[i].kind == Claim::Kind::kCommand; }

  void read_claim(size_t i) {
    const Claim& claim = trace_.claims[i];
    ReadClaim& read = out_.read[i];
    if (!is_command(i)) return;
    read.text = claim.command;
    if (const std::string* inner = story::shell_text_of(claim.argv)) read.text = *inner;
    read.shell = story::read_shell(read.text);
    // A trace that names the shell, too: `bash -lc "make test"`.
    for (size_t depth = 0; depth < kMostNested && read.shell.commands.size() == 1; ++depth) {
      const auto words = plain_words(read.shell.commands[0]);
      const std::string* inner = story::shell_text_of(words);
      if (!inner) break;
      read.text = *inner;
      read.shell = story::read_shell(read.text);
    }
    if (read.text.empty()) {
      story::SimpleCommand command;
      for (const auto& word : claim.argv) command.words.push_back({word, false, false});
      read.shell.words = command.words;
      if (!command.words.empty()) read.shell.commands.push_back(std::move(command));
    }
    read.words = read.shell.words;
    for (size_t at = 0; at < read.words.size() && read.words.size() < story::kMostShellWords; ++at)
      if (!read.words[at].op && read.words[at].text.find_first_of(" \n\t") != std::string::npos &&
          read.words[at].text.size() < 4096) {
        const std::string text = read.words[at].text;
        const auto inner = story::read_shell(text);
        if (inner.words.size() > 1)
          read.words.insert(read.words.end(), inner.words.begin(), inner.words.end());
      }
  }

  struct Shell {
    size_t process = story::kNone;
    std::string directory;  // that a leading cd goes to
  };

  void index_shells() {
    for (const size_t p : order_)
      for (const story::Execution& exec : story_.processes[p].execs) {
        std::vector<std::string> texts;
        texts_of(exec.argv, texts);
        for (const std::string& text : texts) {
          const auto words = story::read_shell(text).words;
          shells_[story::normal_form(words)].push_back({p, {}});
          Shell without{p, {}};
          const auto rest = story::without_cd(words, &without.directory);
          loose_[story::normal_form(rest)].push_back(std::move(without));
        }
      }
  }

  // The first process, in time, that no claim has yet. Claims that are the same in all are served in order.
  void match_shell(size_t i, Exact exact) {
    if (!is_command(i) || out_.claims[i].state != State::kNoCommand || out_.read[i].text.empty()) return;
    std::string directory;
    auto words = out_.read[i].shell.words;
    if (exact == Exact::kNo) words = story::without_cd(words, &directory);
    auto& table = exact == Exact::kYes ? shells_ : loose_;
    const auto found = table.find(story::normal_form(words));
    if (found == table.end()) return;
    auto& from = next_[&found->second];
    for (size_t at = from; at < found->second.size(); ++at) {
      const Shell& shell = found->second[at];
      if (out_.is_match[shell.process]) {
        if (at == from) ++from;  // served: never looked at again
        continue;
      }
      // Two that name two directories are two commands.
      if (!directory.empty() && !shell.directory.empty() && directory != shell.directory) continue;
      take(i, shell.process);
      out_.claims[i].whole = true;
      out_.claims[i].state = State::kRan;
      return;
    }
  }

  void take(size_t claim, size_t process) {
    out_.is_match[process] = true;
    out_.claim_of[process] = claim;
    out_.claims[claim].processes.push_back(process);
  }

  void mark_below() {
    for (const size_t p : order_)
      if (out_.is_match[p]) mark_children(p);
  }

  // Of a match that lies below another one (an agent within an agent) the nearer claim counts.
  void mark_children(size_t process) {
    std::vector<size_t> todo = {process};
    while (!todo.empty()) {
      const size_t p = todo.back();
      todo.pop_back();
      for (const size_t child : story_.processes[p].children)
        if (!out_.is_match[child] && out_.claim_of[child] != out_.claim_of[process]) {
          out_.claim_of[child] = out_.claim_of[process];
          todo.push_back(child);
        }
    }
  }

  void index_programs() {
    for (const size_t p : order_)
      for (const story::Execution& exec : story_.processes[p].execs)
        for (size_t at = 0; at < std::min<size_t>(exec.argv.size(), 3); ++at) {
          // "/bin/sh ./x.sh" is ./x.sh, run by the kernel's reading of its first line.
          if (at > 0 && !story::is_interpreter(exec.argv[0])) break;
          auto& list = programs_[story::program_name(exec.argv[at])];
          if (list.empty() || list.back() != p) list.push_back(p);
        }
  }

  void match_pieces(size_t i) {
    auto& match = out_.claims[i];
    if (!is_command(i) || match.state != State::kNoCommand) return;
    const auto& commands = out_.read[i].shell.commands;
    size_t required = 0, found = 0, missing = 0;
    for (const story::SimpleCommand& command : commands) {
      const auto words = without_prefixes(command.words);
      if (words.empty() || words[0].open) continue;
      const size_t process = find_program(words);
      const bool needed = !command.conditional && !story::is_builtin(words[0].text);
      required += needed ? 1 : 0;
      if (process != story::kNone) {
        ++found;
        take(i, process);
        mark_children(process);
      } else if (needed) {
        ++missing;
        if (match.missing.empty()) match.missing = story::quote_command(plain_words(command));
      }
    }
    const auto& all = out_.read[i].shell.words;
    match.whole = commands.size() == 1 && found == 1 && !all.empty() && all.front().text != "!";
    match.state = found > 0 ? (missing > 0 ? State::kPartly : State::kRan)
                            : (required > 0 ? State::kNot : unseen(commands));
  }

  static State unseen(const std::vector<story::SimpleCommand>& commands) {
    // Only conditional commands, or only what a shell does by itself.
    return commands.empty() ? State::kNoCommand : State::kUnseen;
  }

  // "env A=1 nice make" is make: these programs become what they are given.
  static std::vector<story::ShellWord> without_prefixes(std::vector<story::ShellWord> words) {
    while (!words.empty()) {
      const std::string& first = words[0].text;
      if (first != "env" && first != "exec" && first != "command" && first != "nohup") break;
      words.erase(words.begin());
      while (!words.empty() && first_is_option_or_assignment(words[0].text)) words.erase(words.begin());
    }
    return words;
  }
  static bool first_is_option_or_assignment(const std::string& word) {
    return word.starts_with('-') || (word.find('=') != std::string::npos && word.find('/') > word.find('='));
  }

  size_t find_program(const std::vector<story::ShellWord>& words) {
    const auto found = programs_.find(story::program_name(words[0].text));
    if (found == programs_.end()) return story::kNone;
    auto& from = next_program_[&found->second];
    size_t looked = 0;
    for (size_t at = from; at < found->second.size() && looked < kMostCandidates; ++at) {
      const size_t p = found->second[at];
      if (out_.claim_of[p] != story::kNone) {
        if (at == from) ++from;
        continue;
      }
      ++looked;
      for (const story::Execution& exec : story_.processes[p].execs)
        if (runs(exec, words)) return p;
    }
    return story::kNone;
  }

  static bool runs(const story::Execution& exec, const std::vector<story::ShellWord>& words) {
    for (size_t skip = 0; skip < std::min<size_t>(exec.argv.size(), 3); ++skip) {
      if (skip > 0 && !story::is_interpreter(exec.argv[0])) return false;
      if (story::program_name(exec.argv[skip]) == story::program_name(words[0].text) &&
          words_fit(exec, skip, words))
        return true;
    }
    return false;
  }

  // Arguments against words, where an open word stands for any number of arguments.
  static bool words_fit(const story::Execution& exec, size_t skip,
                        const std::vector<story::ShellWord>& words) {
    size_t a = skip + 1, w = 1, back_a = 0, back_w = 0;
    const auto& argv = exec.argv;
    while (a < argv.size()) {
      if (w < words.size() && words[w].open) {
        back_w = ++w;
        back_a = a;
      } else if (w < words.size() && words[w].text == argv[a]) {
        ++a, ++w;
      } else if (back_w > 0) {
        w = back_w;
        a = ++back_a;
      } else {
        return false;
      }
    }
    while (w < words.size() && words[w].open) ++w;
    return w == words.size() || exec.cut;
  }

  const story::Story& story_;
  const Trace& trace_;
  Matches& out_;
  std::vector<size_t> order_;  // processes by start
  std::unordered_map<std::string, std::vector<Shell>> shells_, loose_;
  std::unordered_map<std::string, std::vector<size_t>> programs_;
  std::map<const void*, size_t> next_, next_program_;
};

}  // namespace

Matches match_claims(const story::Story& story, const Trace& trace) {
  Matches out;
  Matcher(story, trace, out).run();
  return out;
}

}  // namespace firestop::reconcile
