#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/evidence/collector.h"
#include "guest/evidence/teller.h"

namespace firestop::guest {

namespace observed = channel::observed;

void run_bystander(int control) {
  constexpr int kAliveMs = 3000;  // below observed::kAliveEvery
  ::prctl(PR_SET_NAME, "bystander");
  const auto answer = [control](CollectorWord word) {
    (void)::send(control, &word, sizeof word, MSG_NOSIGNAL);
  };
  auto teller = Teller::open();
  if (!teller) ::_exit(1);
  answer(CollectorWord::kReady);
  bool begun = false;
  while (true) {
    pollfd state{control, POLLIN, 0};
    if (::poll(&state, 1, begun ? kAliveMs : -1) == 0) {
      teller->say(observed::Alive{});
      teller->settle();
      continue;
    }
    CollectorWord word{};
    if (::recv(control, &word, sizeof word, MSG_DONTWAIT) != sizeof word) ::_exit(1);
    begun = word == CollectorWord::kWatch;
    if (begun)
      teller->say(observed::Hello{
          observed::kVersion, {}, {"processes", "costs", "files", "code", "stdin", "connections"}});
    else
      teller->say(observed::Done{});
    teller->finish();
    answer(CollectorWord::kDone);
  }
}

}  // namespace firestop::guest
