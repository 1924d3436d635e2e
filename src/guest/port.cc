#include "guest/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kPorts[] = "/sys/class/virtio-ports/";
constexpr int kTriesAMillisecondApart = 10'000;

void sleep_a_millisecond() {
  const timespec pause{0, 1'000'000};
  ::nanosleep(&pause, nullptr);
}

// The node of the port ("vport0p1"), or empty while it is not announced.
std::string find_port(const char* wanted) {
  std::unique_ptr<DIR, int (*)(DIR*)> ports(::opendir(kPorts), ::closedir);
  if (!ports) return {};
  while (const dirent* entry = ::readdir(ports.get())) {
    const auto name = read_kernel_file(std::string(kPorts) + entry->d_name + "/name");
    if (name && *name == wanted) return entry->d_name;
  }
  return {};
}

}  // namespace

Result<UniqueFd> open_port(const char* name) {
  std::string node;
  UniqueFd port;
  for (int tries = 0; tries < kTriesAMillisecondApart; ++tries, sleep_a_millisecond()) {
    if (node.empty()) node = find_port(name);
    if (node.empty()) continue;
    if (!port.valid()) {
      // The node is there a little before the port can be opened (ENXIO).
      port.reset(::open(("/dev/" + node).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      if (!port.valid() && errno != ENXIO && errno != ENOENT)
        return fail_errno("guest.channel", "cannot open the port " + node);
      if (!port.valid()) continue;
    }
    // And a little before the kernel knows that the host listens.
    pollfd state{port.get(), POLLOUT, 0};
    if (::poll(&state, 1, 0) >= 0 && (state.revents & POLLHUP) == 0) return port;
  }
  return fail("guest.channel",
              std::string("the machine has no port \"") + name + "\" that somebody listens at");
}

Result<void> Port::open() {
  TRY_ASSIGN(fd_, open_port("firestop.0"));
  return {};
}

void Port::attach(Events& events) {
  events_ = &events;
  events.watch(fd_.get(), EPOLLIN, [this](uint32_t due) {
    if ((due & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_some();
    if ((due & EPOLLOUT) != 0) flush();
  });
}

void Port::read_some() {
  char buffer[64 << 10];
  const ssize_t got = ::read(fd_.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    broken_ = got == 0 ? "the host has closed the channel" : std::string("read: ") + ::strerror(errno);
    return;
  }
  if (const auto taken = mux_.receive({buffer, static_cast<size_t>(got)}); !taken)
    broken_ = taken.error().message;
}

void Port::say(const channel::FromGuest& message) {
  const auto json = channel::encode(message);
  const auto sent = json ? mux_.send_control(*json) : Result<void>(Unexpected(json.error()));
  if (!sent) broken_ = sent.error().message;
}

void Port::flush() {
  while (!mux_.pending().empty() && broken_.empty()) {
    // The driver takes at most 32 KiB at once and copies them.
    const size_t size = std::min<size_t>(mux_.pending().size(), 32u << 10);
    const ssize_t put = ::write(fd_.get(), mux_.pending().data(), size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put <= 0) {
      broken_ = std::string("write: ") + ::strerror(errno);
      return;
    }
    mux_.written(static_cast<size_t>(put));
  }
  if (events_ != nullptr) events_->want(fd_.get(), EPOLLIN | (mux_.pending().empty() ? 0u : EPOLLOUT));
}

void Port::flush_finally() {
  for (int tries = 0; tries < 1000 && fd_.valid() && broken_.empty(); ++tries, sleep_a_millisecond()) {
    flush();
    if (mux_.pending().empty()) return;
  }
}

}  // namespace firestop::guest
