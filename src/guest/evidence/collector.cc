#include "guest/evidence/collector.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "guest/evidence/audit.h"
#include "guest/evidence/audit_notice.h"
#include "guest/evidence/btf.h"
#include "guest/evidence/changes.h"
#include "guest/evidence/code_capture.h"
#include "guest/evidence/connect_probe.h"
#include "guest/evidence/contents.h"
#include "guest/evidence/proc_events.h"
#include "guest/evidence/processes.h"
#include "guest/evidence/script_input.h"
#include "guest/evidence/task_costs.h"
#include "guest/evidence/teller.h"
#include "guest/evidence/wakeup.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

namespace observed = channel::observed;
constexpr int kPriority = 10;        // SCHED_FIFO
constexpr int kAliveMs = 3000;       // below observed::kAliveEvery
constexpr int64_t kGatherMs = 40;    // how long what can wait waits (wakeup.h)
constexpr size_t kMuch = 16u << 10;  // bytes: sent before that
constexpr int64_t kIdleMs = 250;
constexpr int64_t kLookMs = 1000;  // how often losses are asked for
constexpr int64_t kLongestFinishMs = 5000;

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

Result<void> come_first(pid_t pid, int priority) {
  const sched_param parameters{priority};
  if (::sched_setscheduler(pid, SCHED_FIFO, &parameters) != 0)
    return fail_errno("evidence.priority", "cannot come before everything else");
  return {};
}

// The kernel's thread that hands records over: before us, so that a record is there when its cause goes on.
Result<void> hurry_audit() {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return fail_errno("evidence.audit", "cannot list processes");
  while (const dirent* entry = ::readdir(processes.get())) {
    const auto name = read_kernel_file(std::string("/proc/") + entry->d_name + "/comm");
    if (name && *name == "kauditd") return come_first(::atoi(entry->d_name), kPriority + 1);
  }
  return fail("evidence.audit", "the kernel has no audit");
}

class Collector {
 public:
  Collector(int control, FileWatch files) : control_(control), files_(std::move(files)) {}

  Result<void> prepare() {
    TRY(come_first(0, kPriority));
    TRY(write_kernel_file("/proc/self/oom_score_adj", "-1000"));
    TRY_ASSIGN(teller_, Teller::open());
    TRY_ASSIGN(proc_, ProcEvents::open());
    TRY_ASSIGN(costs_, TaskCosts::open());
    TRY_ASSIGN(audit_, Audit::open());
    TRY(hurry_audit());
    const auto types = read_file("/sys/kernel/btf/vmlinux", 64u << 20);
    const Btf btf(types.value_or(""));
    if (auto made = Wakeup::make()) wakeup_ = std::move(*made);
    if (auto made = AuditNotice::make(btf, wakeup_)) notice_ = std::move(*made);
    why_no_input_ = input_.prepare(btf, wakeup_);
    if (auto made = ConnectProbe::make(btf))
      connections_ = std::move(*made);
    else
      why_no_connections_ = made.error().message;
    return {};
  }

  // Until PID 1 is gone.
  void serve() {
    answer(CollectorWord::kReady);
    while (true) {
      const int64_t now = now_ms();
      int64_t wait = kIdleMs;
      const bool gathering = taken_ms_ + kGatherMs > now;
      if (gathering) wait = taken_ms_ + kGatherMs - now;
      if (teller_.held() > 0 && !teller_.stuck())
        wait = std::clamp<int64_t>(told_ms_ + kGatherMs - now, 0, wait);
      const auto at_once = [this](bool is, int fd) { return pollfd{watching_ && is ? fd : -1, POLLIN, 0}; };
      const auto later = [&](bool is, int fd) { return at_once(is && !gathering, fd); };
      pollfd sources[] = {{control_, POLLIN, 0},
                          at_once(true, files_.fd()),
                          at_once(wakeup_.works(), wakeup_.fd()),
                          at_once(connections_.works(), connections_.fd()),
                          at_once(!notice_.works() || !gathering, audit_.fd()),
                          later(true, proc_.fd()),
                          later(true, costs_.fd()),
                          later(input_.works(), input_.fd()),
                          {teller_.stuck() ? teller_.fd() : -1, POLLOUT, 0}};
      ::poll(sources, std::size(sources), watching_ ? static_cast<int>(wait) : -1);
      if (watching_) round();
      if (sources[0].revents != 0 && !hear()) return;
    }
  }

 private:
  void answer(CollectorWord word) { (void)::send(control_, &word, sizeof word, MSG_NOSIGNAL); }

  bool hear() {
    CollectorWord word{};
    if (::recv(control_, &word, sizeof word, MSG_DONTWAIT) != sizeof word) return false;
    switch (word) {
      case CollectorWord::kWatch:
        if (const auto begun = begin(); !begun) {
          (void)::send(control_, begun.error().message.data(), begun.error().message.size(), MSG_NOSIGNAL);
          return false;
        }
        break;
      case CollectorWord::kFinish:
        finish();
        break;
      default:
        return false;
    }
    answer(CollectorWord::kDone);
    return true;
  }

  Result<void> begin() {
    TRY(contents_.choose_key());
    TRY(files_.mark_mounts());
    proc_.begin();
    TRY(audit_.begin());
    connections_.take([](const Connection&) {});
    (void)connections_.take_lost();
    observed::Hello hello;
    hello.collectors = {"processes", "costs", "files", "code"};
    const auto add = [&hello](const std::string& name, const std::string& why_not) {
      why_not.empty() ? hello.collectors.push_back(name) : hello.missing.push_back(name + ": " + why_not);
    };
    add("stdin", why_no_input_);
    add("connections", why_no_connections_);
    teller_.say(hello);
    teller_.settle();
    watching_ = true;
    return {};
  }

  // What there is to be read, in the order of its causes.
  void round() {
    wakeup_.take();
    if (!files_.take([this] { take_told(); }, [this](const FileEvent& event) { take(event); })) take_told();
    input_.take();
    input_.tell_due();
    connections_.take([this](const Connection& connection) { take(connection); });
    processes_.tell_ends(Processes::Which::kComplete);
    const int64_t now = now_ms();
    if (now - looked_ms_ >= kLookMs) {
      looked_ms_ = now;
      audit_.ask();
      tell_losses();
    }
    if (now - said_ms_ >= kAliveMs) {
      said_ms_ = now;
      teller_.say(observed::Alive{});
    }
    if (now - told_ms_ >= kGatherMs || teller_.held() >= kMuch) tell_now();
  }

  void tell_now() {
    told_ms_ = now_ms();
    teller_.settle();
  }

  // What the kernel has told by itself. A file that somebody asks for now was asked for after it.
  void take_told() {
    bool any = take_processes();
    while (const auto event = audit_.next()) {
      any = true;
      take(*event);
    }
    if (any) taken_ms_ = now_ms();
  }

  bool take_processes() {
    bool any = false;
    while (const auto event = proc_.next()) {
      any = true;
      // What a thread used is told before its end is.
      if (event->kind == ProcEvent::Kind::kExit) take_costs();
      if (processes_.is_last(*event)) input_.ends(event->pid);
      processes_.take(*event);
      if (event->kind != ProcEvent::Kind::kExec) continue;
      input_.executed(event->pid);
      if (Process* process = processes_.find(event->pid)) code_.runs(*process);
    }
    take_costs();
    return any;
  }

  // A process may begin and end, on another processor, while this reads first the one and then the other:
  // costs of one that is not known yet wait for its begin.
  void take_costs() {
    const int64_t now = now_ms();
    for (auto& [cost, since] : std::exchange(early_costs_, {}))
      if (!processes_.take(cost) && now - since < kLookMs) early_costs_.emplace_back(cost, since);
    while (const auto cost = costs_.next())
      if (!processes_.take(*cost)) early_costs_.emplace_back(*cost, now);
  }

  void take(const FileEvent& event) {
    switch (event.kind) {
      case FileEvent::Kind::kExecute:
        return code_.executes(event);
      case FileEvent::Kind::kOpen:
        return code_.opens(event);
      case FileEvent::Kind::kWritten:
        code_.written(event);
        return changes_.written(event);
    }
  }

  void take(const AuditEvent& event) {
    // The connector told of its process, and of its execution, before: but maybe since it was listened to.
    if (event.number == SYS_execve || event.number == SYS_execveat || !processes_.knows(event.pid))
      take_processes();
    switch (event.number) {
      case SYS_execve:
      case SYS_execveat:
        return code_.executed(event);
      case SYS_mknod:
      case SYS_mknodat: {
        const uint64_t mode = event.arguments[event.number == SYS_mknod ? 1 : 2];
        if (S_ISFIFO(mode)) files_.leave_alone(Changes::made_by(event));
        return;
      }
      default:
        return changes_.changed(event);
    }
  }

  void take(const Connection& connection) {
    Process* process = processes_.find(connection.pid);
    if (!process) {  // made since processes were looked at
      take_processes();
      process = processes_.find(connection.pid);
    }
    const int64_t at_us = Processes::wall_us(connection.at_ns);
    char address[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &connection.address, address, sizeof address);
    teller_.say(observed::Connect{connection.pid, process ? Processes::in_order(*process, at_us) : at_us,
                                  connection.udp ? "udp" : "tcp", connection.source_port, address,
                                  connection.port});
    tell_now();  // the host holds the crossing until it knows
  }

  void tell_lost(const char* what, uint64_t count) {
    if (count > 0) teller_.say(observed::Lost{what, count});
  }
  void tell_losses() {
    tell_lost("processes", proc_.take_lost() + audit_.take_lost() + processes_.take_lost_executions() +
                               teller_.take_untold());
    tell_lost("costs", processes_.take_lost_costs());
    tell_lost("code", code_.take_lost());
    tell_lost("stdin", input_.take_lost());
    tell_lost("files", changes_.take_lost());
    tell_lost("connections", connections_.take_lost());
  }

  void finish() {
    const int64_t until = now_ms() + kLongestFinishMs;
    do {
      audit_.ask();
      ::usleep(10'000);
      round();
    } while ((processes_.count() > 0 || !audit_.quiet()) && now_ms() < until);
    processes_.tell_ends(Processes::Which::kAll);
    files_.end();
    changes_.tell_finals();
    tell_losses();
    tell_lost("processes", processes_.count());  // whose end was not seen
    teller_.say(observed::Done{});
    teller_.finish();
    watching_ = false;
  }

  int control_;
  FileWatch files_;
  Teller teller_;
  ProcEvents proc_;
  TaskCosts costs_;
  Audit audit_;
  Wakeup wakeup_;
  AuditNotice notice_;
  Contents contents_{teller_};
  Processes processes_{teller_};
  ScriptInput input_{processes_,
                     [this](Process& process, const char* how, std::string_view bytes, std::string note) {
                       code_.read(process, how, bytes, std::move(note));
                     }};
  CodeCapture code_{teller_, contents_, files_, processes_, input_, notice_};
  Changes changes_{teller_, processes_};
  ConnectProbe connections_;
  std::string why_no_input_, why_no_connections_;
  bool watching_ = false;
  // When losses were asked for, a sign of life was given, what the kernel tells was taken, and what there is
  // to tell was sent.
  int64_t looked_ms_ = 0, said_ms_ = 0, taken_ms_ = 0, told_ms_ = 0;
  std::vector<std::pair<TaskCost, int64_t>> early_costs_;  // and since when
};

}  // namespace

void run_collector(int control, FileWatch files) {
  ::prctl(PR_SET_NAME, "collector");
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  Collector collector(control, std::move(files));
  if (const auto prepared = collector.prepare(); !prepared) {
    const std::string why = prepared.error().message;
    (void)::send(control, why.data(), why.size(), MSG_NOSIGNAL);
  } else {
    collector.serve();
  }
  ::_exit(1);
}

}  // namespace firestop::guest
