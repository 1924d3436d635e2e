// A run's network: the link of its guest, and the process at the other end of it, which tells what crosses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/result.h"
#include "credentials/bindings.h"
#include "egress/process.h"
#include "egress/supervise.h"
#include "manifest/manifest.h"
#include "sandbox/run_store.h"

namespace firestop::sandbox {

class Network {
 public:
  // Everything up to a self-test that was passed: a name that no rule has was asked for and denied. An error
  // starts nothing and leaves nothing: those of egress/seam.h and egress/supervise.h.
  static Result<std::unique_ptr<Network>> make(egress::ProcessConfig config,
                                               const credentials::Bindings& bindings,
                                               const manifest::NetworkLimits& limits);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  int tap() const { return seam_.tap.get(); }
  void tap_is_taken() { seam_.tap.reset(); }  // QEMU has it
  const egress::EgressProcess::Ready& ready() const { return process_.ready(); }
  int pid() const { return process_.pid(); }

  struct Watcher {
    std::function<void(Error)> failed;  // it is gone: nothing passes any more, and the sandbox must end
    std::function<void()> capped;       // limits.network.bytes is reached
    // A placeholder of this credential was about to leave; it was stopped.
    std::function<void(const std::string& credential)> alarm;
  };
  void watch(Loop& loop, Watcher watcher);
  // Is told every crossing, also outside of a watch, before it is acted upon.
  void on_crossing(egress::Recorder told) { told_ = std::move(told); }
  void unwatch();
  // No more traffic; takes what is still told, for at most some seconds. Nothing happens the second time.
  void finish();
  const RunRecord::Network& summary() const { return summary_; }

 private:
  Network(egress::Seam seam, Child sources, egress::EgressProcess process, uint64_t most_bytes);
  void take();
  void measure();
  void record(const egress::Crossing& crossing);
  void lost(uint64_t count) { summary_.lost += count; }
  void fail_with(Error error);

  egress::Seam seam_;
  Child sources_;  // has the credentials' values; no pid without any
  egress::EgressProcess process_;
  uint64_t most_bytes_ = 0;
  RunRecord::Network summary_;
  Watcher watcher_;
  egress::Recorder told_;
  bool over_ = false;
  Loop::Handle link_watch_, exit_watch_, sources_watch_, meter_watch_;
};

}  // namespace firestop::sandbox
