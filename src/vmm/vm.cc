#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "vmm/vmm.h"

namespace firestop::vmm {
namespace {

// How much is read at one call: a guest that writes without end must not keep its reader.
constexpr size_t kDrainAtOnce = 256u << 10;

// Reads what is there from a non-blocking descriptor and keeps the last kConsoleTail bytes.
void drain(int fd, std::string& tail) {
  char buffer[16384];
  for (size_t taken = 0; fd >= 0 && taken < kDrainAtOnce;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    taken += static_cast<size_t>(n);
    tail.append(buffer, static_cast<size_t>(n));
    if (tail.size() > 2 * kConsoleTail) tail.erase(0, tail.size() - kConsoleTail);
  }
  if (tail.size() > kConsoleTail) tail.erase(0, tail.size() - kConsoleTail);
}

}  // namespace

Vm::Vm(Vm&&) noexcept = default;

Vm& Vm::operator=(Vm&& other) noexcept {
  if (this == &other) return *this;
  kill();
  cgroup_ = std::move(other.cgroup_);
  child_ = std::move(other.child_);
  status_ = other.status_;
  channel_ = std::move(other.channel_);
  evidence_ = std::move(other.evidence_);
  console_fd_ = std::move(other.console_fd_);
  errors_fd_ = std::move(other.errors_fd_);
  console_ = std::move(other.console_);
  errors_ = std::move(other.errors_);
  from_template_ = other.from_template_;
  template_key_ = std::move(other.template_key_);
  steps_ = std::move(other.steps_);
  return *this;
}

Vm::~Vm() {
  kill();
}

void Vm::drain_console() {
  drain(console_fd_.get(), console_);
}

void Vm::freeze() {
  ::syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGSTOP, nullptr, 0);
}

int Vm::kill() {
  if (child_.pidfd.valid()) status_ = child_.kill_and_wait();
  return status_;
}

const std::string& Vm::qemu_errors() {
  drain(errors_fd_.get(), errors_);
  return errors_;
}

std::string printable_tail(std::string_view text, size_t lines) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  size_t begin = text.size();
  for (; begin > 0 && text.size() - begin < 4096; --begin)
    if (text[begin - 1] == '\n' && --lines == 0) break;
  std::string out;
  for (const char c : text.substr(begin)) {
    if (c == '\r') continue;
    const bool plain = c == '\n' || c == '\t' || (c >= ' ' && c <= '~');
    out.push_back(plain ? c : '?');
  }
  return out;
}

}  // namespace firestop::vmm
