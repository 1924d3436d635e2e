#include "jail/child_jail.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace firestop::jail {
namespace {

// The interfaces that a child sees, and who it is.
std::string what_it_sees() {
  Command command;
  command.argv = {"sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; id -u"};
  without_network(command);
  const auto out = run_checked(std::move(command));
  return out ? *out : out.error().to_string();
}

TEST(ChildJail, inv03_ParsersHaveNoNetwork) {
  // Some kernels put unused tunnel devices into every namespace; the way out would be another kind.
  const std::string seen = what_it_sees();
  EXPECT_TRUE(seen.starts_with("lo\n") || seen.find("\nlo\n") != std::string::npos) << seen;
  EXPECT_EQ(seen.find("eth"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with(std::to_string(::geteuid()) + "\n")) << "the same user: " << seen;
}

TEST(ChildJail, inv03_AnOrdinaryUsersParsersHaveNoNetwork) {
  if (::geteuid() != 0) GTEST_SKIP() << "this one is an ordinary user already";
  const pid_t other = ::fork();
  if (other == 0) {
    const bool changed = ::setresgid(54321, 54321, 54321) == 0 && ::setresuid(54321, 54321, 54321) == 0 &&
                         ::prctl(PR_SET_DUMPABLE, 1) == 0;
    const std::string seen = what_it_sees();
    ::_exit(changed && seen.find("eth") == std::string::npos && seen.ends_with("54321\n") ? 0 : 1);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace firestop::jail
