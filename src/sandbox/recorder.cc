#include "sandbox/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/digest.h"
#include "base/path.h"
#include "base/version.h"
#include "egress/crossing_json.h"
#include "evidence/anchor.h"
#include "evidence/attest.h"

namespace firestop::sandbox {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using evidence::Vantage;
using std::chrono::steady_clock;

constexpr size_t kMostWaiting = 4096;       // crossings
constexpr size_t kMostContents = 1u << 20;  // of one run; beyond, the guest is flooding
constexpr std::chrono::milliseconds kHoldUp{50};

Json list_of(const std::vector<std::string>& texts) {
  JsonArray out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

Json list_of_bytes(const std::vector<std::string>& texts) {
  JsonArray out;
  for (const auto& text : texts) out.push_back(evidence::json_of_bytes(text));
  return out;
}

Json names_of(const Json* object) {
  JsonArray out;
  if (object && object->as_object())
    for (const auto& [name, value] : *object->as_object()) out.emplace_back(name);
  return out;
}

// What is in the directory of outputs, after it was unpacked and checked.
struct OutputFile {
  std::string path;  // below it
  uint64_t size = 0;
  std::string digest;
};
Result<std::vector<OutputFile>> output_files(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<OutputFile> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(error) || at->is_symlink(error)) continue;
    const std::string path = at->path().string();
    TRY_ASSIGN(std::string digest, sha256_file(path));
    found.push_back({path.substr(directory.size() + 1), at->file_size(error), std::move(digest)});
  }
  if (error) return fail("evidence.outputs", "cannot read " + directory + ": " + error.message());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

// Presets are expanded in both, so that places are the same: by these names crossings tell their rule.
void name_rules(Json& list, const std::vector<manifest::EgressRule>& rules) {
  JsonArray* array = list.as_array();
  for (size_t i = 0; array && array->size() == rules.size() && i < rules.size(); ++i)
    if (JsonObject* rule = (*array)[i].as_object()) (*rule)["name"] = rules[i].name;
}

}  // namespace

Recorder::Recorder(std::string directory, std::unique_ptr<evidence::HostKey> key,
                   std::unique_ptr<evidence::Log> log)
    : directory_(std::move(directory)), key_(std::move(key)), log_(std::move(log)) {}

Recorder::~Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::begin(const Plan& plan, OwnedRun& run, const std::string& anchor,
                                                  evidence::LogLimits limits) {
  TRY_ASSIGN(auto loaded, evidence::HostKey::load_or_make(config_directory()));
  auto key = std::make_unique<evidence::HostKey>(std::move(loaded));
  evidence::Anchor given;
  if (!anchor.empty()) {
    TRY_ASSIGN(given, evidence::open_anchor(anchor));
  }
  const JsonObject begin{{"name", plan.name}, {"manifest_digest", plan.seal.digest}, {"version", version()}};
  std::string directory = join_path(run.directory(), kEvidence);
  TRY_ASSIGN(auto log,
             evidence::Log::create(directory, run.record().id, *key, begin, limits, std::move(given)));
  return std::unique_ptr<Recorder>(new Recorder(std::move(directory), std::move(key), std::move(log)));
}

void Recorder::append(Vantage vantage, const char* kind, JsonObject data) {
  if (unwritable_) return;
  if (auto kept = log_->append(vantage, kind, std::move(data)); !kept) failed(kept.error());
}

void Recorder::failed(Error error) {
  if (error.code.starts_with("evidence.")) unwritable_ = true;
  if (error_) return;
  error_ = error;
  const auto told = on_failed_;
  unwatch();
  if (told) told(std::move(error));
}

Result<void> Recorder::check() const {
  if (error_) return Unexpected(*error_);
  return {};
}

// ---- what the host sees

void Recorder::plan(const Plan& plan, const RunRecord& record) {
  JsonObject data{{"signer", record.signer},
                  {"signer_key", record.signer_key},
                  {"command", list_of_bytes(record.command)},
                  {"image", record.image},
                  {"image_digest", record.image_digest},
                  {"accelerator", record.accelerator}};
  // As it was signed: what is enforced, defaults and all.
  if (const auto canonical = codec::parse_json(plan.seal.canonical)) {
    if (const Json* manifest = canonical->find("manifest")) {
      for (const char* member : {"capabilities", "limits", "egress"})
        if (const Json* value = manifest->find(member)) data[member] = *value;
      data["credentials"] = names_of(manifest->find("credentials"));
      name_rules(data["egress"], plan.manifest.egress);
    }
  }
  append(Vantage::kHost, "run.plan", std::move(data));
  for (const auto& repository : plan.repositories)
    append(Vantage::kHost, "file.in",
           {{"path", evidence::json_of_bytes(repository.entry)},
            {"type", "git_repo"},
            {"commit", repository.commit}});
}

void Recorder::files_in(const PlannedDisk& disk, const std::vector<workspace::PackedFile>& files) {
  if (files.empty()) return;
  static constexpr const char* kTypes[] = {"entries", "git_repo", "mount", "skills", "memory"};
  Sha256 list;
  uint64_t bytes = 0;
  for (const auto& file : files) {
    const std::string path = disk.at.empty() ? file.path : disk.at + "/" + file.path;
    list.update(file.digest + "  " + path + "\n");
    bytes += file.size;
    if (++files_in_ <= kMostFilesIn)
      append(Vantage::kHost, "file.in",
             {{"path", evidence::json_of_bytes(path)},
              {"type", "file"},
              {"size", file.size},
              {"digest", file.digest}});
  }
  append(Vantage::kHost, "file.in",
         {{"path", evidence::json_of_bytes(disk.at)},
          {"type", kTypes[static_cast<size_t>(disk.content)]},
          {"files", files.size()},
          {"size", bytes},
          {"digest", list.hex()}});
}

void Recorder::state(const std::string& state, JsonObject more) {
  more["state"] = state;
  append(Vantage::kHost, "run.state", std::move(more));
}

void Recorder::caps(const std::vector<KeptCap>& caps) {
  for (const auto& cap : caps)
    append(Vantage::kHost, "run.cap",
           {{"name", cap.cap}, {"limit", cap.limit}, {"kept_by", list_of(cap.by)}});
}

void Recorder::crossing(const egress::Crossing& crossing) {
  if (crossing.kind == egress::Crossing::Kind::kAlarm) ++alarms_;
  if (socket_watch_ && !log_->crowded()) ready();  // what the collectors told before
  waiting_.push_back({crossing, steady_clock::now()});
  // An alarm may end the run, which is not the time to wait.
  join_crossings(crossing.kind == egress::Crossing::Kind::kAlarm ? Join::kAll : Join::kWhatIsKnown);
}

void Recorder::join_crossings(Join which) {
  while (!waiting_.empty()) {
    const uint32_t pid = sockets_.process_of(waiting_.front().crossing);
    const bool may_come =
        pid == 0 && waiting_.front().crossing.source_port != 0 && hears_sockets_ && socket_watch_;
    if (may_come && which == Join::kWhatIsKnown && waiting_.size() <= kMostWaiting &&
        steady_clock::now() - waiting_.front().since < kLongestJoin)
      return;
    const Waiting one = std::move(waiting_.front());
    waiting_.pop_front();  // before it is written: what fails there comes back here
    append_crossing(one.crossing, pid);
  }
}

void Recorder::append_crossing(const egress::Crossing& crossing, uint32_t pid) {
  Json json = egress::to_json(crossing);
  JsonObject* data = json.as_object();
  if (!data) return;
  const std::string kind = std::string("network.") + egress::to_string(crossing.kind);
  data->erase("kind");
  if (pid != 0) (*data)["pid"] = pid;
  append(Vantage::kHost, kind.c_str(), std::move(*data));
}

void Recorder::alarm(const std::string& credential, const std::string& action) {
  append(Vantage::kHost, "alarm", {{"credential", credential}, {"action", action}});
}

void Recorder::cap_hit(const std::string& cap, const std::vector<KeptCap>& kept) {
  const auto known =
      std::find_if(kept.begin(), kept.end(), [&](const auto& each) { return each.cap == cap; });
  append(Vantage::kHost, "cap.hit", {{"cap", cap}, {"limit", known == kept.end() ? "" : known->limit}});
}

void Recorder::denied(const channel::Denied& denied) {
  append(Vantage::kGuest, "denied", {{"what", denied.kind}, {"path", denied.path}, {"count", denied.count}});
}

void Recorder::lost(const std::string& what, uint64_t count) {
  if (count == 0) return;
  lost_ += count;
  append(Vantage::kHost, "lost", {{"what", what}, {"count", count}});
}

// ---- what the collectors tell

void Recorder::watch(Loop& loop, int socket, std::function<void(Error)> failed, std::function<void()> done) {
  if (error_) return failed(*error_);
  on_failed_ = std::move(failed);
  on_done_ = std::move(done);
  socket_ = socket;
  loop_ = &loop;
  heard_ = steady_clock::now();
  socket_watch_ = loop.watch(socket, Loop::kReadable, [this](int) { ready(); });
  clock_watch_ = loop.every(std::chrono::seconds(1), [this] { tick(); });
}

void Recorder::unwatch() {
  join_crossings(Join::kAll);
  socket_watch_.reset();
  clock_watch_.reset();
  hold_watch_.reset();
  loop_ = nullptr;
  on_failed_ = {};
  on_done_ = {};
}

void Recorder::expect_life() {
  expects_life_ = true;
  heard_ = steady_clock::now();
}

void Recorder::ready() {
  const bool was_done = inbox_.done();
  drain();
  join_crossings(Join::kWhatIsKnown);
  if (!was_done && inbox_.done() && on_done_) {
    const auto told = on_done_;  // may end the watch
    told();
  }
  if (loop_ && socket_watch_ && log_->crowded()) hold_up();
}

// The collectors wait, and freeze the container while they do: so an anchor that is slow holds up the agent,
// and what is not anchored stays little.
void Recorder::hold_up() {
  socket_watch_->set_events(0);
  hold_watch_ = loop_->once(kHoldUp, [this] {
    heard_ = steady_clock::now();
    if (!socket_watch_) return;
    if (log_->crowded()) return hold_up();
    socket_watch_->set_events(Loop::kReadable);
  });
}

void Recorder::drain() {
  std::array<char, 128u << 10> buffer;
  for (int rounds = 0; rounds < 8 && socket_ >= 0 && !error_; ++rounds) {
    const ssize_t n = ::read(socket_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {  // the machine is gone, which whoever owns it sees
      socket_watch_.reset();
      socket_ = -1;
      return;
    }
    heard_ = steady_clock::now();
    if (auto taken = inbox_.receive({buffer.data(), static_cast<size_t>(n)}); !taken) {
      Error error = taken.error();
      if (!error.code.starts_with("evidence."))
        error = Error{
            "collectors.protocol", "the guest's collectors broke their protocol: " + error.message, {}, 0};
      return failed(std::move(error));
    }
  }
}

void Recorder::tick() {
  join_crossings(Join::kWhatIsKnown);
  if (auto kept = log_->tick(); !kept) return failed(kept.error());
  if (expects_life_ && !done() && steady_clock::now() - heard_ > kMostSilence)
    failed(Error{"collectors.silent",
                 "the guest's collectors said nothing for " + std::to_string(kMostSilence.count()) +
                     " s; nothing goes on unrecorded",
                 {},
                 0});
}

Result<void> Recorder::observed(const channel::observed::Observation& observation) {
  std::visit([this](const auto& known) { take(known); }, observation);
  return check();
}

void Recorder::take(const channel::observed::Hello& m) {
  greeted_ = true;
  missing_ = !m.missing.empty();
  hears_sockets_ = std::find(m.collectors.begin(), m.collectors.end(), "connections") != m.collectors.end();
  append(Vantage::kGuest, "collectors",
         {{"working", list_of(m.collectors)}, {"missing", list_of(m.missing)}});
}

void Recorder::take(const channel::observed::Fork& m) {
  append(Vantage::kGuest, "process.fork", {{"pid", m.pid}, {"parent", m.parent}, {"at_us", m.at_us}});
}

// `digest`, `size` and `kept` of a content that was told before.
JsonObject Recorder::reference(uint32_t content) const {
  if (content == 0 || content > contents_.size()) return {};
  const Kept& kept = contents_[content - 1];
  return {{"digest", kept.digest}, {"size", kept.size}, {"kept", kept.kept}};
}

void Recorder::take(const channel::observed::Exec& m) {
  JsonObject data = reference(m.content);
  data.merge(JsonObject{{"pid", m.pid},
                        {"parent", m.parent},
                        {"at_us", m.at_us},
                        {"uid", m.uid},
                        {"gid", m.gid},
                        {"file", evidence::json_of_bytes(m.file)},
                        {"image", m.from_image},
                        {"argv", list_of_bytes(m.argv)},
                        {"argc", m.argc},
                        {"cut", m.cut},
                        {"cwd", evidence::json_of_bytes(m.cwd)}});
  if (const auto* file = m.from_image ? executables_.find(m.file) : nullptr) {
    data["digest"] = file->digest;
    data["size"] = file->size;
  }
  append(Vantage::kGuest, "process.exec", std::move(data));
}

void Recorder::take(const channel::observed::Exit& m) {
  append(Vantage::kGuest, "process.exit",
         {{"pid", m.pid},
          {"at_us", m.at_us},
          {"status", m.status},
          {"user_us", m.user_us},
          {"system_us", m.system_us},
          {"max_rss_kib", m.max_rss_kib}});
}

void Recorder::take(const channel::observed::Content& m) {
  if (contents_.size() >= kMostContents)
    return failed(
        Error{"evidence.full", "the sandbox ran more different programs and scripts than are kept", {}, 0});
  contents_.push_back({"", m.size, 0, false});
  if (auto begun = log_->content().begin(); !begun) failed(begun.error());
}

Result<void> Recorder::content_bytes(std::string_view bytes) {
  return log_->content().write(bytes);
}

Result<void> Recorder::content_end() {
  TRY_ASSIGN(const auto stored, log_->content().end());
  contents_.back().digest = stored.digest;
  contents_.back().kept = stored.size;
  contents_.back().cut = stored.cut;
  return {};
}

void Recorder::take(const channel::observed::Code& m) {
  JsonObject data = reference(m.content);
  std::string note = m.note;
  if (m.content != 0 && m.content <= contents_.size() && contents_[m.content - 1].cut)
    note = "cut after " + std::to_string(contents_[m.content - 1].kept) +
           " bytes: the record keeps no more of this run" + (note.empty() ? "" : "; " + note);
  data.merge(JsonObject{{"pid", m.pid},
                        {"at_us", m.at_us},
                        {"how", m.how},
                        {"path", evidence::json_of_bytes(m.path)},
                        {"interpreter", evidence::json_of_bytes(m.interpreter)},
                        {"writer", m.writer},
                        {"note", note}});
  append(Vantage::kGuest, "code", std::move(data));
}

void Recorder::take(const channel::observed::Change& m) {
  JsonObject data{{"pid", m.pid}, {"at_us", m.at_us}, {"path", evidence::json_of_bytes(m.path)}};
  if (!m.to.empty()) data["to"] = evidence::json_of_bytes(m.to);
  append(Vantage::kGuest, ("file." + m.what).c_str(), std::move(data));
}

void Recorder::take(const channel::observed::Final& m) {
  append(
      Vantage::kGuest, "file.final",
      {{"path", evidence::json_of_bytes(m.path)}, {"size", m.size}, {"digest", m.digest}, {"note", m.note}});
}

void Recorder::take(const channel::observed::Connect& m) {
  sockets_.take(m);
  append(Vantage::kGuest, "socket",
         {{"pid", m.pid},
          {"at_us", m.at_us},
          {"protocol", m.protocol},
          {"source_port", m.source_port},
          {"address", m.address},
          {"port", m.port}});
}

void Recorder::take(const channel::observed::Lost& m) {
  lost_ += m.count;
  append(Vantage::kGuest, "lost", {{"what", m.what}, {"count", m.count}});
}

void Recorder::take(const channel::observed::Alive&) {}

void Recorder::take(const channel::observed::Done&) {
  append(Vantage::kGuest, "collectors.done", {});
}

// ---- the end

void Recorder::results(const RunRecord& record) {
  for (const auto& branch : record.branches)
    append(Vantage::kHost, "file.out",
           {{"path", evidence::json_of_bytes(branch.entry)},
            {"repository", evidence::json_of_bytes(branch.repository)},
            {"ref", branch.ref},
            {"commit", branch.commit},
            {"new_commits", branch.new_commits},
            {"uncommitted", branch.uncommitted}});
  if (record.outputs_directory.empty()) return;
  const auto files = output_files(record.outputs_directory);
  if (!files) return failed(files.error());
  for (const auto& file : *files)
    append(Vantage::kHost, "file.out",
           {{"path", evidence::json_of_bytes(file.path)}, {"size", file.size}, {"digest", file.digest}});
}

Result<void> Recorder::end(const RunRecord& record) {
  JsonObject data{{"status", record.exit_status.value_or(0)},
                  {"reason", record.reason},
                  {"message", record.message},
                  {"complete", !error_ && greeted_ && done() && !missing_ && lost_ == 0},
                  {"lost", lost_},
                  {"alarms", alarms_}};
  // Also where it could not be written before: there may be room again for what matters most.
  const auto closed = log_->close(std::move(data));
  if (unwritable_) return check();
  if (!closed) return closed;
  return evidence::write_attestation(directory_, *key_);
}

}  // namespace firestop::sandbox
