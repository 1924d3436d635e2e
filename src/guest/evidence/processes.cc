#include "guest/evidence/processes.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace firestop::guest {
namespace {

namespace observed = channel::observed;
constexpr int64_t kLongestWaitMs = 3000;  // of an end, for its executions' records

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t Processes::wall_us(uint64_t monotonic_ns) {
  const int64_t ago = clock_ns(CLOCK_MONOTONIC) - static_cast<int64_t>(monotonic_ns);
  return std::max<int64_t>(0, (clock_ns(CLOCK_REALTIME) - ago) / 1000);
}

int64_t Processes::in_order(Process& process, int64_t at_us) {
  return process.last_us = std::max(process.last_us, at_us);
}

Process* Processes::find(uint32_t pid) {
  const auto found = running_.find(pid);
  return found == running_.end() ? nullptr : found->second.get();
}

void Processes::take(const ProcEvent& event) {
  if (event.kind == ProcEvent::Kind::kFork) return forked(event);
  Process* process = find(event.pid);
  if (!process) return;
  if (event.kind == ProcEvent::Kind::kThread) process->threads.insert(event.thread);
  if (event.kind == ProcEvent::Kind::kExit) thread_ended(event);
  if (event.kind == ProcEvent::Kind::kExec) {
    ++process->executions_due;
    process->program = ++programs_;
    process->known = false;
    process->executable.clear();
    process->argv.clear();
    process->told.clear();
    process->threads = {process->pid};  // the kernel has ended all others
    process->executed_at_ns = event.at_ns;
  }
}

bool Processes::is_last(const ProcEvent& event) {
  const Process* process = find(event.pid);
  return event.kind == ProcEvent::Kind::kExit && process && event.at_ns >= process->executed_at_ns &&
         process->threads.size() == 1 && process->threads.contains(event.thread);
}

void Processes::forked(const ProcEvent& event) {
  const Process* parent = find(event.parent);
  if (!parent && event.parent != 1) return;                                      // none of the container's
  if (auto old = running_.extract(event.pid); !old.empty()) ++lost_executions_;  // its end was never seen
  if (event.pid >= known_.size()) known_.resize(std::max<size_t>(event.pid + 1, 2 * known_.size()));
  known_[event.pid] = true;
  auto process = std::make_unique<Process>();
  process->pid = event.pid;
  process->threads = {event.pid};
  process->parent = event.parent;
  process->hidden = !parent;
  if (parent) {  // until it executes something, it is what its parent is
    process->program = parent->program;
    process->known = parent->known;
    process->executable = parent->executable;
    process->image_program = parent->image_program;
    process->language = parent->language;
    process->argv = parent->argv;
    process->files = parent->files;
    teller_.say(observed::Fork{event.pid, event.parent, in_order(*process, wall_us(event.at_ns))});
  }
  running_[event.pid] = std::move(process);
}

void Processes::thread_ended(const ProcEvent& event) {
  const auto found = running_.find(event.pid);
  Process& process = *found->second;
  if (event.at_ns < process.executed_at_ns || process.threads.erase(event.thread) == 0) return;
  if (event.thread == event.pid) {
    process.exit.pid = event.pid;
    process.exit.status = static_cast<int>(event.status);
  }
  if (!process.threads.empty()) return;
  process.ended = true;
  process.ended_at_us = wall_us(event.at_ns);
  process.ended_seen_ms = clock_ns(CLOCK_MONOTONIC) / 1'000'000;
  ended_.push_back(std::move(found->second));
  running_.erase(found);
}

bool Processes::take(const TaskCost& cost) {
  Process* process = find(cost.process);
  if (!process)
    for (auto at = ended_.rbegin(); at != ended_.rend() && !process; ++at)
      if ((*at)->pid == cost.process) process = at->get();
  if (!process) return false;
  process->exit.user_us += cost.user_us;
  process->exit.system_us += cost.system_us;
  process->exit.max_rss_kib = std::max(process->exit.max_rss_kib, cost.max_rss_kib);
  ++process->costs;
  return true;
}

Process* Processes::of(const AuditEvent& event) {
  // The number may be another process's by now: the older one comes first.
  for (const auto& process : ended_)
    if (process->pid == event.pid && process->executions_due > 0) return process.get();
  return find(event.pid);
}

void Processes::told_executed(Process& process, observed::Exec exec) {
  if (process.executions_due > 0) --process.executions_due;
  if (process.hidden) return;
  exec.at_us = in_order(process, exec.at_us);
  exec.parent = process.parent;
  teller_.say(exec);
}

void Processes::tell_ends(Which which) {
  const int64_t now_ms = clock_ns(CLOCK_MONOTONIC) / 1'000'000;
  for (auto at = ended_.begin(); at != ended_.end();) {
    Process& process = **at;
    const bool late = which == Which::kAll || now_ms - process.ended_seen_ms > kLongestWaitMs;
    if (process.executions_due > 0 && !late) {
      ++at;
      continue;
    }
    lost_executions_ += process.executions_due;
    if (process.costs == 0) ++lost_costs_;
    process.exit.pid = process.pid;
    process.exit.at_us = in_order(process, process.ended_at_us);
    if (!process.hidden) teller_.say(process.exit);
    at = ended_.erase(at);
  }
}

uint64_t Processes::take_lost_executions() {
  return std::exchange(lost_executions_, 0);
}

uint64_t Processes::take_lost_costs() {
  return std::exchange(lost_costs_, 0);
}

}  // namespace firestop::guest
