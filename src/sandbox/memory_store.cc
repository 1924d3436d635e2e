#include "sandbox/memory_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "manifest/manifest.h"
#include "manifest/rules.h"

namespace firestop::sandbox {
namespace {

using codec::Json;
using codec::JsonObject;

constexpr uint64_t kRecordLimit = 64u << 10;
constexpr size_t kMostOwner = 64;  // bytes of the lock that are looked at: a run's id
constexpr const char* kForgetting = ".gone-";

enum class Wait { kNo, kYes };

struct flock whole_lock() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Whether it was got; waiting goes on over signals.
bool lock_file(int fd, Wait wait) {
  struct flock lock = whole_lock();
  while (::fcntl(fd, wait == Wait::kYes ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0)
    if (errno != EINTR) return false;
  return true;
}

bool is_locked(int fd) {
  struct flock lock = whole_lock();
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

Result<UniqueFd> open_lock(const std::string& path) {
  return open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
}

// Whoever makes or forgets a memory holds it, so that none vanishes under one who takes it.
Result<UniqueFd> lock_store(const std::string& memories) {
  TRY_ASSIGN(UniqueFd fd, open_lock(join_path(memories, ".lock")));
  if (!lock_file(fd.get(), Wait::kYes)) return fail_errno("memory.store", "cannot lock " + memories);
  return fd;
}

std::string owner_in(int fd) {
  char text[kMostOwner];
  const ssize_t n = ::pread(fd, text, sizeof text, 0);
  const std::string owner(text, n > 0 ? static_cast<size_t>(n) : 0);
  const auto plain = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; };
  return owner.empty() || !std::all_of(owner.begin(), owner.end(), plain) ? "unknown" : owner;
}

Unexpected busy(const std::string& name, int lock) {
  return fail(
      "memory.busy", "the memory of '" + name + "' is in use by the run " + owner_in(lock),
      "runs of one manifest name share one memory, one after the other: wait for that run, or end it");
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), &::closedir);
  if (!dir && errno == ENOENT) return names;
  if (!dir) return fail_errno("memory.store", "cannot read " + directory);
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json record_json(const MemoryRecord& record) {
  return JsonObject{{"version", 1},
                    {"run", record.run},
                    {"manifest", record.manifest_file},
                    {"kept_ms", record.kept_ms},
                    {"files", record.files},
                    {"bytes", record.bytes}};
}

MemoryRecord read_record(const std::string& path) {
  const auto text = read_file(path, kRecordLimit);
  const auto json = text ? codec::parse_json(*text) : Result<Json>(Json());
  if (!json || json->int_or("version", 0) != 1) return {};
  MemoryRecord record;
  record.run = json->string_or("run", "");
  record.manifest_file = json->string_or("manifest", "");
  record.kept_ms = json->int_or("kept_ms", 0);
  record.files = static_cast<uint32_t>(std::clamp<int64_t>(json->int_or("files", 0), 0, UINT32_MAX));
  record.bytes = static_cast<uint64_t>(std::max<int64_t>(0, json->int_or("bytes", 0)));
  return record;
}

// What was imported is the memory directory and nothing beside it.
Result<void> check_one_folder(const std::string& next) {
  TRY_ASSIGN(const auto names, names_in(next));
  struct stat status{};
  if (names.size() != 1 || names[0] != manifest::kMemoryPath ||
      ::lstat(join_path(next, names[0]).c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail("memory.bad_archive", "the archive of the memory directory holds something else");
  return {};
}

// On the disk before it counts: a power cut, too, leaves one of the two.
Result<void> settle(const std::string& folder) {
  TRY_ASSIGN(const UniqueFd fd, open_file(folder, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) != 0) return fail_errno("memory.not_kept", "cannot write " + folder);
  return {};
}

// `next` instead of `kept`; the old one is at `next` then, if there was one.
Result<void> put_in_place(const std::string& next, const std::string& kept) {
  if (::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, kept.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno == ENOENT && ::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, kept.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  return fail_errno("memory.not_kept", "cannot put " + next + " into the place of " + kept);
}

}  // namespace

std::string OwnedMemory::content() const {
  const std::string path = join_path(directory_, "kept/content");
  return exists(path) ? path : "";
}

MemoryRecord OwnedMemory::record() const {
  return read_record(join_path(directory_, "kept/memory.json"));
}

Result<MemoryRecord> OwnedMemory::keep(const std::string& archive, const std::string& work,
                                       const workspace::MemoryCap& most, MemoryRecord record) {
  const std::string next = join_path(work, "memory-next");
  const workspace::ImportLimits limits{most.bytes, most.files + 1, workspace::ImportLimits::Modes::kOpenToUs};
  TRY_ASSIGN(const auto files, workspace::import_archive(archive, next, limits));
  if (files.files == 0) return fail("memory.bad_archive", "the memory directory is gone");
  TRY(check_one_folder(next));
  if (::rename(join_path(next, manifest::kMemoryPath).c_str(), join_path(next, "content").c_str()) != 0)
    return fail_errno("memory.not_kept", "cannot rename below " + next);
  record.files = files.files - 1;
  record.bytes = files.bytes;
  TRY(write_file_atomic(join_path(next, "memory.json"), codec::write_json_pretty(record_json(record))));
  TRY(settle(next));
  TRY(put_in_place(next, join_path(directory_, "kept")));
  (void)remove_tree(next);
  return record;
}

MemoryStore::MemoryStore(const std::string& state_directory)
    : memories_(join_path(state_directory, "memory")) {}

Result<OwnedMemory> MemoryStore::take(const std::string& name, const std::string& run_id) {
  // The name becomes a path: the loader has checked it, and here is where it counts.
  if (const auto why = manifest::why_not_run_name(name); !why.empty())
    return fail("memory.bad_name", "'" + name + "' " + why);
  TRY(make_directories(memories_, 0700));
  TRY_ASSIGN(const UniqueFd store_lock, lock_store(memories_));
  TRY_ASSIGN(const auto names, names_in(memories_));
  for (const auto& left : names)
    if (left.starts_with(kForgetting)) (void)remove_tree(join_path(memories_, left));
  OwnedMemory memory;
  memory.name_ = name;
  memory.directory_ = join_path(memories_, name);
  TRY(make_directories(memory.directory_, 0700));
  TRY_ASSIGN(UniqueFd lock, open_lock(join_path(memory.directory_, "lock")));
  if (!lock_file(lock.get(), Wait::kNo)) return busy(name, lock.get());
  if (::ftruncate(lock.get(), 0) != 0) return fail_errno("memory.store", "cannot write " + memory.directory_);
  TRY(write_all(lock.get(), run_id));
  memory.lock_ = std::move(lock);
  return memory;
}

Result<std::vector<MemoryStore::Listed>> MemoryStore::list() const {
  std::vector<Listed> out;
  TRY_ASSIGN(const auto names, names_in(memories_));
  for (const auto& name : names) {
    if (!manifest::why_not_run_name(name).empty()) continue;
    const std::string directory = join_path(memories_, name), folder = join_path(directory, "kept/content");
    Listed one{name, "", read_record(join_path(directory, "kept/memory.json")), exists(folder) ? folder : ""};
    const auto lock = open_file(join_path(directory, "lock"), O_RDWR | O_NOFOLLOW);
    if (lock && is_locked(lock->get())) one.user = owner_in(lock->get());
    if (!one.folder.empty() || !one.user.empty()) out.push_back(std::move(one));
  }
  return out;
}

Result<void> MemoryStore::forget(const std::string& name) {
  const std::string directory = join_path(memories_, name);
  if (!manifest::why_not_run_name(name).empty() || !exists(directory))
    return fail("memory.not_found", "nothing is kept under the name '" + name + "'",
                "`firestop memory list` has the names");
  TRY_ASSIGN(const UniqueFd store_lock, lock_store(memories_));
  TRY_ASSIGN(const UniqueFd lock, open_lock(join_path(directory, "lock")));
  if (!lock_file(lock.get(), Wait::kNo)) return busy(name, lock.get());
  const std::string gone = join_path(memories_, kForgetting + random_hex(8));
  if (::rename(directory.c_str(), gone.c_str()) != 0)
    return fail_errno("memory.store", "cannot remove " + directory);
  return remove_tree(gone);
}

}  // namespace firestop::sandbox
