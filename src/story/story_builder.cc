#include "story/story_builder.h"

#include <algorithm>
#include <limits>

namespace firestop::story {
namespace {

constexpr size_t kMostNames = 256;  // kinds of loss, collectors, ...: more are one, "others"
constexpr size_t kMostRefusals = 4096;

uint64_t number(const evidence::Event& event, std::string_view key,
                uint64_t most = std::numeric_limits<int64_t>::max()) {
  const int64_t value = event.data.int_or(key, 0);
  return value < 0 ? 0 : std::min(static_cast<uint64_t>(value), most);
}

uint32_t pid_of(const evidence::Event& event, std::string_view key) {
  return static_cast<uint32_t>(number(event, key, std::numeric_limits<uint32_t>::max()));
}

int64_t time_of(const evidence::Event& event) {
  return static_cast<int64_t>(number(event, "at_us"));
}

std::string text(const evidence::Event& event, std::string_view key) {
  const codec::Json* value = event.data.find(key);
  return value ? evidence::bytes_of(*value) : std::string();
}

std::vector<std::string> texts(const evidence::Event& event, std::string_view key, size_t most) {
  std::vector<std::string> out;
  const codec::Json* value = event.data.find(key);
  if (const codec::JsonArray* array = value ? value->as_array() : nullptr)
    for (size_t i = 0; i < array->size() && i < most; ++i) out.push_back(evidence::bytes_of((*array)[i]));
  return out;
}

void add(uint64_t& sum, uint64_t more) {
  sum = more > std::numeric_limits<uint64_t>::max() - sum ? std::numeric_limits<uint64_t>::max() : sum + more;
}

}  // namespace

const std::unordered_map<std::string, StoryBuilder::Taker>& StoryBuilder::takers() {
  static const std::unordered_map<std::string, Taker> kTakers{
      {"process.fork", &StoryBuilder::fork}, {"process.exec", &StoryBuilder::exec},
      {"process.exit", &StoryBuilder::exit}, {"code", &StoryBuilder::code},
      {"file.write", &StoryBuilder::change}, {"file.rename", &StoryBuilder::change},
      {"file.link", &StoryBuilder::change},  {"file.delete", &StoryBuilder::change},
      {"file.final", &StoryBuilder::final},  {"socket", &StoryBuilder::socket},
      {"lost", &StoryBuilder::lost},         {"collectors", &StoryBuilder::collectors},
      {"denied", &StoryBuilder::refused}};
  return kTakers;
}

void StoryBuilder::take(evidence::Event event) {
  if (story_.events == 0) story_.first_time = event.time;
  story_.last_time = event.time;
  ++story_.events;
  if (const auto taker = takers().find(event.kind); taker != takers().end()) {
    (this->*taker->second)(event);
    return;
  }
  constexpr std::string_view kNetwork = "network.";
  if (event.kind == "record.begin") {
    story_.begin = std::move(event.data);
  } else if (event.kind == "run.plan") {
    story_.plan = std::move(event.data);
  } else if (event.kind == "record.end") {
    story_.end = std::move(event.data);
  } else if (event.kind == "run.cap") {
    story_.caps.push_back(std::move(event.data));
  } else if (event.kind == "collectors.done") {
    story_.collectors_done = true;
  } else if (event.kind.starts_with(kNetwork)) {
    story_.network.push_back({event.seq, event.kind.substr(kNetwork.size()), std::move(event.data), kNone});
  } else if (event.vantage == evidence::Vantage::kHost) {
    story_.host.push_back(std::move(event));
  }
}

size_t StoryBuilder::living(uint32_t pid) const {
  const auto found = lives_.find(pid);
  if (found == lives_.end() || story_.processes[found->second.back().process].ended) return kNone;
  return found->second.back().process;
}

size_t StoryBuilder::begin(uint32_t pid, int64_t at_us) {
  const size_t process = story_.processes.size();
  story_.processes.emplace_back();
  story_.processes.back().pid = pid;
  story_.processes.back().started_us = at_us;
  auto& lives = lives_[pid];
  lives.push_back({process, lives.empty() ? at_us : std::max(at_us, lives.back().begin_us), false});
  return process;
}

// A parent that is known stands before its child, so no circle can be. One that comes later is a lie, or was
// lost when it began: then only its pid is kept.
void StoryBuilder::set_parent(size_t child, uint32_t parent_pid) {
  Process& process = story_.processes[child];
  if (process.parent != kNone) return;
  process.parent_pid = parent_pid;
  const auto found = lives_.find(parent_pid);
  if (found == lives_.end()) return;
  const auto& lives = found->second;
  for (size_t i = lives.size(); i-- > 0 && lives.size() - i <= 2;) {
    if (lives[i].process >= child) continue;
    process.parent = lives[i].process;
    return;
  }
}

void StoryBuilder::fork(const evidence::Event& event) {
  const uint32_t pid = pid_of(event, "pid");
  const int64_t at_us = time_of(event);
  size_t process = living(pid);
  // An exec may be told before the fork that it followed; anything else is a new process with the same pid,
  // whose predecessor's end was lost.
  if (process == kNone || lives_[pid].back().forked || story_.processes[process].started_us < at_us)
    process = begin(pid, at_us);
  lives_[pid].back().forked = true;
  story_.processes[process].started_us = at_us;
  set_parent(process, pid_of(event, "parent"));
}

void StoryBuilder::exec(const evidence::Event& event) {
  const uint32_t pid = pid_of(event, "pid");
  Execution execution;
  execution.seq = event.seq;
  execution.at_us = time_of(event);
  execution.file = text(event, "file");
  execution.cwd = text(event, "cwd");
  execution.from_image = event.data.bool_or("image", false);
  execution.digest = event.data.string_or("digest", "");
  execution.size = number(event, "size");
  execution.argv = texts(event, "argv", std::numeric_limits<size_t>::max());
  execution.cut = event.data.bool_or("cut", false) || number(event, "argc") > execution.argv.size();
  execution.uid = pid_of(event, "uid");
  execution.gid = pid_of(event, "gid");
  size_t process = living(pid);
  if (process == kNone) {
    const auto found = lives_.find(pid);
    // Told late: the process that ended after it is the one that executed.
    if (found != lives_.end() && execution.at_us <= story_.processes[found->second.back().process].ended_us)
      process = found->second.back().process;
    else
      process = begin(pid, execution.at_us);
  }
  set_parent(process, pid_of(event, "parent"));
  story_.processes[process].execs.push_back(std::move(execution));
}

void StoryBuilder::exit(const evidence::Event& event) {
  const uint32_t pid = pid_of(event, "pid");
  size_t process = living(pid);
  if (process == kNone) {
    const auto found = lives_.find(pid);
    if (found != lives_.end() && story_.processes[found->second.back().process].ended_us == time_of(event))
      return;  // told twice
    process = begin(pid, 0);
  }
  Process& ended = story_.processes[process];
  ended.ended = true;
  ended.ended_us = time_of(event);
  ended.status = static_cast<int>(number(event, "status", std::numeric_limits<int>::max()));
  ended.user_us = number(event, "user_us");
  ended.system_us = number(event, "system_us");
  ended.max_rss_kib = number(event, "max_rss_kib");
}

void StoryBuilder::code(const evidence::Event& event) {
  Script script;
  script.seq = event.seq;
  script.at_us = time_of(event);
  script.pid = pid_of(event, "pid");
  script.writer_pid = pid_of(event, "writer");
  script.how = text(event, "how");
  script.path = text(event, "path");
  script.interpreter = text(event, "interpreter");
  script.digest = event.data.string_or("digest", "");
  script.size = number(event, "size");
  script.kept = number(event, "kept");
  script.note = text(event, "note");
  (script.how == "opened" ? story_.opened : story_.scripts).push_back(std::move(script));
}

void StoryBuilder::change(const evidence::Event& event) {
  constexpr size_t kPrefix = std::string_view("file.").size();
  FileChange change;
  change.seq = event.seq;
  change.at_us = time_of(event);
  change.pid = pid_of(event, "pid");
  change.what = event.kind.substr(kPrefix);
  change.path = text(event, "path");
  change.to = text(event, "to");
  story_.changes.push_back(std::move(change));
}

void StoryBuilder::final(const evidence::Event& event) {
  FileEnd end;
  end.path = text(event, "path");
  end.digest = event.data.string_or("digest", "");
  end.note = text(event, "note");
  end.size = number(event, "size");
  std::string path = end.path;
  story_.ends.insert_or_assign(std::move(path), std::move(end));
}

void StoryBuilder::socket(const evidence::Event& event) {
  constexpr uint64_t kPorts = std::numeric_limits<uint16_t>::max();
  Socket socket;
  socket.seq = event.seq;
  socket.at_us = time_of(event);
  socket.pid = pid_of(event, "pid");
  socket.protocol = text(event, "protocol");
  socket.address = text(event, "address");
  socket.source_port = static_cast<uint16_t>(number(event, "source_port", kPorts));
  socket.port = static_cast<uint16_t>(number(event, "port", kPorts));
  story_.sockets.push_back(std::move(socket));
}

void StoryBuilder::lost(const evidence::Event& event) {
  std::string what = text(event, "what");
  if (story_.lost.size() >= kMostNames && !story_.lost.contains(what)) what = "others";
  add(story_.lost[what], std::max<uint64_t>(1, number(event, "count")));
}

void StoryBuilder::collectors(const evidence::Event& event) {
  const auto append = [&event](std::vector<std::string>& to, std::string_view key) {
    for (auto& name : texts(event, key, kMostNames))
      if (to.size() < kMostNames) to.push_back(std::move(name));
  };
  append(story_.working, "working");
  append(story_.missing, "missing");
}

void StoryBuilder::refused(const evidence::Event& event) {
  Refusal refusal{text(event, "what"), text(event, "path"), std::max<uint64_t>(1, number(event, "count"))};
  std::string key = refusal.what + '\0' + refusal.path;
  if (story_.refusals.size() >= kMostRefusals && !refusals_.contains(key)) {
    refusal.path.clear();
    key = refusal.what + '\0';
    if (!refusals_.contains(key) && story_.refusals.size() >= 2 * kMostRefusals) return;
  }
  const auto [at, fresh] = refusals_.try_emplace(std::move(key), story_.refusals.size());
  if (fresh)
    story_.refusals.push_back(std::move(refusal));
  else
    add(story_.refusals[at->second].count, refusal.count);
}

// Who had `pid` at that time. Of several, the last that had begun, unless it was already gone and another
// followed: what it does is told after its end now and then, what the next one does before its beginning.
size_t StoryBuilder::process_at(uint32_t pid, int64_t at_us) const {
  const auto found = lives_.find(pid);
  if (found == lives_.end() || pid == 0) return kNone;
  const auto& lives = found->second;
  auto next = std::upper_bound(lives.begin(), lives.end(), at_us,
                               [](int64_t at, const Life& life) { return at < life.begin_us; });
  if (next == lives.begin()) return next->process;
  const auto last = next - 1;
  const Process& process = story_.processes[last->process];
  if (next != lives.end() && process.ended && process.ended_us < at_us) return next->process;
  return last->process;
}

void StoryBuilder::join_processes() {
  for (size_t i = 0; i < story_.processes.size(); ++i) {
    const size_t parent = story_.processes[i].parent;
    (parent == kNone ? story_.roots : story_.processes[parent].children).push_back(i);
  }
  for (auto* scripts : {&story_.scripts, &story_.opened})
    for (auto& script : *scripts) {
      script.process = process_at(script.pid, script.at_us);
      script.writer = process_at(script.writer_pid, script.at_us);
    }
  for (auto& change : story_.changes) change.process = process_at(change.pid, change.at_us);
  for (auto& socket : story_.sockets) socket.process = process_at(socket.pid, socket.at_us);
}

void StoryBuilder::join_network() {
  // Ports are used again: of a port's sockets, the last that was begun before the host saw it, or shortly
  // after, since the two clocks differ by a little.
  constexpr int64_t kSlackUs = 500000;
  std::unordered_map<uint16_t, std::vector<size_t>> by_port;
  for (size_t i = 0; i < story_.sockets.size(); ++i)
    if (story_.sockets[i].source_port != 0) by_port[story_.sockets[i].source_port].push_back(i);
  for (auto& [port, list] : by_port)
    std::stable_sort(list.begin(), list.end(), [this](size_t a, size_t b) {
      return story_.sockets[a].at_us < story_.sockets[b].at_us;
    });
  for (auto& crossing : story_.network) {
    const int64_t pid = crossing.data.int_or("pid", 0);
    const int64_t at_us = crossing.data.int_or("started_us", 0);
    if (pid > 0 && pid <= std::numeric_limits<uint32_t>::max()) {
      crossing.process = process_at(static_cast<uint32_t>(pid), at_us);
      continue;
    }
    const int64_t port = crossing.data.int_or("source_port", 0);
    if (port <= 0 || port > std::numeric_limits<uint16_t>::max()) continue;
    const auto found = by_port.find(static_cast<uint16_t>(port));
    if (found == by_port.end()) continue;
    const auto next = std::partition_point(found->second.begin(), found->second.end(), [&](size_t i) {
      return story_.sockets[i].at_us - kSlackUs <= at_us;
    });
    if (next != found->second.begin()) crossing.process = story_.sockets[*(next - 1)].process;
  }
}

Story StoryBuilder::finish() {
  join_processes();
  join_network();
  find_what_exists(story_);
  return std::move(story_);
}

}  // namespace firestop::story
