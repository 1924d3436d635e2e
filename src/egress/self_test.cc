// Whether what must not be reached is not reached, from where a guest stands, before there is one.
#include <poll.h>
#include <unistd.h>

#include "base/digest.h"
#include "egress/frames.h"
#include "egress/supervise.h"

namespace firestop::egress {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint16_t kFrom = 53535;
constexpr char kNoSuchName = 3;  // RFC 1035, section 4.1.1

// A question for an A record. RFC 6761 keeps .invalid for nobody.
std::string question(const std::string& id, const std::string& label) {
  std::string out = id + std::string("\1\0\0\1\0\0\0\0\0\0", 10);
  for (const std::string& part : {label, std::string("firestop-self-test"), std::string("invalid")})
    out += static_cast<char>(part.size()) + part;
  return out + std::string("\0\0\1\0\1", 5);
}

Unexpected failed(const std::string& why) {
  return fail("egress.self_test", "the network's self-test failed: " + why,
              "nothing was started; please report this, with the manifest");
}

// The answer to our question, if that is what this frame holds.
std::string answer_in(std::string_view frame, const std::string& id) {
  const auto datagram = datagram_of(frame);
  if (!datagram || datagram->port != kFrom || datagram->source_port != 53) return {};
  return datagram->payload.size() >= 12 && datagram->payload.starts_with(id) ? datagram->payload
                                                                             : std::string();
}

}  // namespace

Result<void> self_test(EgressProcess& process, int tap, milliseconds limit) {
  const std::string id = random_bytes(2), label = random_hex(8);
  const std::string name = label + ".firestop-self-test.invalid";
  // Of a server that is nobody's (RFC 5737): that it answers shows that it never was asked.
  const std::string frame = frame_of(Datagram{kGuestAddress, "192.0.2.53", kFrom, 53, question(id, label)});
  if (::write(tap, frame.data(), frame.size()) != static_cast<ssize_t>(frame.size()))
    return failed("a question cannot be sent");
  bool denied = false, told = false;
  const auto deadline = Clock::now() + limit;
  while (!denied || !told) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return failed(denied ? "a denial was not told of" : "a question was not answered");
    pollfd wait[] = {{tap, POLLIN, 0}, {process.link_fd(), POLLIN, 0}};
    if (::poll(wait, 2, static_cast<int>(left)) <= 0) continue;
    char buffer[kMostFrame];
    if (const ssize_t n = wait[0].revents ? ::read(tap, buffer, sizeof buffer) : 0; n > 0) {
      const std::string answer = answer_in({buffer, static_cast<size_t>(n)}, id);
      if (!answer.empty() && (answer[3] & 0x0f) != kNoSuchName)
        return failed("a name that no rule has was answered");
      denied = denied || !answer.empty();
    }
    if (!wait[1].revents) continue;
    TRY_ASSIGN(const auto state,
               process.receive({[&](const Crossing& crossing) {
                                  told = told || (crossing.host == name && crossing.verdict == "denied");
                                },
                                [](uint64_t) {}}));
    if (state == EgressProcess::State::kEnded) return failed("the network process ended");
  }
  return {};
}

}  // namespace firestop::egress
