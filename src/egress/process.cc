#include "egress/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/loop.h"
#include "codec/frame.h"
#include "egress/gateway.h"
#include "egress/link.h"
#include "egress/lock_down.h"

namespace firestop::egress {
namespace {

// The configuration from the link; blocks until the sandbox has sent all of it.
Result<ProcessConfig> read_config(int link) {
  codec::FrameDecoder decoder;
  std::string text;
  char buffer[64u << 10];
  for (;;) {
    const ssize_t n = ::recv(link, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail("egress.config", "the sandbox ended before it had told its policy");
    decoder.feed({buffer, static_cast<size_t>(n)});
    for (;;) {
      TRY_ASSIGN(const auto next, decoder.next());
      if (!next) break;
      const codec::Frame& frame = *next;
      if (frame.stream != kConfigStream) return fail("egress.config", "a frame that does not belong here");
      if (frame.type == codec::FrameType::kEnd) {
        TRY_ASSIGN(const codec::Json json, codec::parse_json(text));
        return config_of(json);
      }
      text += frame.payload;
      if (text.size() > kMostConfig) return fail("egress.config", "the policy is too long");
    }
  }
}

class Process {
 public:
  explicit Process(int link) : writer_(link), link_(link) {}

  Result<void> set_up() {
    TRY(keep_to_itself(Doors::kMostConnections));
    TRY_ASSIGN(ProcessConfig config, read_config(link_));
    const Recorder record = [this](const Crossing& crossing) { writer_.crossing(crossing); };
    TRY_ASSIGN(gateway_, Gateway::make(loop_, std::move(config), record));
    TRY_ASSIGN(const auto landlocked, lock_down(gateway_->readable()));
    gateway_->open({UniqueFd(kTcpFd), UniqueFd(kSinkFd), UniqueFd(kDnsTcpFd), UniqueFd(kDnsUdpFd)});
    codec::JsonObject ready = gateway_->ready();
    ready["type"] = "ready";
    ready["landlock"] = landlocked == jail::Landlocked::kYes;
    watch_link();
    writer_.say(ready);
    return {};
  }

  int live() {
    loop_.run();
    gateway_->close();
    ::fcntl(link_, F_SETFL, 0);  // the last words wait for their reader, who has an end of his own
    writer_.on_waiting = nullptr;
    writer_.flush();
    return 0;
  }

 private:
  void watch_link() {
    ::fcntl(link_, F_SETFL, O_NONBLOCK);
    watch_ = loop_.watch(link_, Loop::kReadable, [this](int events) {
      if (events & Loop::kWritable) writer_.flush();
      char byte;
      const ssize_t n = ::recv(link_, &byte, 1, MSG_DONTWAIT);
      if (n >= 0 || (errno != EAGAIN && errno != EINTR)) loop_.stop();  // nothing is said here but the end
    });
    writer_.on_waiting = [this](bool waiting) {
      watch_->set_events(Loop::kReadable | (waiting ? Loop::kWritable : 0));
    };
  }

  Loop loop_;
  LinkWriter writer_;
  int link_;
  std::unique_ptr<Gateway> gateway_;
  Loop::Handle watch_;
};

}  // namespace

int process_main() {
  ::signal(SIGPIPE, SIG_IGN);
  struct stat what{};
  if (::fstat(kLinkFd, &what) != 0 || !S_ISSOCK(what.st_mode)) return 1;  // somebody tried it by hand
  Process process(kLinkFd);
  if (auto up = process.set_up(); !up) {
    const Error& error = up.error();
    LinkWriter last(kLinkFd);
    last.say(codec::JsonObject{
        {"type", "failed"}, {"code", error.code}, {"message", error.message}, {"hint", error.hint}});
    return 1;
  }
  return process.live();
}

}  // namespace firestop::egress
