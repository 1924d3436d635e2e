// PID 1's part in the conversation with the host: what each message does, and in which order they may come.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "guest/cgroup.h"
#include "guest/container_run.h"
#include "guest/devices.h"
#include "guest/events.h"
#include "guest/evidence/collectors.h"
#include "guest/exec.h"
#include "guest/exec_guard.h"
#include "guest/hand_over.h"
#include "guest/memfd_guard.h"
#include "guest/memory_guard.h"
#include "guest/network.h"
#include "guest/port.h"

namespace firestop::guest {

class Session {
 public:
  explicit Session(Events events);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // From an opened port to the host's "shutdown". Errors are told to the host, too ("failed").
  Result<void> run();

 private:
  Result<void> converse();
  void control(std::string_view json);
  Result<void> handle(channel::Start& start);
  Result<void> handle(channel::Exec& exec);
  Result<void> handle(channel::Signal& signal);
  Result<void> handle(channel::Resize& resize);
  Result<void> handle(channel::Export& wanted);
  Result<void> handle(channel::Shutdown&);
  Result<void> set_up(channel::Start& start, channel::Started& started);
  Result<void> maybe_export();
  void tell_refusals();
  void reap_strangers();
  std::vector<std::string> environment(const channel::Exec& exec) const;

  Events events_;
  Port port_;
  Disks disks_;
  std::unique_ptr<Collectors> collectors_;
  std::unique_ptr<channel::Start> start_;  // without seed and filter
  std::unique_ptr<Cgroup> cgroup_;
  std::unique_ptr<MemoryGuard> memory_guard_;
  std::unique_ptr<ExecGuard> guard_;         // where `shell` is not granted
  std::unique_ptr<MemfdGuard> memfd_guard_;  // where it is, and somebody observes
  Network network_;
  std::vector<UniqueFd> mounts_;  // read-only, taken away before the export
  ContainerSettings settings_;
  std::unique_ptr<Execution> execution_;
  std::optional<channel::Export> export_wanted_;
  std::unique_ptr<HandOver> hand_over_;
  int next_exec_ = 0;
  bool shutdown_wanted_ = false, shutdown_ = false;
  std::optional<Error> error_;
};

}  // namespace firestop::guest
