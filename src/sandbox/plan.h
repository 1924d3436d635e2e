// A manifest and what the command line adds, worked out before anything starts: which repositories at which
// commits, which folders for which names, which disk carries what. Nothing is created here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "credentials/bindings.h"
#include "egress/process.h"
#include "manifest/manifest.h"
#include "sandbox/seal.h"
#include "workspace/workspace.h"

namespace firestop::sandbox {

struct RunRequest {
  std::string manifest_file = "firestop.yaml";
  std::string name;                          // "" makes one from the manifest's
  std::map<std::string, std::string> binds;  // --bind NAME=PATH
  std::vector<std::string> command;          // replaces the manifest's
  bool terminal = false;
  bool keep = false;                    // leave the run's disks where they are
  std::string out_directory;            // "" means firestop-out/NAME beside the manifest
  std::string term;                     // TERM for --tty
  std::vector<std::string> connect_to;  // --connect-to HOST:PORT=ADDRESS:PORT
  std::string upstream_ca;              // --upstream-ca FILE
  std::string anchor;                   // --anchor WHERE, see evidence/anchor.h; "" means none
  std::string allowed_signers;  // a file; "" asks for a signature only if the host's configuration does
};

struct PlannedDisk {
  enum class Content { kEntries, kRepository, kMount, kSkills, kMemory };
  Content content{};
  std::string serial;
  size_t repository = 0;     // kRepository: which
  std::string mount_source;  // kMount: the host folder
  std::string at;            // below /workspace: where its files are; empty for that itself
};

struct Plan {
  manifest::Manifest manifest;
  std::string manifest_text;
  Seal seal;
  std::string name;
  std::vector<std::string> command;
  std::map<std::string, std::string> binds;  // absolute
  std::vector<workspace::RepoSource> repositories;
  std::vector<PlannedDisk> disks;
  egress::ProcessConfig egress;
  credentials::Bindings bindings;  // of the manifest's credentials
  std::string out_directory;       // absolute; must not exist
  bool has_outputs = false;
};

// A manifest with faults is not an Error but in here.
struct Planned {
  Plan plan;
  std::vector<Diagnostic> faults;
  std::string text;
};

// Errors with codes under "usage." are the command line's fault (exit 240), those under "signature." refuse
// what is not signed as it must be (241); the others say why nothing can start (242).
Result<Planned> make_plan(const RunRequest& request, const std::string& run_id);

// The guest's configuration. `seccomp` is the container's filter.
channel::Start make_start(const Plan& plan, std::string seccomp);
// Memory that the container's processes may use of the machine's; the rest is for kernel and guest init.
uint64_t container_memory(uint64_t machine_memory);

}  // namespace firestop::sandbox
