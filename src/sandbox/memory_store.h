// What agents keep between runs: one folder a manifest name, below the state directory.
//
//   memory/NAME/lock                held by the run that uses it (fcntl(2), F_OFD_SETLK); its id is in it
//   memory/NAME/kept/content        what is kept: checked files, links that stay inside
//   memory/NAME/kept/memory.json    who kept it, when, and how much
//
// `kept` is replaced as a whole by one renameat2(2): at any moment, also after a crash, it is what one run
// left, never parts of two. What a run left is made ready in the run's own directory, so that nothing has to
// be swept here. Runs of one name do not share a memory at the same time: the second does not start, and is
// told who has it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "workspace/workspace.h"

namespace firestop::sandbox {

struct MemoryRecord {
  std::string run, manifest_file;  // whose end it was kept at
  int64_t kept_ms = 0;             // since 1970
  uint32_t files = 0;              // and folders, links; without the memory directory itself
  uint64_t bytes = 0;
};

// A memory that this process owns, until it goes.
class OwnedMemory {
 public:
  OwnedMemory() = default;
  bool valid() const { return lock_.valid(); }
  const std::string& name() const { return name_; }
  // The folder with what is kept; "" if nothing is.
  std::string content() const;
  // Whose it is; empty members if nothing is kept, or the record cannot be read.
  MemoryRecord record() const;
  // Keeps what the archive has instead: one folder, named as the memory directory, with at most `most`. The
  // archive came from the guest and is hostile. `work` is a directory on the same file system, whose content
  // goes with the run. On an error what was kept stays: "import.*", "memory.bad_archive", "memory.not_kept".
  Result<MemoryRecord> keep(const std::string& archive, const std::string& work,
                            const workspace::MemoryCap& most, MemoryRecord record);

 private:
  friend class MemoryStore;
  std::string name_, directory_;
  UniqueFd lock_;
};

class MemoryStore {
 public:
  explicit MemoryStore(const std::string& state_directory);
  // Errors: "memory.busy" names the run that has it; "memory.store".
  Result<OwnedMemory> take(const std::string& name, const std::string& run_id);
  struct Listed {
    std::string name;
    std::string user;  // the run that has it now; "" if none
    MemoryRecord record;
    std::string folder;  // with what is kept
  };
  // By name; those that hold something or are in use.
  Result<std::vector<Listed>> list() const;
  // "memory.not_found", "memory.busy".
  Result<void> forget(const std::string& name);

 private:
  std::string memories_;
};

}  // namespace firestop::sandbox
