// A record read back as what happened: the model that `ps-tree`, `scripts`, `report`, `reconcile`, `suggest`
// and the exports share. Reads whole and half records alike, and believes nothing about their sizes.
// Integrity is verify.h's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "evidence/event.h"

namespace firestop::story {

inline constexpr size_t kNone = static_cast<size_t>(-1);

// One program of a process: from an exec to the next one or the end.
struct Execution {
  uint64_t seq = 0;
  int64_t at_us = 0;  // guest's wall clock, microseconds since 1970
  std::string file, cwd;
  bool from_image = false;
  std::string digest;  // of the file, where its bytes are in the content store
  uint64_t size = 0;   // of the file, where it is not from the image
  std::vector<std::string> argv;
  bool cut = false;  // arguments were left out or shortened
  uint32_t uid = 0, gid = 0;
};

// Begun by a fork, or by an exec or exit of a pid that no living process has.
struct Process {
  uint32_t pid = 0;       // of the guest; may come twice in a long run, hence indices everywhere here
  size_t parent = kNone;  // index into Story::processes, always below its own: no circles
  uint32_t parent_pid = 0;
  std::vector<size_t> children;          // in order
  int64_t started_us = 0, ended_us = 0;  // first and last seen; 0: not seen
  std::vector<Execution> execs;          // none: a copy of its parent
  bool ended = false;
  int status = 0;  // wait(2)
  uint64_t user_us = 0, system_us = 0, max_rss_kib = 0;
};

struct Script {
  uint64_t seq = 0;
  int64_t at_us = 0;
  size_t process = kNone, writer = kNone;
  uint32_t pid = 0, writer_pid = 0;    // as the guest said; also where no process is known by it
  std::string how, path, interpreter;  // channel/observation.h, Code
  std::string digest;                  // empty: no bytes, and `note` says why
  uint64_t size = 0, kept = 0;         // of the file, and bytes in the content store
  std::string note;
  std::optional<bool> exists;  // at the end: still there and the same; nothing where that is not known
};

struct FileChange {
  uint64_t seq = 0;
  int64_t at_us = 0;
  size_t process = kNone;
  uint32_t pid = 0;
  std::string what, path, to;  // "write", "rename", "delete", "link"
};

struct FileEnd {
  std::string path, digest, note;
  uint64_t size = 0;
};

// A connect(2) of the guest's, as it saw it; what crossed is in NetworkEvent.
struct Socket {
  uint64_t seq = 0;
  int64_t at_us = 0;
  size_t process = kNone;
  uint32_t pid = 0;
  std::string protocol, address;
  uint16_t source_port = 0, port = 0;
};

// What crossed, or tried to: the data of a "network.*" event (docs/egress.md has its members), as it is.
struct NetworkEvent {
  uint64_t seq = 0;
  std::string kind;  // "name", "connection", "request", "datagram", "alarm"
  codec::Json data;
  size_t process = kNone;  // by `pid`; without one, by the socket that had its source port then
};

// What the guest refused: tried, and not granted.
struct Refusal {
  std::string what, path;
  uint64_t count = 0;
};

struct Story {
  codec::Json begin, plan, end;   // data of record.begin, run.plan, record.end; null where there is none
  std::vector<codec::Json> caps;  // data of run.cap
  std::vector<evidence::Event>
      host;  // the host's other events, in order: run.state, cap.hit, file.in, file.out, alarm, ...
  std::vector<Process> processes;
  std::vector<size_t> roots;
  std::vector<Script> scripts;
  std::vector<Script> opened;  // what interpreters opened and does not look like code
  std::vector<FileChange> changes;
  std::map<std::string, FileEnd> ends;
  std::vector<Socket> sockets;
  std::vector<NetworkEvent> network;
  std::vector<Refusal> refusals;         // each `what` and `path` once
  std::map<std::string, uint64_t> lost;  // by collector
  std::vector<std::string> working;      // collectors
  std::vector<std::string> missing;      // collectors that did not work, and why
  bool collectors_done = false;          // they told all they had seen
  uint64_t events = 0;
  std::string first_time, last_time;  // of the first and the last event, as they have it
  std::string note;                   // where reading ended early, and why
};

inline constexpr uint64_t kMostEventsBytes = 2u << 30;  // of events.jsonl that are read; then Story::note

// `directory` is the record's. "evidence.not_found", "evidence.unreadable". A half line at the end is left
// out; at a line that is no event reading ends, with a note: what follows may mean anything.
Result<Story> read_story(const std::string& directory);

// The program that a process is: what it executed last, or what its nearest ancestor had when it was copied.
// Nullptr if nobody saw.
const Execution* program_of(const Story& story, size_t process);
// The program that it was at that time of the guest's clock: before its first exec, its parent's.
const Execution* program_at(const Story& story, size_t process, int64_t at_us);
// Its name for people: the last component of the file; "pid 7" if nobody saw, "" for kNone. Not printable as
// it is: the guest chose it.
std::string name_of(const Story& story, size_t process);
// The same, of who ran a script: a process that read it may have executed something else later.
std::string name_of_runner(const Story& story, const Script& script);

}  // namespace firestop::story
