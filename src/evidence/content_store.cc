#include "evidence/content_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/path.h"

namespace firestop::evidence {
namespace {

constexpr const char* kPart = ".part";  // the one that is being written
constexpr size_t kMostUnsynced = 64;    // descriptors kept open until sync()
constexpr mode_t kContentMode = 0400;

Unexpected write_error(const std::string& what) {
  return fail_errno("evidence.write", what);
}

bool is_digest(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), hex);
}

std::string name_of(const std::string& digest) {
  return digest.substr(0, 2) + "/" + digest;
}

Result<UniqueFd> open_directory(const std::string& path) {
  auto fd = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return write_error("cannot open " + path);
  return fd;
}

}  // namespace

struct ContentStore::State {
  std::string path;
  UniqueFd directory;
  uint64_t most = 0, used = 0;
  // The content being written.
  UniqueFd part;
  Sha256 hash;
  uint64_t given = 0, kept = 0;
  // What is not on the disk for sure yet.
  std::vector<UniqueFd> unsynced;
  std::set<std::string> unsynced_directories;

  bool has(const std::string& digest) const {
    return ::faccessat(directory.get(), name_of(digest).c_str(), F_OK, 0) == 0;
  }
  Result<void> file_under(const std::string& digest);
  Result<void> sync();
};

// Moves the part to its name.
Result<void> ContentStore::State::file_under(const std::string& digest) {
  const std::string shard = digest.substr(0, 2);
  if (::mkdirat(directory.get(), shard.c_str(), 0700) != 0 && errno != EEXIST)
    return write_error("cannot make " + path + "/" + shard);
  if (::fchmod(part.get(), kContentMode) != 0) return write_error("cannot set the mode of a file in " + path);
  if (::renameat(directory.get(), kPart, directory.get(), name_of(digest).c_str()) != 0)
    return write_error("cannot store " + path + "/" + name_of(digest));
  used += kept;
  // Begun now, so that the sync has little to wait for.
  (void)::sync_file_range(part.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  unsynced.push_back(std::move(part));
  unsynced_directories.insert(shard);
  if (unsynced.size() >= kMostUnsynced) return sync();
  return {};
}

Result<void> ContentStore::State::sync() {
  for (const UniqueFd& fd : unsynced)
    if (::fdatasync(fd.get()) != 0) return write_error("cannot sync a file in " + path);
  for (const auto& shard : unsynced_directories) {
    TRY_ASSIGN(const UniqueFd fd, open_directory(join_path(path, shard)));
    if (::fsync(fd.get()) != 0) return write_error("cannot sync " + path + "/" + shard);
  }
  if (!unsynced_directories.empty() && ::fsync(directory.get()) != 0)
    return write_error("cannot sync " + path);
  unsynced.clear();
  unsynced_directories.clear();
  return {};
}

ContentStore::ContentStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
ContentStore::ContentStore(ContentStore&&) noexcept = default;
ContentStore& ContentStore::operator=(ContentStore&&) noexcept = default;
ContentStore::~ContentStore() = default;

Result<ContentStore> ContentStore::open(const std::string& directory, uint64_t most_bytes) {
  auto state = std::make_unique<State>();
  state->path = join_path(directory, "content");
  state->most = most_bytes;
  if (auto made = make_directories(state->path); !made) return fail("evidence.write", made.error().message);
  TRY_ASSIGN(state->directory, open_directory(state->path));
  return ContentStore(std::move(state));
}

Result<void> ContentStore::begin() {
  State& s = *state_;
  if (::unlinkat(s.directory.get(), kPart, 0) != 0 && errno != ENOENT)
    return write_error("cannot remove " + s.path + "/" + kPart);
  s.part.reset(::openat(s.directory.get(), kPart, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!s.part.valid()) return write_error("cannot make a file in " + s.path);
  s.hash = Sha256();
  s.given = s.kept = 0;
  return {};
}

Result<void> ContentStore::write(std::string_view bytes) {
  State& s = *state_;
  if (!s.part.valid()) return fail("evidence.write", "no content was begun");
  s.hash.update(bytes);
  s.given += bytes.size();
  const uint64_t room = s.most - std::min(s.most, s.used + s.kept);
  bytes = bytes.substr(0, std::min<uint64_t>(room, bytes.size()));
  if (auto written = write_all(s.part.get(), bytes); !written)
    return write_error("cannot write to " + s.path);
  s.kept += bytes.size();
  return {};
}

Result<ContentStore::Stored> ContentStore::end() {
  State& s = *state_;
  if (!s.part.valid()) return fail("evidence.write", "no content was begun");
  Stored out{.digest = s.hash.hex(), .size = s.given, .cut = false};
  // What is there already needs no room.
  if (!s.has(out.digest) && s.kept < s.given) {
    auto kept = sha256_file(join_path(s.path, kPart));
    if (!kept) return fail("evidence.write", kept.error().message);
    out = {.digest = *kept, .size = s.kept, .cut = true};
  }
  if (!s.has(out.digest)) {
    TRY(s.file_under(out.digest));
  } else if (::unlinkat(s.directory.get(), kPart, 0) != 0) {
    return write_error("cannot remove " + s.path + "/" + kPart);
  }
  s.part.reset();
  return out;
}

Result<ContentStore::Stored> ContentStore::put(std::string_view bytes) {
  TRY(begin());
  TRY(write(bytes));
  return end();
}

Result<void> ContentStore::sync() {
  return state_->sync();
}

std::string content_path(const std::string& directory, const std::string& digest) {
  if (!is_digest(digest)) return {};
  return join_path(directory, "content/" + name_of(digest));
}

}  // namespace firestop::evidence
