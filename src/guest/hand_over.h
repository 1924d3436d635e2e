// The export's bytes, from the child of PID 1 that makes them to the channel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/frame.h"
#include "guest/events.h"
#include "guest/export.h"
#include "guest/port.h"

namespace firestop::guest {

class HandOver {
 public:
  static Result<std::unique_ptr<HandOver>> start(Events& events, Port& port, const ExportPlan& plan,
                                                 const StartInContainer& start);
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // After every round of events.
  void step();
  bool over() const { return !frames_.valid(); }

 private:
  HandOver(Events& events, Port& port) : events_(events), port_(port) {}
  void read_some();
  void take_frames();
  // Sends what the channel takes; what is left of it, if anything.
  std::string_view pass_on(const codec::Frame& frame);
  void finish(const std::string& error);

  Events& events_;
  Port& port_;
  pid_t pid_ = -1;
  UniqueFd frames_;
  codec::FrameDecoder decoder_;
  std::string waiting_;  // data that its stream has no credit for yet
  uint16_t waiting_stream_ = 0;
  std::vector<uint16_t> streams_;  // to be ended, whatever happens
  channel::Exported answer_;       // when the child dies without one
  bool answered_ = false;
};

}  // namespace firestop::guest
