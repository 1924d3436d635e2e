#include "guest/events.h"

#include <sys/epoll.h>

namespace firestop::guest {

Result<Events> Events::make() {
  Events events;
  events.epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!events.epoll_.valid()) return fail_errno("guest.events", "cannot make an epoll descriptor");
  return events;
}

void Events::watch(int fd, uint32_t events, Callback callback) {
  drop(fd);
  watches_[fd] = std::make_shared<Watch>(Watch{0, std::move(callback)});
  want(fd, events);
}

void Events::want(int fd, uint32_t events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end() || found->second->events == events) return;
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const int operation = events == 0                  ? EPOLL_CTL_DEL
                        : found->second->events == 0 ? EPOLL_CTL_ADD
                                                     : EPOLL_CTL_MOD;
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
  found->second->events = events;
}

void Events::drop(int fd) {
  want(fd, 0);
  watches_.erase(fd);
}

void Events::wait(int timeout_ms) {
  epoll_event due[16];
  const int count = ::epoll_wait(epoll_.get(), due, 16, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto found = watches_.find(due[i].data.fd);
    if (found == watches_.end()) continue;               // a callback before this one dropped it
    const std::shared_ptr<Watch> watch = found->second;  // it may drop itself
    if (watch->events != 0) watch->callback(due[i].events);
  }
}

}  // namespace firestop::guest
