// The runs of this user, one directory each below the state directory: `runs/<id>/run.json`, a lock that a
// crash releases, and, while it runs, its disks. Who holds the lock owns the run; process ids play no part.
//
// Locks are open-file-description locks (fcntl(2), F_OFD_SETLK) on `runs/<id>/lock`: byte 0 is the owner's
// and is held before the directory becomes visible until the owner is gone, byte 1 is the sweeper's. The
// owner of a run that ended removes the file, so that a sweep passes over ended runs without reading them.
// `runs/.lock` is held by who makes a run or tidies up unfinished makings and removals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "codec/json.h"
#include "sandbox/caps.h"

namespace firestop::sandbox {

enum class RunState { kPreparing, kRunning, kEnded, kDied };  // kDied: its owner vanished

const char* to_string(RunState state);

struct RunRecord {
  std::string id;    // "20261129-132901-7f3a9c": sorts by time
  std::string name;  // of --name, or made from the manifest's
  std::string manifest_file, manifest_name;
  std::string manifest_digest;     // SHA-256 of the canonical form of manifest and lock
  std::string signer, signer_key;  // who signed it, and with which key; "" when nobody was asked for
  std::string image, image_digest, accelerator;
  std::vector<std::string> command;
  int64_t created_ms = 0, started_ms = 0, ended_ms = 0;  // since 1970; 0 means not yet, or not known
  RunState state = RunState::kPreparing;
  std::optional<int> exit_status;  // what `firestop run` ended with
  std::string reason;              // stable code when Firestop ended it: "cap.output", "rating.reached", ...
  std::string message;
  struct Branch {
    std::string entry, repository, ref, commit;
    uint32_t new_commits = 0;
    bool uncommitted = false;
    bool operator==(const Branch&) const = default;
  };
  std::vector<Branch> branches;
  std::string outputs_directory;  // "" means nothing came back
  uint32_t output_files = 0;
  uint64_t output_bytes = 0;
  // Of the memory directory, where it is granted.
  struct Memory {
    std::string name;    // "" if there is none
    bool kept = false;   // what this run left in it; else what was kept before stays
    uint32_t files = 0;  // that are kept now
    uint64_t bytes = 0;
    std::string message;  // why what this run left is not kept
    bool operator==(const Memory&) const = default;
  } memory;
  // What was tried and is not granted, as the guest counted it.
  struct Denied {
    std::string kind, path;  // "exec"; a path of "" stands for more than are told apart
    int64_t count = 0;
    bool operator==(const Denied&) const = default;
  };
  std::vector<Denied> denied;
  // What crossed, and what tried to: counts over the record's crossings.
  struct Network {
    bool used = false;      // the sandbox had a network
    bool landlock = false;  // the kernel took file access away from its process
    uint64_t allowed = 0, denied = 0, failed = 0, alarms = 0;
    uint64_t lost = 0;                    // that could not be kept
    uint64_t bytes = 0;                   // over the guest's link, both ways
    std::vector<std::string> connect_to;  // as the operator gave it
    std::string upstream_ca;              // SHA-256 of the file that the operator gave; "" means none
    bool operator==(const Network&) const = default;
  };
  Network network;
  std::vector<KeptCap> caps;  // which cap was kept by what; empty until the machine was up
  std::string caps_note;      // why no control group of the host holds all of QEMU; empty if one does
  std::vector<std::pair<std::string, int64_t>> steps_us;  // where the time went, in order

  codec::Json to_json() const;
  // "run.newer_version" for the record of a later Firestop, "run.bad_record" for anything else that is wrong.
  static Result<RunRecord> from_json(const codec::Json& json);
  bool operator==(const RunRecord&) const = default;
};

// A run that this process owns. Moving keeps the lock; destroying releases it, and if the saved state is
// kEnded also removes the lock file.
class OwnedRun {
 public:
  OwnedRun(OwnedRun&&) noexcept = default;
  OwnedRun& operator=(OwnedRun&&) = delete;
  ~OwnedRun();

  const std::string& directory() const { return directory_; }  // 0700
  RunRecord& record() { return record_; }
  Result<void> save();  // atomically
  // Removes the run's disks and temporary files: all but run.json, evidence/, lock,
  // manifest.* and console.*.
  Result<void> remove_work_files();

 private:
  friend class RunStore;
  OwnedRun() = default;
  std::string directory_;
  RunRecord record_;
  UniqueFd lock_;
  bool ended_ = false;  // as saved
};

class RunStore {
 public:
  explicit RunStore(const std::string& state_directory);
  // A new run, locked, its record saved. The name must be free among living runs ("run.name_taken").
  Result<OwnedRun> create(const std::string& name, const std::string& id);
  struct Listed {
    RunRecord record;
    bool alive = false;  // its owner holds the lock
    std::string note;    // why run.json can't be read; then of the record only the id counts
  };
  // Newest first; names in the directory that are no run ids are passed over.
  Result<std::vector<Listed>> list() const;
  // By id, name (newest wins), or unique prefix of an id; "run.not_found", "run.ambiguous".
  Result<Listed> find(const std::string& id_or_name) const;
  // "run.alive" if its owner lives, "run.not_found".
  Result<void> remove(const std::string& id);
  // For every run whose owner vanished: marks it kDied, removes its work files, and only those.
  // Returns the ids. Safe against others that sweep or start at the same time. Leaves the runs of a newer
  // Firestop alone.
  Result<std::vector<std::string>> sweep();
  std::string directory_of(const std::string& id) const;

  static std::string new_id();
  static bool valid_id(std::string_view id);
  // A git ref component: [a-z0-9][a-z0-9._-]{0,62}, no "..", no ".lock" or "." at its end.
  static bool valid_name(const std::string& name);

 private:
  std::string runs_;
};

}  // namespace firestop::sandbox
