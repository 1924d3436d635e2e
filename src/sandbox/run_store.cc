#include "sandbox/run_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "jail/cgroup.h"

namespace firestop::sandbox {
namespace {

constexpr off_t kOwnerByte = 0;
constexpr off_t kSweeperByte = 1;
constexpr uint64_t kRecordLimit = 4u << 20;
constexpr const char* kMaking = ".new-";
constexpr const char* kRemoving = ".gone-";

struct flock byte_lock(off_t byte, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

enum class Wait { kNo, kYes };

// Whether the lock was got; waiting goes on over signals.
bool lock_byte(int fd, off_t byte, Wait wait) {
  struct flock lock = byte_lock(byte, F_WRLCK);
  while (::fcntl(fd, wait == Wait::kYes ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0)
    if (errno != EINTR) return false;
  return true;
}

// Asks without taking, so that somebody who only looks is never mistaken for an owner.
bool is_locked(int fd, off_t byte) {
  struct flock lock = byte_lock(byte, F_WRLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

Result<UniqueFd> open_lock(const std::string& path, int more_flags) {
  return open_file(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags);
}

// Invalid if it was not to wait and somebody else holds it.
Result<UniqueFd> lock_store(const std::string& runs, Wait wait) {
  TRY_ASSIGN(UniqueFd fd, open_lock(join_path(runs, ".lock"), O_CREAT));
  if (lock_byte(fd.get(), kOwnerByte, wait)) return fd;
  if (wait == Wait::kNo && (errno == EAGAIN || errno == EACCES)) return UniqueFd();
  return fail_errno("run.store", "cannot lock " + join_path(runs, ".lock"));
}

// No lock file: the owner finished, or the directory is gone. Unreadable: say alive, nobody may touch it.
bool owner_lives(const std::string& directory) {
  auto lock = open_lock(join_path(directory, "lock"), 0);
  if (!lock) return lock.error().sys_errno != ENOENT && lock.error().sys_errno != ENOTDIR;
  return is_locked(lock->get(), kOwnerByte);
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), &::closedir);
  if (!dir) {
    if (errno == ENOENT) return names;
    return fail_errno("run.store", "cannot read " + directory);
  }
  while (const dirent* entry = ::readdir(dir.get())) names.emplace_back(entry->d_name);
  return names;
}

// Whole names: what was half written has another behind them.
bool stays(std::string_view name) {
  return name == "run.json" || name == "lock" || name == "manifest.yaml" || name == "manifest.canonical" ||
         name == "console.log" || name == "evidence";
}

Result<void> remove_work(const std::string& directory) {
  TRY_ASSIGN(const auto names, names_in(directory));
  for (const auto& name : names)
    if (name != "." && name != ".." && !stays(name)) TRY(remove_tree(join_path(directory, name)));
  return {};
}

Result<RunRecord> read_record(const std::string& directory) {
  TRY_ASSIGN(const std::string text, read_file(join_path(directory, "run.json"), kRecordLimit));
  TRY_ASSIGN(const codec::Json json, codec::parse_json(text));
  TRY_ASSIGN(RunRecord record, RunRecord::from_json(json));
  if (record.id != file_name(directory)) return fail("run.bad_record", "run.json names another run");
  return record;
}

Result<void> write_record(const std::string& directory, const RunRecord& record) {
  return write_file_atomic(join_path(directory, "run.json"), codec::write_json_pretty(record.to_json()));
}

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

RunStore::Listed look_at(const std::string& runs, const std::string& id) {
  const std::string directory = join_path(runs, id);
  RunStore::Listed listed;
  // Liveness first: who ends in between is then shown as alive and ended, never as dead and running.
  listed.alive = owner_lives(directory);
  if (auto record = read_record(directory)) {
    listed.record = std::move(*record);
  } else {
    listed.note = record.error().message;
    listed.record.state = RunState::kDied;
  }
  listed.record.id = id;
  return listed;
}

// True if `directory` was left by a dead owner and is now cleaned.
Result<bool> sweep_one(const std::string& directory) {
  const std::string lock_path = join_path(directory, "lock");
  auto lock = open_lock(lock_path, 0);
  if (!lock) return false;  // ended in good order, or not ours to touch
  if (!lock_byte(lock->get(), kSweeperByte, Wait::kNo)) return false;  // another sweeper is here
  if (is_locked(lock->get(), kOwnerByte)) return false;
  // Owners lock before the directory can be seen and never again: this run has none any more. The file may
  // be gone by now, if the owner ended or another sweeper was faster.
  struct stat st{};
  if (::fstat(lock->get(), &st) != 0 || st.st_nlink == 0) return false;
  auto record = read_record(directory);
  if (!record && record.error().code == "run.newer_version") return false;
  const bool unfinished =
      !record || record->state == RunState::kPreparing || record->state == RunState::kRunning;
  if (record && unfinished) {
    record->state = RunState::kDied;
    record->reason = "owner.died";
    record->message = "the firestop process that owned this run ended without finishing it";
    TRY(write_record(directory, *record));
  }
  TRY(remove_work(directory));
  // Gone: somebody removed the run meanwhile.
  return ::unlink(lock_path.c_str()) == 0 && unfinished;
}

}  // namespace

OwnedRun::~OwnedRun() {
  if (lock_.valid() && ended_) ::unlink(join_path(directory_, "lock").c_str());
}

Result<void> OwnedRun::save() {
  TRY(write_record(directory_, record_));
  ended_ = record_.state == RunState::kEnded;
  return {};
}

Result<void> OwnedRun::remove_work_files() {
  return remove_work(directory_);
}

RunStore::RunStore(const std::string& state_directory) : runs_(join_path(state_directory, "runs")) {}

std::string RunStore::directory_of(const std::string& id) const {
  return join_path(runs_, id);
}

Result<OwnedRun> RunStore::create(const std::string& name, const std::string& id) {
  if (!valid_name(name))
    return fail("usage.run_name", "'" + name + "' cannot be the name of a run",
                "up to 63 of a-z, 0-9, '.', '_', '-', beginning with a letter or digit, "
                "without '..' and without '.' or '.lock' at the end");
  if (!valid_id(id)) return fail("run.bad_id", "'" + id + "' is no run id");
  TRY(make_directories(runs_, 0700));
  TRY_ASSIGN(const UniqueFd store_lock, lock_store(runs_, Wait::kYes));

  TRY_ASSIGN(const auto others, names_in(runs_));
  for (const auto& other : others) {
    if (!valid_id(other) || !owner_lives(join_path(runs_, other))) continue;
    const auto record = read_record(join_path(runs_, other));
    if (record && record->name == name && record->state != RunState::kEnded)
      return fail("run.name_taken", "a run named '" + name + "' is still alive (" + other + ")",
                  "give this one another name with --name, or wait for the other");
  }

  const std::string making = join_path(runs_, kMaking + id);
  if (::mkdir(making.c_str(), 0700) != 0) return fail_errno("run.store", "cannot make " + making);
  OwnedRun run;
  TRY_ASSIGN(run.lock_, open_lock(join_path(making, "lock"), O_CREAT | O_EXCL));
  if (!lock_byte(run.lock_.get(), kOwnerByte, Wait::kNo))
    return fail_errno("run.store", "cannot lock " + making);
  run.record_.id = id;
  run.record_.name = name;
  run.record_.created_ms = now_ms();
  run.directory_ = making;
  TRY(run.save());
  run.directory_ = directory_of(id);
  if (::rename(making.c_str(), run.directory_.c_str()) != 0)
    return fail_errno("run.store", "cannot make " + run.directory_);
  return run;
}

Result<std::vector<RunStore::Listed>> RunStore::list() const {
  TRY_ASSIGN(auto names, names_in(runs_));
  std::erase_if(names, [](const std::string& name) { return !valid_id(name); });
  std::sort(names.rbegin(), names.rend());
  std::vector<Listed> runs;
  for (const auto& id : names) {
    Listed listed = look_at(runs_, id);
    if (!listed.note.empty() && !exists(directory_of(id))) continue;  // removed while we looked
    runs.push_back(std::move(listed));
  }
  return runs;
}

Result<RunStore::Listed> RunStore::find(const std::string& id_or_name) const {
  if (valid_id(id_or_name) && exists(directory_of(id_or_name))) return look_at(runs_, id_or_name);
  TRY_ASSIGN(auto runs, list());
  for (auto& run : runs)
    if (!id_or_name.empty() && run.note.empty() && run.record.name == id_or_name) return std::move(run);
  std::vector<Listed*> matches;
  for (auto& run : runs)
    if (!id_or_name.empty() && run.record.id.starts_with(id_or_name)) matches.push_back(&run);
  if (matches.empty())
    return fail("run.not_found", "there is no run '" + id_or_name + "'", "`firestop runs` lists them");
  if (matches.size() > 1)
    return fail("run.ambiguous",
                "'" + id_or_name + "' could be any of " + std::to_string(matches.size()) + " runs, such as " +
                    matches[0]->record.id + " and " + matches[1]->record.id,
                "give more of the id");
  return std::move(*matches.front());
}

Result<void> RunStore::remove(const std::string& id) {
  if (!valid_id(id)) return fail("run.not_found", "there is no run '" + id + "'");
  const std::string directory = directory_of(id);
  if (owner_lives(directory))
    return fail("run.alive", "run " + id + " is still alive", "end its `firestop run` first");
  // Out of sight in one step: what a crash leaves of it now, the next sweep removes. With the lock held, no
  // sweep removes it at the same time.
  TRY_ASSIGN(const UniqueFd store_lock, lock_store(runs_, Wait::kYes));
  const std::string gone = join_path(runs_, kRemoving + id);
  if (::rename(directory.c_str(), gone.c_str()) != 0) {
    if (errno == ENOENT) return fail("run.not_found", "there is no run '" + id + "'");
    return fail_errno("run.store", "cannot remove " + directory);
  }
  return remove_tree(gone);
}

Result<std::vector<std::string>> RunStore::sweep() {
  std::vector<std::string> swept;
  TRY_ASSIGN(auto names, names_in(runs_));
  std::sort(names.begin(), names.end());
  bool litter = false;
  for (const auto& name : names) {
    if (name.starts_with(kMaking) || name.starts_with(kRemoving)) litter = true;
    if (!valid_id(name)) continue;
    // One run that can't be cleaned must not keep the others from being cleaned.
    if (const auto done = sweep_one(join_path(runs_, name)); done && *done) swept.push_back(name);
  }
  if (!swept.empty())
    jail::sweep_cgroups(
        "", [&](const std::string& run) { return std::binary_search(swept.begin(), swept.end(), run); });
  if (!litter) return swept;
  TRY_ASSIGN(const UniqueFd store_lock, lock_store(runs_, Wait::kNo));
  if (!store_lock.valid()) return swept;  // somebody makes or removes a run right now
  TRY_ASSIGN(names, names_in(runs_));
  for (const auto& name : names)
    if (name.starts_with(kMaking) || name.starts_with(kRemoving)) (void)remove_tree(join_path(runs_, name));
  return swept;
}

std::string RunStore::new_id() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  (void)std::strftime(text, sizeof text, "%Y%m%d-%H%M%S-", &utc);
  return text + random_hex(3);
}

bool RunStore::valid_id(std::string_view id) {
  constexpr std::string_view kShape = "dddddddd-dddddd-xxxxxx";
  if (id.size() != kShape.size()) return false;
  for (size_t i = 0; i < id.size(); ++i) {
    const bool digit = id[i] >= '0' && id[i] <= '9';
    const bool hex = digit || (id[i] >= 'a' && id[i] <= 'f');
    if (kShape[i] == '-' ? id[i] != '-' : kShape[i] == 'd' ? !digit : !hex) return false;
  }
  return true;
}

bool RunStore::valid_name(const std::string& name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (name.empty() || name.size() > 63 || !plain(name.front())) return false;
  if (!std::all_of(name.begin(), name.end(),
                   [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; }))
    return false;
  return name.find("..") == std::string::npos && !name.ends_with(".lock") && !name.ends_with('.');
}

}  // namespace firestop::sandbox
