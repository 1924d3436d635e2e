#include "report/usage.h"

#include <algorithm>
#include <tuple>

#include "codec/utf8.h"
#include "story/paths.h"
#include "story/shell_words.h"

namespace firestop::report {
namespace {

constexpr size_t kMostText = 200;
constexpr size_t kMostHatches = 10000;

std::string one_line(std::string_view text) {
  std::string out = codec::printable(text, kMostText);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

// "npm install", "git push", "curl": the program and, where it has them, its own verb.
std::string verb_of(const story::Story& story, size_t process) {
  const story::Execution* program = story::program_of(story, process);
  if (!program) return {};
  std::string out = program->argv.empty() ? program->file : program->argv[0];
  out = out.substr(out.rfind('/') + 1);
  if (program->argv.size() > 1 && !story::is_interpreter(out)) {
    const std::string& next = program->argv[1];
    if (!next.empty() && next.size() <= 24 && next[0] >= 'a' && next[0] <= 'z' &&
        next.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos)
      out += " " + next;
  }
  if (story::is_interpreter(out) && program->argv.size() > 1 && !program->argv[1].starts_with('-'))
    out += " " + program->argv[1].substr(program->argv[1].rfind('/') + 1);
  return one_line(out);
}

std::string crossing_of(const story::NetworkEvent& event) {
  const auto& data = event.data;
  const std::string host = data.string_or("host", "");
  const int64_t port = data.int_or("port", 0);
  const std::string scheme = data.string_or("scheme", "");
  if (event.kind == "name") return "name " + one_line(host);
  const bool usual = (scheme == "https" && port == 443) || (scheme == "http" && port == 80) || port == 0;
  const std::string place = one_line(host) + (usual ? "" : ":" + std::to_string(port));
  if (event.kind == "request")
    return one_line(data.string_or("method", "?") + " " + scheme + "://") + place +
           one_line(data.string_or("path", ""));
  return one_line(scheme.empty() ? event.kind : scheme) + " " + place;
}

// The most that overlap of [begin, end).
uint64_t most_at_once(const std::vector<std::pair<int64_t, int64_t>>& spans) {
  std::vector<std::pair<int64_t, int>> steps;
  for (const auto& [begin, end] : spans) {
    steps.emplace_back(begin, 1);
    steps.emplace_back(std::max(end, begin + 1), -1);
  }
  std::sort(steps.begin(), steps.end());
  int64_t now = 0, most = 0;
  for (const auto& [at, step] : steps) most = std::max(most, now += step);
  return static_cast<uint64_t>(most);
}

bool is_below(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

class Reader {
 public:
  Reader(const manifest::Manifest& manifest, Usage& usage) : manifest_(manifest), usage_(usage) {}

  void take(const story::Story& story) {
    ++usage_.runs;
    bytes_ = 0;
    spans_.clear();
    for (const story::NetworkEvent& event : story.network) crossing(story, event);
    usage_.network_bytes = std::max(usage_.network_bytes, bytes_);
    usage_.connections = std::max(usage_.connections, most_at_once(spans_));
    for (const story::Refusal& refusal : story.refusals)
      hatch("", "run " + one_line(refusal.path.empty() ? "other programs" : refusal.path),
            one_line(refusal.what), refusal.count);
    processes(story);
    changes(story);
    const bool lost =
        std::any_of(story.lost.begin(), story.lost.end(), [](const auto& each) { return each.second > 0; });
    usage_.complete &= story.collectors_done && !lost && story.missing.empty() && story.note.empty();
    if (const auto reason = story.end.string_or("reason", ""); !reason.empty())
      usage_.cut_short.insert(reason);
    if (!story.end.as_object()) usage_.complete = false;
  }

  void finish() {
    for (auto& [key, times] : hatches_)
      usage_.hatches.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), times});
    std::stable_sort(usage_.hatches.begin(), usage_.hatches.end(),
                     [](const EscapeHatch& a, const EscapeHatch& b) { return a.times > b.times; });
  }

 private:
  void crossing(const story::Story& story, const story::NetworkEvent& event) {
    const auto& data = event.data;
    const std::string verdict = data.string_or("verdict", "");
    const uint64_t out = static_cast<uint64_t>(std::max<int64_t>(0, data.int_or("bytes_out", 0)));
    const uint64_t in = static_cast<uint64_t>(std::max<int64_t>(0, data.int_or("bytes_in", 0)));
    bytes_ += std::min<uint64_t>(out, 1ull << 60) + std::min<uint64_t>(in, 1ull << 60);
    if (event.kind == "request" || event.kind == "connection") {
      const int64_t from = std::clamp<int64_t>(data.int_or("started_us", 0), 0, 1ll << 60);
      spans_.emplace_back(from, from + std::clamp<int64_t>(data.int_or("took_us", 0), 0, 1ll << 60));
    }
    if (verdict == "denied") {
      if (event.kind != "alarm")
        hatch(verb_of(story, event.process), crossing_of(event), one_line(data.string_or("code", "")), 1);
      return;
    }
    // "failed" was let out, too: what went wrong lies behind the rules.
    const std::string rule = data.string_or("rule", "");
    if (rule.empty() || (event.kind != "request" && event.kind != "connection")) return;
    RuleUse& use = usage_.rules[rule];
    ++use.times;
    if (const auto host = data.string_or("host", ""); !host.empty()) use.hosts.insert(host);
    if (const auto credential = data.string_or("credential", ""); !credential.empty()) {
      use.credentials.insert(credential);
      usage_.credentials.insert(credential);
    }
    if (event.kind != "request") return;
    use.methods.insert(data.string_or("method", ""));
    const std::string path = data.string_or("path", "");
    constexpr size_t kCutAt = 1000;  // the record cuts longer ones
    use.odd_path |= path.empty() || path[0] != '/' || path.size() >= kCutAt ||
                    path.find("\xef\xbf\xbd") != std::string::npos || use.paths.size() >= kMostUsedPaths;
    if (!use.odd_path) use.paths.insert(path);
  }

  void hatch(const std::string& verb, const std::string& crossing, const std::string& code, uint64_t times) {
    const auto key = std::tuple(verb, crossing, code);
    if (hatches_.size() >= kMostHatches && !hatches_.contains(key)) return;
    hatches_[key] += times;
  }

  void processes(const story::Story& story) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    int64_t first = 0, last = 0;
    std::set<std::string> files;
    const int64_t alive = story_end(story);
    for (const story::Process& process : story.processes) {
      for (const story::Execution& exec : process.execs)
        if (files.size() < 2) files.insert(exec.file);
      if (process.started_us <= 0) continue;
      const int64_t end = process.ended ? process.ended_us : alive;
      spans.emplace_back(process.started_us, std::max(process.started_us, end));
      first = first == 0 ? process.started_us : std::min(first, process.started_us);
      last = std::max(last, end);
    }
    usage_.other_programs |= files.size() > 1;
    usage_.processes = std::max(usage_.processes, most_at_once(spans));
    int64_t us = std::max<int64_t>(0, last - first);
    for (const evidence::Event& event : story.host) us = std::max(us, event.mono_us);
    usage_.duration = std::max(usage_.duration, std::chrono::milliseconds(us / 1000));
  }

  static int64_t story_end(const story::Story& story) {
    int64_t last = 0;
    for (const story::Process& each : story.processes)
      last = std::max({last, each.started_us, each.ended_us});
    return last;
  }

  // In the workspace, but for what may be written without the capability `filesystem`.
  void changes(const story::Story& story) {
    const auto counts = [this](const std::string& recorded) {
      if (recorded.empty()) return false;
      const std::string path = story::recorded_path(recorded);
      if (!is_below(path, story::kWorkspace)) return false;
      std::vector<std::string> open = {manifest::kMemoryPath, ".firestop"};
      for (const auto& entry : manifest_.entries)
        if (entry.output) open.push_back(entry.path);
      return std::none_of(open.begin(), open.end(), [&path](const std::string& folder) {
        return is_below(path, std::string(story::kWorkspace) + "/" + folder);
      });
    };
    for (const story::FileChange& change : story.changes)
      if (!usage_.workspace_written) usage_.workspace_written = counts(change.path) || counts(change.to);
  }

  const manifest::Manifest& manifest_;
  Usage& usage_;
  uint64_t bytes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> spans_;
  std::map<std::tuple<std::string, std::string, std::string>, uint64_t> hatches_;
};

}  // namespace

Usage usage_of(const std::vector<story::Story>& stories, const manifest::Manifest& manifest) {
  Usage usage;
  Reader reader(manifest, usage);
  for (const story::Story& story : stories) reader.take(story);
  reader.finish();
  return usage;
}

}  // namespace firestop::report
