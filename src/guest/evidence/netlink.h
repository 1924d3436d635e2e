// A netlink(7) socket whose datagrams hold one message each, as those of audit, the process connector and
// taskstats do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

class Netlink {
 public:
  // `groups` is a mask. The receive buffer has kBuffer bytes, whatever the system's limit.
  static Result<Netlink> open(int protocol, uint32_t groups);

  int fd() const { return fd_.get(); }
  // Sends one message and waits for its acknowledgement. What comes before that is dropped, so this is for
  // the time before anything is watched. With an errno in the error when the kernel refuses.
  Result<void> request(uint16_t type, std::string_view payload);
  // The same; the first message that is no acknowledgement.
  Result<std::string> query(uint16_t type, std::string_view payload);
  // Sends without waiting for anything.
  Result<void> send(uint16_t type, std::string_view payload);

  enum class Got { kMessage, kNothing, kOverflow };
  // The next message, without waiting. kOverflow: the kernel had to throw some away.
  Got receive(uint16_t& type, std::string& payload);

 private:
  static constexpr int kBuffer = 16 << 20;
  Result<std::string> exchange(uint16_t type, std::string_view payload);

  UniqueFd fd_;
  uint32_t sequence_ = 0;
};

// A structure's bytes.
template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace firestop::guest
