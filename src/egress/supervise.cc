#include "egress/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "codec/json.h"
#include "egress/crossing_json.h"
#include "egress/link.h"

namespace firestop::egress {
namespace {

using Clock = std::chrono::steady_clock;

// How much is read at one call: a process that talks without end must not keep its reader.
constexpr size_t kAtOnce = 256u << 10;

std::string config_frames(const ProcessConfig& config) {
  const std::string text = codec::write_json(to_json(config));
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, codec::kMaxPayload);
    codec::append_frame(out, codec::FrameType::kData, kConfigStream, part);
    rest.remove_prefix(part.size());
  }
  codec::append_frame(out, codec::FrameType::kEnd, kConfigStream, {});
  return out;
}

Unexpected gone(const std::string& why) {
  return fail("egress.gone", "the sandbox's network process " + why);
}

}  // namespace

EgressProcess::~EgressProcess() {
  kill();
}

int EgressProcess::kill() {
  if (child_.pidfd.valid()) status_ = child_.kill_and_wait();
  return status_;
}

void EgressProcess::finish() {
  ::shutdown(link_.get(), SHUT_WR);
}

Result<EgressProcess> EgressProcess::start(const std::string& program, const ProcessConfig& config,
                                           Seam& seam, UniqueFd sources, std::chrono::milliseconds limit) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("egress.start", "cannot make a socket pair");
  EgressProcess process;
  process.link_.reset(ends[0]);
  UniqueFd theirs(ends[1]);
  Command command;
  command.argv = {program, "__egress"};
  command.directory = "/";
  command.descriptors = {{theirs.get(), kLinkFd},
                         {seam.tcp.get(), kTcpFd},
                         {seam.dns_tcp.get(), kDnsTcpFd},
                         {seam.dns_udp.get(), kDnsUdpFd},
                         {seam.sink.get(), kSinkFd}};
  if (sources.valid()) command.descriptors.emplace_back(sources.get(), kSourcesFd);
  TRY_ASSIGN(process.child_, spawn(command));
  theirs.reset();
  // Nobody else has them: when it ends, the guest's connections are refused.
  seam.tcp.reset();
  seam.dns_tcp.reset();
  seam.dns_udp.reset();
  seam.sink.reset();
  if (auto sent = write_all(process.link_.get(), config_frames(config)); !sent)
    return gone("ended before it had its policy");
  ::fcntl(process.link_.get(), F_SETFL, O_NONBLOCK);
  TRY(process.wait_ready(limit));
  return process;
}

Result<void> EgressProcess::wait_ready(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!is_ready_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{link_.get(), POLLIN, 0};
    if (left <= 0)
      return fail("egress.silent", "the sandbox's network process was not ready within " +
                                       std::to_string(limit.count() / 1000) + " s");
    if (::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1000))) <= 0) continue;
    TRY_ASSIGN(const State state, receive({[](const Crossing&) {}, [](uint64_t) {}}));
    if (state == State::kEnded && !is_ready_) {
      const int status = child_.wait();
      return gone("ended before it was ready: " + describe_status(status));
    }
  }
  return {};
}

Result<EgressProcess::State> EgressProcess::receive(const Handler& handler) {
  char buffer[64u << 10];
  for (size_t taken = 0; taken < kAtOnce;) {
    const ssize_t n = ::recv(link_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) return gone("broke off");
    if (n == 0) return State::kEnded;
    taken += static_cast<size_t>(n);
    decoder_.feed({buffer, static_cast<size_t>(n)});
    for (;;) {
      const auto next = decoder_.next();
      if (!next) return gone("speaks nonsense: " + next.error().message);
      const auto& frame = *next;
      if (!frame.has_value()) break;
      if (frame->type != codec::FrameType::kControl) return gone("speaks out of turn");
      TRY(message(frame->payload, handler));
    }
  }
  return State::kGoing;
}

Result<void> EgressProcess::message(std::string_view text, const Handler& handler) {
  const auto json = codec::parse_json(text);
  if (!json) return gone("speaks nonsense: " + json.error().message);
  const std::string type = json->string_or("type", "");
  if (type == "failed") {
    const std::string code = json->string_or("code", "");
    return fail(code.empty() ? "egress.failed" : code,
                json->string_or("message", "the network process failed"), json->string_or("hint", ""));
  }
  if (type == "ready" && !is_ready_) {
    ready_ = {json->string_or("authority", ""), json->string_or("authority_hash", ""),
              json->bool_or("landlock", false)};
    is_ready_ = true;
    return {};
  }
  if (type == "lost") {
    handler.lost(static_cast<uint64_t>(std::max<int64_t>(0, json->int_or("count", 0))));
    return {};
  }
  if (type != "crossing") return gone("speaks out of turn");
  const auto crossing = crossing_of(*json);
  if (!crossing) return gone("speaks nonsense: " + crossing.error().message);
  handler.crossing(*crossing);
  return {};
}

}  // namespace firestop::egress
