// The container's processes, put together from three sources that know different things and come in no
// common order: the process connector (forks, executions, ends; at once), taskstats (what threads used; just
// before their end), audit (what was executed, with which words; a little later, by way of a kernel thread).
//
// So an end is held back until the executions before it have been told, and what is missing for too long is
// counted as lost.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "channel/observation.h"
#include "guest/evidence/audit_record.h"
#include "guest/evidence/contents.h"
#include "guest/evidence/interpreter.h"
#include "guest/evidence/proc_events.h"
#include "guest/evidence/task_costs.h"
#include "guest/evidence/teller.h"

namespace firestop::guest {

// A file that a process asked to execute.
struct ExecutedFile {
  std::string path;
  bool from_image = false;
  Captured captured;
};

struct Process {
  uint32_t pid = 0, parent = 0;
  bool hidden = false;  // the container's first process, which is ours
  int64_t last_us = 0;  // of what was told last: times of one process do not go back

  std::deque<ExecutedFile> files;  // executed last, the newest at the back; at most kMostFiles
  static constexpr size_t kMostFiles = 32;

  uint64_t program = 0;  // another number for each execution
  // Of the program that runs now; looked up when it is first needed.
  bool known = false;
  std::string executable;
  bool image_program = false;
  Language language = Language::kNone;
  std::vector<std::string> argv;
  std::set<std::pair<uint64_t, uint64_t>> told;  // inodes and contents told as code since then
  static constexpr size_t kMostTold = 256;
  // False: it was told before. Beyond kMostTold files are told again.
  bool remember_told(uint64_t inode, uint64_t content) {
    if (told.contains({inode, content})) return false;
    if (told.size() < kMostTold) told.emplace(inode, content);
    return true;
  }

  uint32_t executions_due = 0;  // seen by the connector, not yet by audit
  // Their numbers. A thread's end may be told after the execution that ended it, by its own number or by the
  // one that the executing thread had: then it is none of these, or older than the execution.
  std::set<uint32_t> threads;
  uint64_t executed_at_ns = 0;
  bool ended = false;
  int64_t ended_at_us = 0, ended_seen_ms = 0;
  channel::observed::Exit exit;
  uint32_t costs = 0;
};

class Processes {
 public:
  explicit Processes(Teller& teller) : teller_(teller) {}

  void take(const ProcEvent& event);
  // Whether it is the end of a process's last thread.
  bool is_last(const ProcEvent& event);
  // False: of no process that is known yet.
  bool take(const TaskCost& cost);
  // Of an execution: its process, if it is of the container. Say it with `told_executed`.
  Process* of(const AuditEvent& event);
  void told_executed(Process& process, channel::observed::Exec exec);
  Process* find(uint32_t pid);  // one that runs
  // Whether it is or was one of the container's: what a process did last may be heard of after its end.
  bool knows(uint32_t pid) const { return pid < known_.size() && known_[pid]; }

  // Tells of ends that nothing is missing of; with `all` also of the others.
  enum class Which { kComplete, kAll };
  void tell_ends(Which which);
  uint64_t take_lost_executions();
  uint64_t take_lost_costs();
  size_t count() const { return running_.size(); }

  // CLOCK_MONOTONIC to the wall's clock, in us.
  static int64_t wall_us(uint64_t monotonic_ns);
  // No less than what was told of the process before.
  static int64_t in_order(Process& process, int64_t at_us);

 private:
  void forked(const ProcEvent& event);
  void thread_ended(const ProcEvent& event);

  Teller& teller_;
  std::map<uint32_t, std::unique_ptr<Process>> running_;
  std::list<std::unique_ptr<Process>> ended_;
  std::vector<bool> known_;  // by pid, of which there are at most 4 million
  uint64_t lost_executions_ = 0, lost_costs_ = 0, programs_ = 0;
};

}  // namespace firestop::guest
