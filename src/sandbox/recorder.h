// One run's record: what Firestop sees itself and what the guest's collectors tell, into evidence/log.h. The
// guest is hostile: its observations are claims with vantage "guest", bounded and checked for form by
// channel/observation.h.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "channel/messages.h"
#include "channel/observation.h"
#include "codec/json.h"
#include "egress/crossing.h"
#include "evidence/host_key.h"
#include "evidence/log.h"
#include "image/executables.h"
#include "sandbox/guest_sockets.h"
#include "sandbox/plan.h"
#include "sandbox/run_store.h"

namespace firestop::sandbox {

inline constexpr const char* kEvidence = "evidence";  // its directory, in the run's
// The collectors say something every five seconds. A machine that is starved by its host may be late; one
// whose collectors were stopped says nothing more.
inline constexpr std::chrono::seconds kMostSilence{60};
inline constexpr size_t kMostFilesIn = 10000;
// So long a crossing waits for the collectors to tell its socket: they come by another way, and may be later.
inline constexpr std::chrono::seconds kLongestJoin{2};

class Recorder : private channel::observed::Receiver {
 public:
  // Begins the record: below run.directory(), with the host's key (made on first use). "evidence.*".
  static Result<std::unique_ptr<Recorder>> begin(const Plan& plan, OwnedRun& run, const std::string& anchor,
                                                 evidence::LogLimits limits = {});
  ~Recorder() override;

  // What the image can execute: whose digests stand beside the guest's words.
  void executables(image::Executables known) { executables_ = std::move(known); }

  // The host's events. A record that cannot be written is told to the watcher, or to the next check().
  void plan(const Plan& plan, const RunRecord& record);
  // What a disk carries into the sandbox: each file, up to kMostFilesIn a run, and one sum of all.
  void files_in(const PlannedDisk& disk, const std::vector<workspace::PackedFile>& files);
  void state(const std::string& state, codec::JsonObject more = {});
  void caps(const std::vector<KeptCap>& caps);
  // With the guest's process, for which it may wait; in order.
  void crossing(const egress::Crossing& crossing);
  void alarm(const std::string& credential, const std::string& action);
  // One of `kept`, which has its limit.
  void cap_hit(const std::string& cap, const std::vector<KeptCap>& kept);
  void denied(const channel::Denied& denied);
  void lost(const std::string& what, uint64_t count);
  // What came back: of a run whose results were imported.
  void results(const RunRecord& record);

  // From now on what the collectors tell is taken from `socket`, which stays the caller's. `failed` is called
  // once: "evidence.*" for a record that cannot be kept, "collectors.*" for collectors that broke or fell
  // silent.
  void watch(Loop& loop, int socket, std::function<void(Error)> failed, std::function<void()> done);
  void unwatch();
  // The command was started / is over: silence counts from here on / no more.
  void expect_life();
  void drain();  // what has come and was not read yet, without waiting
  bool greeted() const { return greeted_; }
  bool done() const { return inbox_.done(); }

  Result<void> check() const;  // whether all so far is kept
  // The terminal event, with `complete` if the collectors all worked, lost nothing and said that they were
  // done; and the attestation.
  Result<void> end(const RunRecord& record);

 private:
  Recorder(std::string directory, std::unique_ptr<evidence::HostKey> key, std::unique_ptr<evidence::Log> log);
  void append(evidence::Vantage vantage, const char* kind, codec::JsonObject data);
  enum class Join { kWhatIsKnown, kAll };
  void join_crossings(Join which);
  void append_crossing(const egress::Crossing& crossing, uint32_t pid);
  void ready();
  void tick();
  void hold_up();
  void failed(Error error);
  Result<void> observed(const channel::observed::Observation& observation) override;
  Result<void> content_bytes(std::string_view bytes) override;
  Result<void> content_end() override;
  codec::JsonObject reference(uint32_t content) const;

  void take(const channel::observed::Hello& m);
  void take(const channel::observed::Fork& m);
  void take(const channel::observed::Exec& m);
  void take(const channel::observed::Exit& m);
  void take(const channel::observed::Content& m);
  void take(const channel::observed::Code& m);
  void take(const channel::observed::Change& m);
  void take(const channel::observed::Final& m);
  void take(const channel::observed::Connect& m);
  void take(const channel::observed::Lost& m);
  void take(const channel::observed::Alive& m);
  void take(const channel::observed::Done& m);

  struct Kept {  // a content's bytes
    std::string digest;
    uint64_t size = 0, kept = 0;
    bool cut = false;  // here, since the store is full
  };

  std::string directory_;
  std::unique_ptr<evidence::HostKey> key_;
  std::unique_ptr<evidence::Log> log_;
  channel::observed::Inbox inbox_{*this};
  image::Executables executables_;
  std::vector<Kept> contents_;  // by id - 1
  struct Waiting {
    egress::Crossing crossing;
    std::chrono::steady_clock::time_point since;
  };
  GuestSockets sockets_;
  std::deque<Waiting> waiting_;  // for their sockets, in order
  bool unwritable_ = false, greeted_ = false, missing_ = false, expects_life_ = false, hears_sockets_ = false;
  uint64_t lost_ = 0, alarms_ = 0;
  size_t files_in_ = 0;
  std::chrono::steady_clock::time_point heard_;
  std::optional<Error> error_;
  std::function<void(Error)> on_failed_;
  std::function<void()> on_done_;
  int socket_ = -1;
  Loop* loop_ = nullptr;  // while watched
  Loop::Handle socket_watch_, clock_watch_, hold_watch_;
};

}  // namespace firestop::sandbox
