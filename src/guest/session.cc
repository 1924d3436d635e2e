#include "guest/session.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "guest/boot.h"
#include "guest/clock.h"
#include "guest/root.h"
#include "guest/root_files.h"
#include "guest/trust.h"

namespace firestop::guest {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

int64_t now_us() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

// Measures the steps of "start".
class Stopwatch {
 public:
  explicit Stopwatch(channel::Started& started) : started_(started) {}
  void lap(const char* name) {
    const int64_t now = now_us();
    started_.steps.push_back({name, now - last_});
    last_ = now;
  }

 private:
  channel::Started& started_;
  int64_t last_ = now_us();
};

bool declares(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(), [&](const std::string& item) {
    return item.size() > name.size() && item.starts_with(name) && item[name.size()] == '=';
  });
}

// Of several with one name the first, as getenv(3) has it.
std::string value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& item : environment)
    if (item.size() > name.size() && item.starts_with(name) && item[name.size()] == '=')
      return item.substr(name.size() + 1);
  return "";
}

bool grants(const channel::Start& start, std::string_view capability) {
  return std::find(start.capabilities.begin(), start.capabilities.end(), capability) !=
         start.capabilities.end();
}

Result<const channel::Account*> account_of(const channel::Start& start) {
  for (const auto& account : start.accounts)
    if (account.name == start.run_as) return &account;
  return fail("guest.start", "the account to run as is not declared");
}

}  // namespace

Session::Session(Events events)
    : events_(std::move(events)),
      port_({.on_control = [this](std::string_view json) { control(json); },
             .on_data =
                 [this](uint16_t stream, std::string_view bytes) {
                   if (execution_ && execution_->streams().in == stream)
                     execution_->input(bytes);
                   else
                     port_.mux().consumed(stream, bytes.size());
                 },
             .on_end =
                 [this](uint16_t stream) {
                   if (execution_ && execution_->streams().in == stream) execution_->input_ends();
                 },
             .on_writable = {}}) {}

Result<void> Session::run() {
  auto result = converse();
  if (!result) {
    port_.say(channel::Failed{result.error().code, result.error().message});
    port_.flush_finally();
  }
  return result;
}

Result<void> Session::converse() {
  TRY(port_.open());
  TRY(mount_image(disks_));
  TRY(disks_.bind_ahead());
  TRY_ASSIGN(Cgroup cgroup, Cgroup::make());
  cgroup_ = std::make_unique<Cgroup>(std::move(cgroup));
  TRY_ASSIGN(network_, make_container_network());
  TRY_ASSIGN(collectors_, Collectors::start());
  events_.watch(collectors_->fd(), EPOLLIN, [this](uint32_t) {
    if (const auto heard = collectors_->hear(); !heard) error_ = heard.error();
    if (collectors_->over()) events_.drop(collectors_->fd());
  });
  port_.attach(events_);
  utsname kernel{};
  ::uname(&kernel);
  port_.say(channel::Ready{channel::kProtocolVersion, kernel.release});
  while (!shutdown_) {
    port_.flush();
    if (!port_.broken().empty()) return fail("guest.channel", port_.broken());
    events_.wait(execution_ ? execution_->timeout_ms() : -1);
    if (error_) return Unexpected(*error_);
    if (guard_) tell_refusals();
    if (execution_) {
      TRY(execution_->step());
      if (execution_->over()) execution_.reset();
    }
    if (hand_over_) hand_over_->step();
    TRY(maybe_export());
    if (shutdown_wanted_ && (!start_ || collectors_->over())) shutdown_ = true;
    if (start_ && start_->test_root) reap_strangers();
  }
  return {};
}

void Session::control(std::string_view json) {
  auto message = channel::decode_from_host(json);
  if (!message) {
    error_ = message.error();
    return;
  }
  const auto handled = std::visit([this](auto& known) { return handle(known); }, *message);
  if (!handled) error_ = handled.error();
}

Result<void> Session::handle(channel::Start& start) {
  if (start_) return fail("guest.protocol", "a second start");
  channel::Started started;
  auto done = set_up(start, started);
  ::explicit_bzero(start.seed.data(), start.seed.size());
  if (!done) return done;
  // The host opens its ends as soon as it knows of "started": know these streams before.
  port_.mux().open_send(channel::kStdout);
  port_.mux().open_send(channel::kStderr);
  port_.mux().open_send(channel::kOutputsStream);
  if (!start.memory.empty()) port_.mux().open_send(channel::kMemoryStream);
  for (size_t i = 0; i < start.repositories.size(); ++i)
    port_.mux().open_send(static_cast<uint16_t>(channel::kFirstBundleStream + i));
  start_ = std::make_unique<channel::Start>(std::move(start));
  port_.say(started);
  return {};
}

Result<void> Session::set_up(channel::Start& start, channel::Started& started) {
  // Nothing is implied: a cap that is not set is a mistake, not a machine without caps.
  if (start.memory_max == 0 || start.processes_max == 0 || start.open_files_max == 0 || start.cpus <= 0)
    return fail("guest.start", "a cap is missing");
  if (start.network != network_.device)
    return fail("guest.start",
                network_.device ? "a network device that nobody speaks of" : "there is no network device");
  TRY_ASSIGN(const channel::Account* account, account_of(start));
  Stopwatch watch(started);
  TRY(reseed(start.seed));
  TRY(set_clock(start.time_ns));
  watch.lap("clock and entropy");
  TRY(disks_.find("scratch"));
  watch.lap("disk");
  TRY(mount_scratch(disks_));
  watch.lap("scratch");
  TRY(write_root_files(start));
  watch.lap("files");
  TRY(mount_root());
  watch.lap("root");
  TRY_ASSIGN(mounts_, mount_workspace(start, {account->uid, account->gid}, disks_));
  watch.lap("workspace");
  TRY(cgroup_->limit({start.memory_max, start.processes_max, start.cpus}));
  settings_.root = kRoot;
  settings_.hostname = start.hostname;
  settings_.uid = account->uid;
  settings_.gid = account->gid;
  settings_.groups = account->groups;
  settings_.seccomp = std::move(start.seccomp);
  settings_.shared_memory = start.memory_max / 2;
  settings_.open_files = start.open_files_max;
  settings_.cgroup = cgroup_->fd();
  settings_.network = network_.space.get();
  settings_.outside = start.test_root;
  if (!grants(start, "filesystem")) {
    settings_.writable.emplace();
    for (const auto& output : start.outputs) settings_.writable->push_back("/workspace/" + output.path);
    for (const auto& memory : start.memory) settings_.writable->push_back("/workspace/" + memory.path);
  }
  TRY_ASSIGN(MemoryGuard guard, MemoryGuard::make(start.memory_max));
  memory_guard_ = std::make_unique<MemoryGuard>(std::move(guard));
  events_.watch(memory_guard_->fd(), EPOLLPRI, [this](uint32_t) { memory_guard_->act(); });
  watch.lap("cgroup");
  if (!grants(start, "shell")) {
    TRY_ASSIGN(guard_, ExecGuard::make(events_, settings_.uid));
    if (!settings_.outside) settings_.notices = ContainerSettings::Notices::kExecutions;
    watch.lap("exec guard");
  }
  TRY(collectors_->begin());
  settings_.watch = collectors_->group();
  if (!guard_ && !settings_.outside && settings_.watch >= 0) {
    memfd_guard_ = std::make_unique<MemfdGuard>(events_, settings_.watch, settings_.uid, settings_.gid);
    settings_.notices = ContainerSettings::Notices::kMemfds;
  }
  watch.lap("collectors");
  return {};
}

Result<void> Session::handle(channel::Exec& exec) {
  if (!start_) return fail("guest.protocol", "exec before start");
  if (execution_ || hand_over_ || export_wanted_) return fail("guest.protocol", "exec while something runs");
  // Stream numbers are used once, so exec ids are, too.
  if (exec.id < next_exec_ || exec.id > kMaxExec) return fail("guest.protocol", "an exec id that cannot be");
  if (exec.argv.empty()) return fail("guest.protocol", "an exec without a command");
  next_exec_ = exec.id + 1;
  auto environment = this->environment(exec);
  if (guard_) {
    TRY_ASSIGN(const Inside root, Inside::open(kRoot));
    guard_->allow(rules_of_command(root, exec.argv[0], value_of(environment, "PATH")));
    settings_.pins = guard_->rules().pins;
  }
  TRY_ASSIGN(execution_, Execution::start(events_, port_, *cgroup_, settings_, exec, std::move(environment),
                                          [this](UniqueFd listener) {
                                            guard_ ? guard_->listen(std::move(listener))
                                                   : memfd_guard_->listen(std::move(listener));
                                          }));
  return {};
}

Result<void> Session::handle(channel::Signal& signal) {
  if (execution_ && execution_->id() == signal.id) execution_->signal(signal.signal);
  return {};
}

Result<void> Session::handle(channel::Resize& resize) {
  if (execution_ && execution_->id() == resize.id) execution_->resize(resize.rows, resize.columns);
  return {};
}

Result<void> Session::handle(channel::Export& wanted) {
  if (!start_ || export_wanted_) return fail("guest.protocol", "export out of turn");
  export_wanted_ = wanted;
  if (execution_) execution_->stop();
  return {};
}

// What was seen is told before the machine ends.
Result<void> Session::handle(channel::Shutdown&) {
  shutdown_wanted_ = true;
  if (execution_) execution_->stop();
  return start_ ? collectors_->finish() : Result<void>();
}

Result<void> Session::maybe_export() {
  if (!export_wanted_ || hand_over_ || (execution_ && !execution_->processes_gone())) return {};
  TRY(collectors_->finish());
  if (!collectors_->over()) return {};
  TRY(take_away(mounts_));
  if (guard_) {
    TRY_ASSIGN(const Inside root, Inside::open(kRoot));
    guard_->allow_export(rules_of_export(root));
  }
  ExportPlan plan;
  plan.repositories = start_->repositories;
  plan.outputs = start_->outputs;
  plan.memory = start_->memory;
  plan.workspace = std::string(kRoot) + "/workspace";
  plan.with_repositories = export_wanted_->repositories;
  plan.with_outputs = export_wanted_->outputs;
  TRY_ASSIGN(hand_over_, HandOver::start(events_, port_, plan, [this](const ContainerCommand& command) {
               ContainerSettings settings = settings_;
               settings.outside = false;
               settings.writable.reset();  // git needs to write its objects
               settings.pins.clear();
               settings.notices = ContainerSettings::Notices::kNone;
               settings.watch = -1;
               return run_in_container(settings, command);
             }));
  return {};
}

// All of it comes before the command's end.
void Session::tell_refusals() {
  for (const auto& refusal : guard_->refusals(!execution_ || execution_->processes_gone()))
    port_.say(channel::Denied{channel::kDeniedExec, refusal.path, refusal.count});
}

// With test_root there is no process namespace to end: what is left of a command becomes PID 1's.
void Session::reap_strangers() {
  if (hand_over_) return;
  while (true) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (execution_ && ended.si_pid == execution_->reaper()) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

std::vector<std::string> Session::environment(const channel::Exec& exec) const {
  std::vector<std::string> all = start_->environment;
  const auto add = [&](const char* name, const std::string& value) {
    if (!declares(start_->environment, name)) all.push_back(std::string(name) + "=" + value);
  };
  for (const std::string& variable : trust_environment(*start_)) {
    const size_t equals = variable.find('=');
    add(variable.substr(0, equals).c_str(), variable.substr(equals + 1));
  }
  add("PATH", kDefaultPath);
  add("HOME", "/home/" + start_->run_as);
  add("USER", start_->run_as);
  add("TERM", exec.term.empty() ? "dumb" : exec.term);
  return all;
}

}  // namespace firestop::guest
