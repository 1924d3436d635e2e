#include "reconcile/mentions.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/digest.h"
#include "story/paths.h"

namespace firestop::reconcile {
namespace {

constexpr size_t kLeastShown = 16;          // bytes of a word whose digest is kept
constexpr size_t kMostSearched = 1u << 20;  // bytes of a claim that a script's bytes are searched in
constexpr int kMostAncestors = 16;          // whose directories a name is looked up in

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// "pkg.mod" of `python3 -m pkg.mod`.
std::string module_path(std::string word) {
  std::replace(word.begin(), word.end(), '.', '/');
  return word + ".py";
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

}  // namespace

std::string claim_path(const Claim& claim) {
  const std::string directory =
      claim.cwd.empty() ? story::kWorkspace : story::resolve_path(story::kWorkspace, claim.cwd);
  return story::resolve_path(directory, claim.path);
}

Mentions::Mentions(const story::Story& story, const Trace& trace, const Matches& matches,
                   std::function<std::string(const std::string&)> content)
    : story_(story), trace_(trace), matches_(matches), content_(std::move(content)) {
  for (size_t i = 0; i < story.scripts.size(); ++i) scripts_of_[story.scripts[i].process].push_back(i);
  const auto lost = story.lost.find("files");
  // The collectors remember who wrote so many files; with more of them, nobody need not mean nobody.
  constexpr size_t kMostWriters = 1u << 16;
  files_lost_ = story.changes.size() >= kMostWriters || (lost != story.lost.end() && lost->second > 0) ||
                std::any_of(story.missing.begin(), story.missing.end(),
                            [](const std::string& each) { return each.starts_with("files"); });
  collect_bytes();
  collect_changes();
  collect_files();
}

void Mentions::collect_bytes() {
  const auto show = [this](std::string_view bytes) {
    if (bytes.size() >= kLeastShown) shown_.insert(sha256_hex(bytes));
  };
  for (size_t i = 0; i < trace_.claims.size(); ++i) {
    const Claim& claim = trace_.claims[i];
    if (!claim.digest.empty()) shown_.insert(claim.digest);
    const ReadClaim& read = matches_.read[i];
    for (const auto& body : read.shell.documents) {
      show(body);
      if (body.ends_with('\n')) show(std::string_view(body).substr(0, body.size() - 1));
    }
    for (const story::ShellWord& word : read.words)
      if (!word.open) show(word.text);
    for (const auto& word : claim.argv) show(word);
    for (const auto& command : read.shell.commands) commands_.insert(story::normal_form(command.words));
  }
}

void Mentions::collect_changes() {
  for (size_t i = 0; i < story_.changes.size(); ++i) {
    const story::FileChange& change = story_.changes[i];
    changes_[story::recorded_path(change.path)].push_back(i);
    if (!change.to.empty() && change.to != change.path)
      changes_[story::recorded_path(change.to)].push_back(i);
  }
  runs_claims_.assign(story_.processes.size(), false);
  for (size_t p = 0; p < story_.processes.size(); ++p)
    if (const size_t parent = story_.processes[p].parent;
        matches_.is_match[p] && parent < runs_claims_.size())
      runs_claims_[parent] = true;
}

void Mentions::collect_files() {
  for (const Claim& claim : trace_.claims)
    if (claim.kind == Claim::Kind::kWrite && claim.sure)
      if (const auto path = claim_path(claim); !path.empty()) files_[path] = claim.digest;
}

bool Mentions::declared(const story::Script& script) const {
  if (const auto* words = story_.plan.find("command"); words && words->as_array())
    for (const auto& word : *words->as_array())  // of `sh -c TEXT`
      if (script.how == "command" && sha256_hex(evidence::bytes_of(word)) == script.digest) return true;
  if (script.path.empty() || script.writer != story::kNone || files_lost_) return false;
  // Beside the workspace: where only the image and the machine's own set-up write (/etc/passwd is one that
  // interpreters open). In /tmp, /home and the like nothing lies before the run.
  constexpr std::string_view kBefore[] = {story::kWorkspace, "/etc", "/usr", "/opt", "/lib",
                                          "/lib64",          "/bin", "/sbin"};
  if (std::none_of(std::begin(kBefore), std::end(kBefore),
                   [&script](std::string_view folder) { return is_below(script.path, folder); }))
    return false;
  for (std::string path = script.path; path.size() > 1; path.resize(path.rfind('/')))
    if (changes_.contains(path)) return false;  // also a folder that was put there by a rename
  return true;
}

bool Mentions::shown_anywhere(const story::Script& script) const {
  return !script.digest.empty() && script.kept == script.size && shown_.contains(script.digest);
}

bool Mentions::runs_declared_script(size_t process) const {
  const auto found = scripts_of_.find(process);
  if (found == scripts_of_.end()) return false;
  return std::all_of(found->second.begin(), found->second.end(),
                     [this](size_t i) { return declared(story_.scripts[i]); });
}

bool Mentions::made_of_claims(const story::Script& script) const {
  if ((script.how != "stdin" && script.how != "typed") || !story::is_shell(script.interpreter) || !content_ ||
      script.digest.empty() || script.kept != script.size || script.size > kMostSearched)
    return false;
  const auto shell = story::read_shell(content_(script.digest));
  return !shell.commands.empty() &&
         std::all_of(shell.commands.begin(), shell.commands.end(),
                     [this](const story::SimpleCommand& command) {
                       return commands_.contains(story::normal_form(command.words)) ||
                              (story::is_builtin(command.words[0].text) && command.words[0].text != "eval" &&
                               command.words[0].text != "source" && command.words[0].text != ".");
                     });
}

bool Mentions::claim_shows(size_t claim, const story::Script& script) const {
  if (declared(script) || shown_anywhere(script)) return true;
  if (script.how == "command" || script.how == "stdin" || script.how == "typed") {
    if (in_text(claim, script)) return true;
    return script.how == "command" && built_by_the_program(script);
  }
  return named(claim, script) || written_by_the_agent(script);
}

// `make` gives each line of a recipe to `sh -c`, and so does system(3). What such a text runs is seen as
// processes and judged as these; a shell that makes another one's text (`sh -c "$(curl ...)"`) is not passed.
bool Mentions::built_by_the_program(const story::Script& script) const {
  if (!story::is_shell(script.interpreter) || script.process >= story_.processes.size()) return false;
  const story::Process& process = story_.processes[script.process];
  if (matches_.is_match[script.process]) {
    // The claim itself: the first text of the process, and not what it became afterwards.
    for (const story::Execution& exec : process.execs)
      if (const std::string* text = story::shell_text_of(exec.argv))
        return sha256_hex(*text) == script.digest;
    return false;
  }
  size_t up = process.parent;
  while (up < story_.processes.size() && story_.processes[up].execs.empty()) up = story_.processes[up].parent;
  if (up >= story_.processes.size()) return false;
  const story::Execution& parent = story_.processes[up].execs.back();
  return parent.from_image && !story::is_shell(parent.file) &&
         (parent.argv.empty() || !story::is_shell(parent.argv[0]));
}

bool Mentions::in_text(size_t claim, const story::Script& script) const {
  const std::string& whole = matches_.read[claim].text;
  if (whole.empty() || script.digest.empty() || script.kept != script.size || script.size > kMostSearched ||
      !content_)
    return false;
  const std::string bytes = content_(script.digest);
  const auto wanted = trimmed(bytes);
  if (wanted.empty()) return bytes.size() == script.size;
  return std::string_view(whole).substr(0, kMostSearched).find(wanted) != std::string_view::npos;
}

// The harness itself wrote it, as a call of the trace says, and with those bytes where the trace has them.
bool Mentions::written_by_the_agent(const story::Script& script) const {
  const auto found = files_.find(script.path);
  if (found == files_.end() || files_lost_) return false;
  if (!found->second.empty() && found->second != script.digest) return false;
  const auto changes = changes_.find(script.path);
  if (changes == changes_.end()) return true;
  // Whoever wrote it runs claimed commands itself.
  return std::all_of(changes->second.begin(), changes->second.end(), [this](size_t i) {
    const size_t by = story_.changes[i].process;
    return by < runs_claims_.size() && runs_claims_[by];
  });
}

std::string Mentions::directory_of(size_t process) const {
  const auto& execs = story_.processes[process].execs;
  return execs.empty() ? "" : execs.back().cwd;
}

bool Mentions::named(size_t claim, const story::Script& script) const {
  if (script.path.empty()) return false;
  std::vector<std::string> directories = {story::kWorkspace};
  if (!trace_.claims[claim].cwd.empty())
    directories.push_back(story::resolve_path(story::kWorkspace, trace_.claims[claim].cwd));
  size_t up = script.process;
  for (int i = 0; i < kMostAncestors && up < story_.processes.size(); ++i) {
    if (matches_.claim_of[up] != claim) break;
    if (auto directory = directory_of(up); !directory.empty()) directories.push_back(std::move(directory));
    up = story_.processes[up].parent;
  }
  const auto& words = matches_.read[claim].words;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].op) continue;
    std::string word = words[i].text;
    const bool module = i > 0 && words[i - 1].text == "-m";
    if (word.starts_with('-')) {  // --config=x.js
      const size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      word.erase(0, equals + 1);
    }
    if (module) word = module_path(word);
    for (const auto& directory : directories) {
      const std::string path = story::resolve_path(directory, word);
      if (path.empty()) continue;
      if (path == script.path) return true;
      // A pattern names files of one folder, never the folder's own folders.
      if (words[i].open && word.find('$') == std::string::npos &&
          ::fnmatch(path.c_str(), script.path.c_str(), FNM_PATHNAME) == 0)
        return true;
    }
  }
  return false;
}

}  // namespace firestop::reconcile
