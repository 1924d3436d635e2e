// The runs of this user, one directory each below the state directory: `runs/<id>/run.json`, a lock that a
// crash releases, and, while it runs, its disks. Who holds the lock owns the run; process ids play no part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "codec/json.h"

namespace firestop::sandbox {

enum class RunState { kPreparing, kRunning, kEnded, kDied };  // kDied: its owner vanished

struct RunRecord {
  std::string id;        // "20261129-132901-7f3a9c": sorts by time
  std::string name;      // of --name, or made from the manifest's
  std::string manifest_file, manifest_name, manifest_digest;  // SHA-256 of the manifest's bytes
  std::string image, image_digest, accelerator;
  std::vector<std::string> command;
  int64_t created_ms = 0, started_ms = 0, ended_ms = 0;  // since 1970; 0 means not yet
  RunState state = RunState::kPreparing;
  std::optional<int> exit_status;  // what `firestop run` ended with
  std::string reason;              // stable code when Firestop ended it: "cap.output", "rating.reached", ...
  std::string message;
  struct Branch {
    std::string entry, repository, ref, commit;
    uint32_t new_commits = 0;
    bool uncommitted = false;
  };
  std::vector<Branch> branches;
  std::string outputs_directory;  // "" means nothing came back
  uint32_t output_files = 0;
  uint64_t output_bytes = 0;
  std::vector<std::pair<std::string, int64_t>> steps_us;  // where the time went, in order

  codec::Json to_json() const;
  static Result<RunRecord> from_json(const codec::Json& json);
};

// A run that this process owns. Moving keeps the lock; destroying releases it.
class OwnedRun {
 public:
  const std::string& directory() const { return directory_; }  // 0700
  RunRecord& record() { return record_; }
  Result<void> save();  // atomically
  // Removes the run's disks and temporary files; run.json, manifest and console stay.
  Result<void> remove_work_files();

 private:
  friend class RunStore;
  std::string directory_;
  RunRecord record_;
  UniqueFd lock_;
};

class RunStore {
 public:
  explicit RunStore(std::string state_directory);
  // A new run, locked. The name must be free among living runs ("run.name_taken").
  Result<OwnedRun> create(const std::string& name, const std::string& id);
  struct Listed {
    RunRecord record;
    bool alive = false;  // its owner holds the lock
  };
  Result<std::vector<Listed>> list() const;  // newest first; an unreadable run.json is skipped with a note
  // By id, unique prefix of an id, or name (newest wins); "run.not_found", "run.ambiguous".
  Result<Listed> find(const std::string& id_or_name) const;
  // "run.alive" if its owner lives.
  Result<void> remove(const std::string& id);
  // For every run whose owner vanished: marks it kDied, removes its work files, and only those.
  // Returns the ids. Safe against others that sweep or start at the same time.
  Result<std::vector<std::string>> sweep();
  std::string directory_of(const std::string& id) const;

  static std::string new_id();
  static bool valid_name(const std::string& name);  // a git ref component: [a-z0-9][a-z0-9._-]{0,62}, no "..", no ".lock"

 private:
  std::string runs_;
};

}  // namespace firestop::sandbox
