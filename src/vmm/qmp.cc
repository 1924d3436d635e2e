#include "vmm/qmp.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace firestop::vmm {
namespace {

// Names of events that are remembered; QEMU has about fifty.
constexpr size_t kMaxEvents = 128;

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000000));
}

}  // namespace

void QmpParser::feed(std::string_view bytes) {
  if (broken_) return;
  buffer_.erase(0, read_);
  read_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<codec::Json>> QmpParser::next() {
  const auto broken = [this](const std::string& what) {
    broken_ = true;
    buffer_.clear();
    return fail("vmm.qmp", "QEMU's monitor: " + what);
  };
  if (broken_) return broken("unreadable since an earlier error");
  for (;;) {
    const size_t end = buffer_.find('\n', read_);
    const size_t length = (end == std::string::npos ? buffer_.size() : end) - read_;
    if (length > kMaxQmpLine) return broken("a line of more than " + std::to_string(kMaxQmpLine) + " bytes");
    if (end == std::string::npos) return std::nullopt;
    std::string_view line = std::string_view(buffer_).substr(read_, length);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    read_ = end + 1;
    if (line.empty()) continue;
    auto value = codec::parse_json(line);
    if (!value) return broken(value.error().message);
    if (!value->as_object()) return broken("a line that is no object");
    return std::optional(std::move(*value));
  }
}

Result<int64_t> Qmp::send(std::string_view command, codec::JsonObject arguments, int fd) {
  const int64_t number = next_number_++;
  codec::JsonObject message{{"execute", command}, {"id", number}};
  if (!arguments.empty()) message.emplace("arguments", std::move(arguments));
  std::string line = codec::write_json(message) + "\n";
  iovec part{line.data(), line.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* attached = CMSG_FIRSTHDR(&header);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  }
  // Commands are few and short: they fit into the socket's buffer, whatever QEMU is doing.
  const ssize_t sent = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return fail("vmm.qemu_ended", "QEMU ended");
  if (sent != static_cast<ssize_t>(line.size()))
    return fail_errno("vmm.qmp", "cannot write to QEMU's monitor");
  return number;
}

Result<codec::Json> Qmp::receive(Deadline deadline) {
  char buffer[16384];
  for (;;) {
    TRY_ASSIGN(auto message, parser_.next());
    if (message) return std::move(*message);
    // Not left to poll(): with more to read at any time, it never finds that the time is over.
    if (std::chrono::steady_clock::now() >= deadline)
      return fail("vmm.qmp_timeout", "QEMU's monitor did not answer in time");
    pollfd wait{fd_.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return fail_errno("vmm.qmp", "cannot wait for QEMU's monitor");
    if (ready == 0) continue;
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0 && errno != ECONNRESET) return fail_errno("vmm.qmp", "cannot read QEMU's monitor");
    if (n <= 0) return fail("vmm.qemu_ended", "QEMU ended");
    parser_.feed({buffer, static_cast<size_t>(n)});
  }
}

Result<void> Qmp::note(const codec::Json& message) {
  if (const codec::Json* error = message.find("error"))
    return fail("vmm.qmp", "QEMU refused: " + error->string_or("desc", "no reason given"));
  const std::string event = message.string_or("event", "");
  if (!event.empty() && events_.size() < kMaxEvents) events_.insert(event);
  return {};
}

Result<codec::Json> Qmp::wait_return(int64_t number, Deadline deadline) {
  for (;;) {
    TRY_ASSIGN(const codec::Json message, receive(deadline));
    TRY(note(message));
    const codec::Json* value = message.find("return");
    if (value && message.int_or("id", 0) == number) return *value;
  }
}

Result<codec::Json> Qmp::execute(std::string_view command, codec::JsonObject arguments, Deadline deadline) {
  TRY_ASSIGN(const int64_t number, send(command, std::move(arguments)));
  return wait_return(number, deadline);
}

Result<void> Qmp::wait_event(const std::string& name, Deadline deadline) {
  while (!events_.contains(name)) {
    TRY_ASSIGN(const codec::Json message, receive(deadline));
    TRY(note(message));
  }
  return {};
}

}  // namespace firestop::vmm
