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

TEST(HostConfig, WhatItSaysOfTheNetwork) {
  const auto config = parse_host_config(
      "upstream_ca: company.pem\nconnect_to:\n  - api.example.com:443=10.1.2.3:8443\n"
      "  - \"b.example:80=[fd00::1]:80\"\n",
      "/etc/x/config.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->upstream_ca, "/etc/x/company.pem");
  ASSERT_EQ(config->connect_to.size(), 2u);
  EXPECT_EQ(egress::to_string(config->connect_to[0]), "api.example.com:443=10.1.2.3:8443");
  EXPECT_EQ(egress::to_string(config->connect_to[1]), "b.example:80=[fd00::1]:80");
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
      {"upstream_ca: 1\n", "config.yaml:1:14: upstream_ca: is no path", "a number"},
      {"upstream_ca: ~/ca.pem\n", "config.yaml:1:14: ", "a path of a shell"},
      {"connect_to: a.example:443=127.0.0.1:1\n", "config.yaml:1:13: connect_to: is no list", "one"},
      {"connect_to: [1]\n", "config.yaml:1:14: connect_to[0]: is no text", "a number"},
      {"connect_to: [\"a.example:443=b.example:1\"]\n", "config.yaml:1:14: connect_to[0]: a.example",
       "a name"},
      {"connect_to: [\"a.example:1=127.0.0.1:1\", \"A.example:1=127.0.0.1:2\"]\n",
       "config.yaml:1:41: connect_to[1]: ", "two places for one name"},
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
