// Makes a control group on the kernel that it runs on and says what it did to a process: run by
// tests/integration/cgroup_test.py as an ordinary user of a guest, whose version 2 tree no host of ours has.
// Prints lines "name value". Usage: cgroup-probe look|hold
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "jail/cgroup.h"
#include "jail/cgroup_site.h"

namespace {

using firestop::jail::Cgroup;

constexpr firestop::jail::CgroupLimits kLimits{.memory = 32u << 20, .processes = 5, .cpus = 0.2};

void say(const char* name, const std::string& value) {
  std::printf("%s %s\n", name, value.c_str());
  std::fflush(stdout);
}

void say_group(const char* name) {
  const std::string text = firestop::read_file("/proc/self/cgroup").value_or("?");
  say(name, text.substr(0, text.find('\n')));
}

double seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Runs into each limit in turn; the last one kills.
[[noreturn]] void exhaust(int gate) {
  char byte = 0;
  if (::read(gate, &byte, 1) != 1) ::_exit(1);
  say_group("held");
  const double begun = seconds(CLOCK_MONOTONIC), before = seconds(CLOCK_PROCESS_CPUTIME_ID);
  while (seconds(CLOCK_MONOTONIC) - begun < 2) {
  }
  const double share = (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / (seconds(CLOCK_MONOTONIC) - begun);
  say("cpu", std::to_string(share));
  std::vector<pid_t> children;
  for (int i = 0; i < 50; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    if (pid < 0) {
      say("forks", std::to_string(i) + " " + (errno == EAGAIN ? "EAGAIN" : std::to_string(errno)));
      break;
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
  std::vector<std::string> kept;
  for (;;) kept.emplace_back(1u << 20, 'x');
}

int hold() {
  int gate[2];
  if (::pipe(gate) != 0) return 1;
  {
    const auto group = Cgroup::make("", "probe", kLimits);
    if (!group) return say("error", group.error().message), 1;
    const auto& caps = group->caps();
    say("caps", caps.hierarchy + (caps.memory ? " memory" : "") + (caps.processes ? " pids" : "") +
                    (caps.cpu ? " cpu" : ""));
    say("why", caps.why);
    say_group("self");
    const pid_t child = ::fork();
    if (child == 0) exhaust(gate[0]);
    if (auto admitted = group->admit(child); !admitted) return say("error", admitted.error().message), 1;
    if (::write(gate[1], "x", 1) != 1) return 1;
    int status = 0;
    ::waitpid(child, &status, 0);
    say("killed", WIFSIGNALED(status) ? std::to_string(WTERMSIG(status)) : "no");
  }
  say_group("after");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode == "hold") return hold();
  if (mode != "look") return 2;
  const auto site = firestop::jail::find_cgroups("");
  say("found", site.found);
  say("why", site.why);
  say("usable", site.usable() ? "yes" : "no");
  return 0;
}
