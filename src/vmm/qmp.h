// The client's side of QMP (docs/interop/qmp-spec.txt of QEMU): one JSON object a line over a stream socket.
// QEMU may have been taken over by its guest, so what it says is bounded and strictly parsed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "codec/json.h"

namespace firestop::vmm {

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr size_t kMaxQmpLine = 256u << 10;

// Bytes to lines to values. After an error it stays broken.
class QmpParser {
 public:
  void feed(std::string_view bytes);
  // An object, nothing yet, or "vmm.qmp" (line too long, not JSON, no object).
  Result<std::optional<codec::Json>> next();

 private:
  std::string buffer_;
  size_t read_ = 0;
  bool broken_ = false;
};

// Commands may be sent before QEMU has even started; they wait in the socket, which saves every round trip.
// Errors: "vmm.qmp", "vmm.qmp_timeout", "vmm.qemu_ended" (the other end closed).
class Qmp {
 public:
  Qmp() = default;
  explicit Qmp(UniqueFd fd) : fd_(std::move(fd)) {}

  // Sends without waiting, with a copy of descriptor `fd` if there is one ("getfd"); returns the command's
  // number.
  Result<int64_t> send(std::string_view command, codec::JsonObject arguments = {}, int fd = -1);
  // What the command returned. Answers before it that are errors are an error.
  Result<codec::Json> wait_return(int64_t number, Deadline deadline);
  Result<codec::Json> execute(std::string_view command, codec::JsonObject arguments, Deadline deadline);
  // Until QEMU tells of this event, or told of it since the beginning. An error answer ends the wait.
  Result<void> wait_event(const std::string& name, Deadline deadline);

 private:
  Result<codec::Json> receive(Deadline deadline);
  // Takes note of an event; fails on an error answer.
  Result<void> note(const codec::Json& message);

  UniqueFd fd_;
  QmpParser parser_;
  int64_t next_number_ = 1;
  std::set<std::string> events_;
};

}  // namespace firestop::vmm
