// PID 1's event loop: epoll(7), level-triggered, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

class Events {
 public:
  using Callback = std::function<void(uint32_t events)>;

  static Result<Events> make();

  // Which events (EPOLLIN, EPOLLOUT) of `fd` call `callback`; hang-ups and errors come with them. With 0 the
  // descriptor is not watched at all, so that a hang-up nobody can act on yet does not spin.
  void watch(int fd, uint32_t events, Callback callback);
  void want(int fd, uint32_t events);
  // Before the descriptor is closed.
  void drop(int fd);

  // Waits at most `timeout_ms` (-1: for ever) and calls what is due.
  void wait(int timeout_ms);

 private:
  struct Watch {
    uint32_t events = 0;
    Callback callback;
  };
  UniqueFd epoll_;
  std::map<int, std::shared_ptr<Watch>> watches_;
};

}  // namespace firestop::guest
