// What host and guest say to each other in control frames, as types. JSON members have the names of the
// fields, all of them must be there; unknown members are ignored by the guest and refused by the host. Bytes
// that need not be UTF-8 (arguments, environment, paths, seed, filter) travel as base64; where they become C
// strings (arguments, environment, paths) there is no NUL in them. Every number has a range, every list and
// text a bound: messages.cc has the table.
//
//   guest: ready            once, when PID 1 is up; a snapshot template is taken here
//   host:  start            the whole configuration; nothing ran before
//   guest: started          mounts, accounts and container are prepared
//   host:  exec             at most one at a time per id
//   guest: exited           after all of its output was sent
//   host:  signal, resize   for a running exec
//   guest: denied           between started and exported: what was refused to the command
//   host:  export           after the last exec: every process of the container is gone first
//   guest: exported         after the data streams' ends
//   host:  shutdown         the guest syncs and powers off
//   guest: failed           at any time: the guest cannot go on, and why
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace firestop::channel {

inline constexpr int kProtocolVersion = 1;
inline constexpr size_t kSeedBytes = 64;
inline constexpr size_t kMaxText = 4096;  // of a text for people, in bytes: what is longer is cut

// Streams. exec 0 uses 1 (stdin, to the guest), 2 (stdout), 3 (stderr; unused with a terminal).
inline constexpr uint16_t kStdin = 1, kStdout = 2, kStderr = 3;
inline constexpr uint16_t kOutputsStream = 8;  // the pax archive of outputs
inline constexpr uint16_t kMemoryStream = 9;   // the pax archive of the memory directory, where there is one
inline constexpr uint16_t kFirstBundleStream = 16;  // one per repository, in the order of Start::repositories

// Mounts and directories of Firestop's own, below /workspace.
inline constexpr char kSkillsPath[] = ".skills";  // one folder a skill; read-only
inline constexpr char kMemoryPath[] = ".memory";

struct Ready {
  int version = kProtocolVersion;
  std::string kernel;  // uname -r
};

struct Account {
  std::string name;
  uint32_t uid = 1000, gid = 1000;
  std::vector<uint32_t> groups;  // supplementary
};
struct Group {
  std::string name;
  uint32_t gid = 0;
};
struct RepositoryMount {
  std::string path;    // relative to /workspace
  std::string serial;  // of the disk with its image
  std::string commit;  // base commit
};
struct ReadOnlyMount {
  std::string path;
  std::string serial;
};
struct OutputDirectory {
  std::string path;  // relative to /workspace
  uint64_t max_bytes = 0;
};

struct StartFile {
  std::string path;  // absolute, in the container
  std::string bytes;
  uint32_t mode = 0600;
};

// A directory that is kept for the next run. It holds what the last one kept.
struct MemoryDirectory {
  std::string path;    // relative to /workspace
  std::string serial;  // of the disk with what it holds
  uint64_t max_bytes = 0;
  uint32_t max_files = 0;  // and folders, links
};

struct Start {
  std::string seed;            // kSeedBytes random bytes, raw
  int64_t time_ns = 0;         // wall clock when it is sent, nanoseconds since 1970
  std::string hostname;        // in the container
  std::string entries_serial;  // image with the plain entries; "" means none
  std::vector<RepositoryMount> repositories;
  std::vector<ReadOnlyMount> mounts;
  std::vector<OutputDirectory> outputs;
  std::vector<MemoryDirectory> memory;  // one or none
  std::vector<Account> accounts;
  std::vector<Group> groups;
  std::string run_as;                     // one of the accounts
  std::vector<std::string> environment;   // "NAME=value", as declared
  std::vector<std::string> capabilities;  // granted: "shell", ...
  std::string seccomp;                    // the container's filter: raw struct sock_filter[]
  uint64_t memory_max = 0;                // of the container's cgroup, bytes
  uint32_t processes_max = 0;
  uint32_t open_files_max = 0;
  double cpus = 0;
  bool network = false;          // the machine has its one network device, for the container
  std::string authority;         // certificate, PEM, to be trusted; "" means none
  std::string authority_hash;    // of its subject, as OpenSSL names files by
  std::vector<StartFile> files;  // of the account that the command runs as
  bool test_root = false;        // only for the project's own attack tests: see docs/threat-model.md
};

struct Started {
  struct Step {
    std::string name;
    int64_t us = 0;
  };
  std::vector<Step> steps;
};

struct Exec {
  int id = 0;
  std::vector<std::string> argv;
  bool terminal = false;
  std::string term;  // TERM
  uint16_t rows = 24, columns = 80;
};
struct Signal {
  int id = 0;
  int signal = 0;
};
struct Resize {
  int id = 0;
  uint16_t rows = 0, columns = 0;
};
struct Exited {
  int id = 0;
  int status = 0;              // wait(2) status of the command
  bool out_of_memory = false;  // the command itself was killed for want of memory
  uint32_t oom_kills = 0;      // in the container, in all
  uint32_t left_behind = 0;    // processes that were still there and were killed
  std::string cannot_start;    // not empty: the command could not be executed, and why
};
// Something that the manifest does not grant was tried, and refused.
inline constexpr char kDeniedExec[] = "exec";  // a program was to be executed without `shell`
struct Denied {
  std::string kind;
  std::string path;    // for people; "" stands for more paths than are told apart
  uint64_t count = 0;  // attempts that were not told of yet
};
struct Export {
  bool repositories = true;
  bool outputs = true;
};
struct Exported {
  struct Repository {
    std::string path;
    bool changed = false;      // false: its stream is empty
    bool uncommitted = false;  // the tip is a commit that the export made
    std::string error;         // why it could not be exported
  };
  struct Note {  // what stays behind and is no error: other branches, links that leave, fifos
    std::string text;
  };
  std::vector<Repository> repositories;
  uint32_t output_files = 0;
  std::string outputs_error;
  std::string memory_error;  // why it could not be handed over
  std::vector<Note> notes;
};
struct Shutdown {};
struct Failed {
  std::string step, message;
};

using FromGuest = std::variant<Ready, Started, Exited, Exported, Failed, Denied>;
using FromHost = std::variant<Start, Exec, Signal, Resize, Export, Shutdown>;

// One frame's payload of JSON. Errors: "channel.too_large" (above codec::kMaxPayload: arguments or
// environment are too long), "channel.bad_message" (a value beyond its range: the caller's mistake).
Result<std::string> encode(const FromGuest& message);
Result<std::string> encode(const FromHost& message);
// Errors: "channel.bad_message", with the member that is wrong. Texts for people are made printable.
Result<FromGuest> decode_from_guest(std::string_view json);
Result<FromHost> decode_from_host(std::string_view json);

}  // namespace firestop::channel
