#include "guest/evidence/teller.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "codec/frame.h"
#include "guest/cgroup.h"
#include "guest/mount.h"
#include "guest/port.h"

namespace firestop::guest {
namespace {

namespace observed = channel::observed;
constexpr size_t kPiece = 32u << 10;  // what the port's driver takes at once

}  // namespace

Result<Teller> Teller::open() {
  Teller teller;
  TRY_ASSIGN(teller.port_, open_port("firestop.1"));
  return teller;
}

void Teller::say(const observed::Observation& observation) {
  const auto json = observed::encode(observation);
  if (!json) {
    ++untold_;
    return;
  }
  codec::append_frame(pending_, codec::FrameType::kControl, 0, *json);
}

uint32_t Teller::say_content(std::string_view bytes, uint64_t size) {
  bytes = bytes.substr(0, observed::kMostContent);
  const uint32_t id = ++contents_;
  say(observed::Content{id, std::max<uint64_t>(size, bytes.size()), bytes.size()});
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), codec::kMaxPayload))) {
    codec::append_frame(pending_, codec::FrameType::kData, observed::kContentStream,
                        bytes.substr(0, codec::kMaxPayload));
    settle();
  }
  codec::append_frame(pending_, codec::FrameType::kEnd, observed::kContentStream, {});
  return id;
}

void Teller::write_some() {
  stuck_ = false;
  while (written_ < pending_.size() && !broken_) {
    const size_t size = std::min(pending_.size() - written_, kPiece);
    const ssize_t put = ::write(port_.get(), pending_.data() + written_, size);
    if (put < 0 && errno == EINTR) continue;
    stuck_ = put < 0 && errno == EAGAIN;
    if (stuck_) break;
    if (put <= 0) broken_ = true;
    if (put > 0) written_ += static_cast<size_t>(put);
  }
  if (written_ == pending_.size() || written_ > kMost) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

void Teller::settle_below(size_t bytes) {
  write_some();
  bool frozen = false;
  while (pending_.size() - written_ >= bytes && !broken_) {
    if (!frozen) frozen = write_kernel_file(cgroup_file("cgroup.freeze"), "1").has_value();
    pollfd state{port_.get(), POLLOUT, 0};
    ::poll(&state, 1, 1000);
    write_some();
  }
  if (frozen) (void)write_kernel_file(cgroup_file("cgroup.freeze"), "0");
}

uint64_t Teller::take_untold() {
  return std::exchange(untold_, 0);
}

}  // namespace firestop::guest
