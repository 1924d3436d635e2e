// The egress process as its sandbox sees it: started, listened to, ended. It dies with the thread that
// started it, and its end is seen at once (exit_fd(), the link's end).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "codec/frame.h"
#include "egress/crossing.h"
#include "egress/process.h"
#include "egress/seam.h"

namespace firestop::egress {

class EgressProcess {
 public:
  struct Ready {
    std::string authority;       // certificate of the sandbox's own authority, PEM
    std::string authority_hash;  // of its subject, as OpenSSL names files by
    bool landlock = false;       // whether the kernel took file access away
  };
  struct Handler {
    Recorder crossing;
    std::function<void(uint64_t count)> lost;
  };

  // Starts `program __egress`, hands over the sockets of the seam (not the tap), and waits until it is ready.
  // Errors: what it said why it cannot, "egress.silent", those of spawn().
  // `sources`: where config.has_sources; it is handed over, too.
  static Result<EgressProcess> start(const std::string& program, const ProcessConfig& config, Seam& seam,
                                     UniqueFd sources, std::chrono::milliseconds limit);
  EgressProcess(EgressProcess&&) noexcept = default;
  EgressProcess& operator=(EgressProcess&&) = delete;
  ~EgressProcess();

  const Ready& ready() const { return ready_; }
  int link_fd() const { return link_.get(); }  // readable when receive() has something to do
  int exit_fd() const { return child_.pidfd.get(); }
  pid_t pid() const { return child_.pid; }

  enum class State { kGoing, kEnded };
  // Takes what is there, without blocking. kEnded: it closed its end. Error "egress.gone": it broke off or
  // spoke nonsense.
  Result<State> receive(const Handler& handler);
  // No more connections; it tells what is left, and ends.
  void finish();
  // SIGKILL and reap; the wait(2) status. Nothing happens the second time.
  int kill();

 private:
  EgressProcess() = default;
  Result<void> wait_ready(std::chrono::milliseconds limit);
  Result<void> message(std::string_view text, const Handler& handler);

  Child child_;
  UniqueFd link_;
  codec::FrameDecoder decoder_;
  Ready ready_;
  bool is_ready_ = false;
  int status_ = 0;
};

// Asks for a name that nobody can mean, from the guest's side of the link: it must be denied, and the denial
// must be told. Before the tap is given away. Error: "egress.self_test".
Result<void> self_test(EgressProcess& process, int tap, std::chrono::milliseconds limit);

}  // namespace firestop::egress
