// What happens to files: written, renamed, removed, given another name; and what those of the workspace are
// like at the end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "guest/evidence/audit_record.h"
#include "guest/evidence/file_watch.h"
#include "guest/evidence/processes.h"
#include "guest/evidence/teller.h"

namespace firestop::guest {

class Changes {
 public:
  Changes(Teller& teller, Processes& processes) : teller_(teller), processes_(processes) {}

  // A file was closed after writing. One that a process writes again and again is told once a second.
  void written(const FileEvent& event);
  // Audit's record of a rename, removal or link.
  void changed(const AuditEvent& event);
  // After all processes have ended: every file below /workspace that was written, or renamed to, and is
  // there.
  void tell_finals();
  uint64_t take_lost();
  // The path, in our own view, of what mknod(2) or mknodat(2) made.
  static std::string made_by(const AuditEvent& event);

 private:
  static constexpr size_t kMostPaths = 1u << 16;                // kept for the finals
  static constexpr uint64_t kMostHashed = uint64_t{256} << 20;  // bytes, of all finals
  void remember(const std::string& path);
  void directory_moved(const std::string& from, const std::string& to);

  Teller& teller_;
  Processes& processes_;
  std::map<std::pair<uint32_t, std::string>, int64_t> recent_;  // told last at, in us
  std::set<std::string> touched_;
  uint64_t lost_ = 0;
};

}  // namespace firestop::guest
