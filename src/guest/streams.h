// Descriptors of a command, joined to streams of the channel. Both stop when the other side stops: a pipe is
// read only while the host gives credit, and the host gets credit only for what the command took.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "guest/events.h"
#include "guest/port.h"

namespace firestop::guest {

enum class Source { kPipe, kTerminal };

// From a descriptor to a stream.
class Output {
 public:
  // Takes the descriptor, which must not block.
  Output(Events& events, Port& port, uint16_t stream, UniqueFd fd, Source source);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Goes on if it had stopped for want of credit or of room in the channel. Call it after every event.
  void resume();
  // Nobody is left who could write: what is in the descriptor now is all. Ends the stream after it.
  void writers_are_gone();
  bool done() const { return !fd_.valid(); }
  // A terminal that nobody has open reads as an error, until somebody opens it again: resume() now and then.
  bool needs_polling() const { return idle_terminal_; }

 private:
  void pump();
  void finish();

  Events& events_;
  Port& port_;
  uint16_t stream_;
  UniqueFd fd_;
  Source source_;
  bool last_ = false;
  bool blocked_ = false;
  bool idle_terminal_ = false;
};

// From a stream to a descriptor.
class Input {
 public:
  Input(Events& events, Port& port, uint16_t stream, UniqueFd fd, Source source);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  void data(std::string_view bytes);
  // After what was given so far: closes a pipe; tells a terminal's reader that its input ends (^D).
  void end();
  // Nobody reads any more: what comes from now on is dropped, and granted again so that the host never hangs.
  void close();

 private:
  void pump();

  Events& events_;
  Port& port_;
  uint16_t stream_;
  UniqueFd fd_;
  Source source_;
  std::string waiting_;  // at most channel::kWindow
  bool ended_ = false;
};

}  // namespace firestop::guest
