#include "guest/accounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::guest {
namespace {

using channel::Account;

TEST(Accounts, FollowTheImages) {
  EXPECT_EQ(passwd_with("root:x:0:0:root:/root:/bin/bash\n", {{"agent", 1000, 1000, {}}}, "/bin/bash"),
            "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000::/home/agent:/bin/bash\n");
  EXPECT_EQ(group_with("root:x:0:\n", {{"agent", 1000, 1000, {}}}, {}), "root:x:0:\nagent:x:1000:\n");
}

TEST(Accounts, ReplaceWhatHasTheirNameOrNumber) {
  EXPECT_EQ(
      passwd_with("agent:x:7:7::/:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nlast:x:10:10::/:/bin/sh",
                  {{"agent", 1000, 1000, {}}}, "/bin/sh"),
      "last:x:10:10::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n");
  EXPECT_EQ(
      group_with("user:x:1000:\nreviewers:x:5:a\n", {{"agent", 1000, 1000, {2000}}}, {{"reviewers", 2000}}),
      "reviewers:x:2000:agent\nagent:x:1000:\n");
}

TEST(Accounts, MembersAreListed) {
  const std::vector<Account> accounts = {{"a", 1000, 1000, {2000, 2001}}, {"b", 1001, 1001, {2001}}};
  EXPECT_EQ(group_with("", accounts, {{"x", 2000}, {"y", 2001}, {"z", 2002}}),
            "x:x:2000:a\ny:x:2001:a,b\nz:x:2002:\na:x:1000:\nb:x:1001:\n");
}

TEST(Accounts, ADeclaredGroupMayBeAPrimaryOne) {
  EXPECT_EQ(group_with("", {{"a", 1000, 3000, {}}}, {{"staff", 3000}}), "staff:x:3000:\n");
}

TEST(Accounts, AnImageWithoutOrWithOddFilesIsFine) {
  EXPECT_EQ(passwd_with("", {{"a", 1000, 1000, {}}}, "/bin/sh"), "a:x:1000:1000::/home/a:/bin/sh\n");
  EXPECT_EQ(passwd_with("no colons\n\n:::\n", {{"a", 1000, 1000, {}}}, "/bin/sh"),
            "no colons\n:::\na:x:1000:1000::/home/a:/bin/sh\n");
}

}  // namespace
}  // namespace firestop::guest
