// The host's side of one started machine: configures it, runs the command, relays its streams, holds the
// deadline and the caps on what comes out, collects what comes back, and ends the machine. The guest is
// hostile: whatever it says or leaves unsaid, run() returns within rating + boot and hand-over limits.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "channel/messages.h"
#include "sandbox/local_io.h"
#include "sandbox/network.h"
#include "sandbox/recorder.h"
#include "vmm/vmm.h"

namespace firestop::sandbox {

struct SessionConfig {
  channel::Start start;
  channel::Exec exec;
  std::chrono::milliseconds rating{};
  std::optional<std::chrono::milliseconds> idle;
  uint64_t output_limit = 0;                       // stdout plus stderr, bytes
  uint64_t result_limit = 0;                       // what comes back, as sent, bytes
  std::vector<std::string> bundle_paths;           // files to write, one per start.repositories
  std::map<std::string, std::string> on_alarm;     // of each credential: "deny", "freeze", "kill"
  std::function<void(const std::string&)> notice;  // for people; may be empty
  Network* network = nullptr;                      // not owned; the sandbox's, where it has one
  Recorder* recorder = nullptr;                    // not owned; never null
  std::string outputs_path;                        // the archive of outputs; empty if none are declared
  std::string memory_path;    // the archive of the memory directory, where start.memory has one
  uint64_t memory_limit = 0;  // of that archive, bytes; not part of result_limit
};

enum class EndCause {
  kExited,       // the command ended by itself
  kRating,       // the deadline came
  kIdle,         // nothing happened for so long
  kOutputCap,    // more output than limits.output
  kNetworkCap,   // more bytes than limits.network.bytes
  kAlarm,        // a credential's placeholder was about to leave, and its on_alarm ends the run
  kInterrupted,  // the user asked twice, or we were told to terminate
  kFailed,       // machine, guest or protocol failed; see `error`
};

struct SessionEnd {
  EndCause cause = EndCause::kFailed;
  std::optional<Error> error;                 // kFailed, or why nothing could be handed over
  std::optional<channel::Exited> exited;      // when the command's end was seen
  std::optional<channel::Exported> exported;  // when everything was handed over
  std::vector<channel::Denied> denied;        // a path once, with its sum; bounded
  bool result_too_large = false;
  bool memory_too_large = false;  // its archive is cut off
  bool ran = false;               // the command was started
  bool errors_open = false;       // its last line on stderr has no end
  std::vector<std::pair<std::string, int64_t>> steps_us;
};

class Session {
 public:
  // `vm` and `io` must outlive it.
  Session(vmm::Vm& vm, LocalIo& io, SessionConfig config);
  ~Session();
  // Once. `ready` is what the machine said before it was handed to us.
  SessionEnd run(const std::string& ready);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firestop::sandbox
