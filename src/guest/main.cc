// firestop-guest: the first and only process of ours in a sandbox's machine. It is /init of the initramfs,
// takes its whole configuration from the host over one port, and never outlives the conversation.
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/boot.h"
#include "guest/session.h"

namespace firestop::guest {
namespace {

// The host shows the console's last lines when a machine does not come up.
void complain(const Error& error) {
  const UniqueFd console(::open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (console.valid()) (void)write_all(console.get(), "firestop-guest: " + error.to_string() + "\n");
}

Result<void> live() {
  // Kernel file systems, modules, a root that containers can leave.
  TRY(boot());
  // "ready"; then what the host says, until it says "shutdown" or is gone.
  TRY_ASSIGN(Events events, Events::make());
  Session session(std::move(events));
  return session.run();
}

// QEMU runs with -no-reboot: a restart is the end of the machine, and powering off is not (with microvm).
[[noreturn]] void end_machine() {
  ::sync();
  while (true) {
    ::reboot(RB_AUTOBOOT);
    ::sleep(1);
  }
}

}  // namespace
}  // namespace firestop::guest

int main() {
  using namespace firestop::guest;
  // Outside of a machine of its own it would do harm: mount over /proc, load modules, reboot.
  if (::getpid() != 1) {
    static const char kSays[] = "firestop-guest is the init of a Firestop machine, not a program to call.\n";
    (void)!::write(2, kSays, sizeof kSays - 1);
    return 1;
  }
  ::signal(SIGPIPE, SIG_IGN);
  if (const auto lived = live(); !lived) complain(lived.error());
  end_machine();
}
