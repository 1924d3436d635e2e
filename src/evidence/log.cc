#include "evidence/log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>

#include "base/digest.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "evidence/anchor_thread.h"
#include "evidence/checkpoint.h"

namespace firestop::evidence {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFormat = 1;
constexpr uint64_t kCrowded = 10;  // times what a checkpoint covers

std::string wall_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  char text[40];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  (void)std::snprintf(text + size, sizeof text - size, ".%06ldZ", now.tv_nsec / 1000);
  return text;
}

// A file that only grows.
struct Appended {
  UniqueFd fd;
  std::string path;
  uint64_t size = 0;
  bool torn = false;  // ends in half a line that could not be taken back

  static Result<Appended> create(const std::string& path) {
    Appended out{
        .fd = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600)),
        .path = path};
    if (!out.fd.valid()) return fail_errno("evidence.write", "cannot make " + path);
    return out;
  }
  // All of it or nothing: half a line is taken back, so that what is there verifies.
  Result<void> append(const std::string& line) {
    if (torn) return fail("evidence.write", path + " ends in half a line");
    if (write_all(fd.get(), line)) {
      size += line.size();
      return {};
    }
    auto failed = fail_errno("evidence.write", "cannot write to " + path,
                             "the record ends here, and so does the run; is the disk full?");
    torn = ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0;
    return failed;
  }
  Result<void> sync() const {
    if (::fdatasync(fd.get()) != 0) return fail_errno("evidence.write", "cannot sync " + path);
    return {};
  }
};

Result<void> sync_directory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return fail_errno("evidence.write", "cannot sync " + path);
  return {};
}

}  // namespace

struct Log::State {
  std::string run;
  const HostKey* key = nullptr;
  LogLimits limits;
  std::unique_ptr<AnchorThread> anchor;  // null: none
  Appended events, checkpoints;
  std::unique_ptr<ContentStore> content;

  Clock::time_point began = Clock::now(), signed_at = began;
  uint64_t count = 0, signed_count = 0, checkpoint_number = 0;
  std::string head = std::string(64, '0');
  std::map<std::string, uint64_t, std::less<>> counts;
  std::optional<Error> failed;
  bool closed = false;

  int64_t mono_us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count();
  }
  Result<void> usable() {
    if (!failed && anchor) (void)held(anchor->check());
    if (failed) return tl::unexpected(*failed);
    if (closed) return fail("evidence.closed", "the record of run " + run + " is closed");
    return {};
  }
  // Keeps the first error: after it nothing is taken.
  Result<void> held(Result<void> result) {
    if (!result && !failed) failed = result.error();
    return result;
  }
  Result<std::string> line_of(Vantage vantage, std::string_view kind, codec::JsonObject data) const;
  Result<void> write_line(std::string_view kind, std::string line);
  Result<void> checkpoint(bool final);
  // One at a time is with the anchor: when the host dies, no more than one may be missing there.
  bool may_sign() const { return !anchor || !anchor->busy(); }
  Result<void> wait_for_anchor() { return anchor ? held(anchor->wait()) : Result<void>(); }
};

Result<std::string> Log::State::line_of(Vantage vantage, std::string_view kind,
                                        codec::JsonObject data) const {
  return to_line({.seq = count,
                  .time = wall_time(),
                  .mono_us = mono_us(),
                  .vantage = vantage,
                  .kind = std::string(kind),
                  .data = std::move(data),
                  .prev = head});
}

Result<void> Log::State::write_line(std::string_view kind, std::string line) {
  std::string digest = sha256_hex(line);
  line += '\n';
  TRY(events.append(line));
  head = std::move(digest);
  ++count;
  ++counts[std::string(kind)];
  return {};
}

// What it speaks of is on the disk before it is written.
Result<void> Log::State::checkpoint(bool final) {
  TRY(content->sync());
  TRY(events.sync());
  const std::string line = sign_checkpoint(*key, {.run = run,
                                                  .number = checkpoint_number,
                                                  .count = count,
                                                  .head = head,
                                                  .time = wall_time(),
                                                  .mono_us = mono_us(),
                                                  .final = final});
  TRY(checkpoints.append(line + "\n"));
  TRY(checkpoints.sync());
  signed_count = count;
  ++checkpoint_number;
  signed_at = Clock::now();
  return anchor ? anchor->give(line) : Result<void>();
}

Log::Log() : state_(std::make_unique<State>()) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::create(const std::string& directory, const std::string& run,
                                         const HostKey& key, codec::JsonObject begin, LogLimits limits,
                                         std::function<Result<void>(const std::string&)> anchor) {
  if (::mkdir(directory.c_str(), 0700) != 0) return fail_errno("evidence.write", "cannot make " + directory);
  std::unique_ptr<Log> log(new Log);
  State& s = *log->state_;
  s.run = run;
  s.key = &key;
  s.limits = limits;
  if (anchor) s.anchor = std::make_unique<AnchorThread>(std::move(anchor));
  TRY_ASSIGN(s.events, Appended::create(join_path(directory, "events.jsonl")));
  TRY_ASSIGN(s.checkpoints, Appended::create(join_path(directory, "checkpoints.jsonl")));
  TRY_ASSIGN(ContentStore content, ContentStore::open(directory, limits.content_bytes));
  s.content = std::make_unique<ContentStore>(std::move(content));
  TRY(sync_directory(directory));
  TRY(sync_directory(parent_path(directory)));
  begin["format"] = kFormat;
  begin["run"] = run;
  begin["key"] = key.public_key().id();
  TRY(log->append(Vantage::kHost, "record.begin", std::move(begin)));
  // So that there is no record of which nobody can say whose it is.
  TRY(s.held(s.checkpoint(false)));
  TRY(s.wait_for_anchor());
  return log;
}

Result<void> Log::append(Vantage vantage, std::string_view kind, codec::JsonObject data) {
  State& s = *state_;
  TRY(s.usable());
  TRY_ASSIGN(std::string line, s.line_of(vantage, kind, std::move(data)));
  if (s.events.size + line.size() + 1 > s.limits.events_bytes)
    return s.held(fail("evidence.full", "the record has " + std::to_string(s.events.size) +
                                            " bytes, and no more than " +
                                            std::to_string(s.limits.events_bytes) + " are kept"));
  if (auto written = s.held(s.write_line(kind, std::move(line))); !written) {
    // What was accepted is signed if that can still be done.
    if (s.count > s.signed_count && s.may_sign()) (void)s.checkpoint(false);
    return written;
  }
  if (s.count - s.signed_count >= s.limits.checkpoint_events && s.may_sign())
    return s.held(s.checkpoint(false));
  return tick();
}

ContentStore& Log::content() {
  return *state_->content;
}

Result<void> Log::tick() {
  State& s = *state_;
  TRY(s.usable());
  if (s.count == s.signed_count || Clock::now() - s.signed_at < s.limits.checkpoint_after) return {};
  return s.may_sign() ? s.held(s.checkpoint(false)) : Result<void>();
}

bool Log::crowded() const {
  const State& s = *state_;
  return s.count - s.signed_count >= kCrowded * s.limits.checkpoint_events && !s.may_sign();
}

Result<void> Log::close(codec::JsonObject data) {
  State& s = *state_;
  if (s.closed) return fail("evidence.closed", "the record of run " + s.run + " is closed");
  const auto before = s.wait_for_anchor();
  codec::JsonObject counts;
  for (const auto& [kind, number] : s.counts) counts[kind] = number;
  data["counts"] = std::move(counts);
  if (s.failed) data["complete"] = false;
  TRY_ASSIGN(std::string line, s.line_of(Vantage::kHost, "record.end", std::move(data)));
  TRY(s.held(s.write_line("record.end", std::move(line))));
  s.closed = true;
  TRY(s.held(s.checkpoint(true)));
  TRY(s.wait_for_anchor());
  return before;
}

uint64_t Log::count() const {
  return state_->count;
}

uint64_t Log::covered() const {
  return state_->signed_count;
}

bool Log::anchored() const {
  return state_->may_sign();
}

const std::string& Log::head() const {
  return state_->head;
}

}  // namespace firestop::evidence
