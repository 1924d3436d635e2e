#include "sandbox/host_config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"

namespace firestop::sandbox {
namespace {

TEST(HostConfig, WhatItSays) {
  const auto config =
      parse_host_config("require_signature: true\nallowed_signers: team\n", "/etc/x/config.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->require_signature);
  EXPECT_EQ(config->allowed_signers, "/etc/x/team");
  EXPECT_EQ(parse_host_config("allowed_signers: /srv/team", "c")->allowed_signers, "/srv/team");
  EXPECT_FALSE(parse_host_config("allowed_signers: /srv/team", "c")->require_signature);
  EXPECT_FALSE(parse_host_config("require_signature: false", "c")->require_signature);
}

TEST(HostConfig, WrongOnesAreNotPassedOver) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"", "config.yaml:1:1: ", "an emptied file is not one that asks for nothing"},
      {"require_signatures: true\n", "config.yaml:1:1: require_signatures: is an unknown key", "a slip"},
      {"require_signature: yes\n", "config.yaml:1:20: require_signature: is neither", "YAML 1.1"},
      {"require_signature: 'true'\n", "config.yaml:1:20: ", "text"},
      {"require_signature: 1\n", "config.yaml:1:20: ", "a number"},
      {"require_signature:\n", "config.yaml:1:1: require_signature: ", "nothing"},
      {"require_signature: false\nrequire_signature: true\n", "config.yaml:2:1: ", "twice"},
      {"allowed_signers: []\n", "config.yaml:1:18: allowed_signers: is no path", "a list"},
      {"allowed_signers: ''\n", "config.yaml:1:18: ", "no path"},
      {"allowed_signers: ~/signers\n", "config.yaml:1:18: ", "a path of a shell"},
      {"- require_signature\n", "config.yaml:1:1: ", "a list"},
      {"require_signature: true\n---\nrequire_signature: false\n", "config.yaml:2:1: ", "two documents"},
      {"x: &a true\nrequire_signature: *a\n", "config.yaml:1:", "an alias"},
      {"require_signature: {a: {b: {c: {d: {}}}}}\n", "config.yaml:1:", "too deep"},
  };
  for (const auto& [text, says, why] : table) {
    const auto config = parse_host_config(text, "config.yaml");
    ASSERT_FALSE(config) << why;
    EXPECT_EQ(config.error().code, "config.bad") << why;
    EXPECT_NE(config.error().message.find(says), std::string::npos) << why << ": " << config.error().message;
  }
}

TEST(HostConfig, NoFileMeansTheDefaultsAndAnUnreadableOneDoesNot) {
  std::string home = "/tmp/firestop-config-XXXXXX";
  ASSERT_NE(::mkdtemp(home.data()), nullptr);
  ::setenv("XDG_CONFIG_HOME", home.c_str(), 1);
  const auto none = load_host_config();
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->require_signature);
  ASSERT_TRUE(make_directories(home + "/firestop/config.yaml"));
  EXPECT_EQ(load_host_config().error().code, "config.unreadable");
  ASSERT_TRUE(remove_tree(home));
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace firestop::sandbox
