#include "credentials/bindings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "manifest/load.h"

namespace firestop::credentials {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Bindings, AreReadAsTheyAreMeant) {
  const auto bindings = parse_bindings(R"(
model: {hosts: [API.example.com.], env: API_KEY}
forge: {hosts: ["*.example.org"], file: secrets/forge}
store:
  hosts: [a.example.net, b.example.net]
  command: [secret-tool, lookup, service, x]
  cache: 10m
mail:
  hosts: [mail.example.com]
  oauth:
    token_url: https://login.example.com/token
    client_id: firestop
    client_secret: {env: CLIENT}
    refresh_token: {file: /run/token}
    rotates: true
    scope: read
)",
                                       "/etc/x/credentials.yaml");
  ASSERT_TRUE(bindings.has_value()) << bindings.error().message;
  ASSERT_EQ(bindings->size(), 4u);
  EXPECT_THAT(bindings->at("model").hosts, ElementsAre("api.example.com"));
  EXPECT_EQ(bindings->at("model").source.place, "API_KEY");
  EXPECT_EQ(bindings->at("forge").source.place, "/etc/x/secrets/forge");
  EXPECT_EQ(bindings->at("store").source.cache, std::chrono::minutes(10));
  EXPECT_THAT(bindings->at("store").source.command, ElementsAre("secret-tool", "lookup", "service", "x"));
  EXPECT_EQ(bindings->at("mail").oauth->client_secret->place, "CLIENT");
  const auto again = bindings_from_json(to_json(*bindings));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(codec::write_json(to_json(*again)), codec::write_json(to_json(*bindings)));
  EXPECT_TRUE(parse_bindings("", "f")->empty());
}

TEST(Bindings, WhatIsWrongIsSaidWithItsPlace) {
  const struct {
    const char* text;
    const char* message;
  } rows[] = {
      {"model: {env: KEY}", "f.yaml:1:8: model.hosts: is missing"},
      {"model: {hosts: [], env: KEY}",
       "f.yaml:1:16: model.hosts: is empty, so that the value may go nowhere"},
      {"model: {hosts: [\"*\"], env: KEY}", "matches every host"},
      {"model: {hosts: [\"*.com\"], env: KEY}", "matches a whole top-level domain"},
      {"model: {hosts: [a.example.com]}", "model: has no source"},
      {"model: {hosts: [a.example.com], env: A, file: b}", "model: has several sources"},
      {"model: {hosts: [a.example.com], value: s3cret}", "unknown key 'value' in a binding"},
      {"model: {hosts: [a.example.com], env: A, cache: 1m}", "cache: means nothing without command"},
      {"model: {hosts: [a.example.com], file: ~/key}", "begins with ~, which only a shell knows"},
      {"model: {hosts: [a.example.com], command: pass show x}", "expected a list of words"},
      {"model: {hosts: [a.example.com], command: []}", "has no program"},
      {"a b: {hosts: [a.example.com], env: A}", "expected a name such as model"},
      {"model: {hosts: [a.example.com], env: A}\nmodel: {hosts: [a.example.com], env: B}", "model"},
      {"- model", "expected a mapping of names to sources"},
      {"model: {hosts: [a.example.com], oauth: {token_url: \"http://a/t\", client_id: x, refresh_token: "
       "{env: T}}}",
       "is no https:// address"},
      {"model: {hosts: [a.example.com], env: A, oauth: {token_url: \"https://a/t\", client_id: x, "
       "refresh_token: {env: T}}}",
       "stands beside oauth"},
      {"model: {hosts: [a.example.com], oauth: {token_url: \"https://a/t\", client_id: x}}",
       "refresh_token: is missing"},
      {"model: {hosts: [a.example.com], oauth: {token_url: \"https://a/t\", client_id: x, rotates: true, "
       "refresh_token: "
       "{env: T}}}",
       "rotates: has no file to write new refresh tokens to"},
  };
  for (const auto& row : rows) {
    const auto bindings = parse_bindings(row.text, "f.yaml");
    ASSERT_FALSE(bindings.has_value()) << row.text;
    EXPECT_EQ(bindings.error().code, "credentials.bad");
    EXPECT_THAT(bindings.error().message, HasSubstr(row.message));
    EXPECT_THAT(bindings.error().message, HasSubstr("^"));
  }
}

class BindingsFile : public testing::Test {
 protected:
  BindingsFile() {
    std::string name = "/tmp/firestop-bindings-XXXXXX";
    folder = ::mkdtemp(name.data());
    file = folder + "/credentials.yaml";
    EXPECT_TRUE(write_file_atomic(file, "model: {hosts: [a.example.com], env: KEY}\n", 0600));
  }
  ~BindingsFile() override { std::filesystem::remove_all(folder); }
  std::string folder, file;
};

TEST_F(BindingsFile, inv08_MustBelongToOneAlone) {
  EXPECT_TRUE(load_bindings(file).has_value());
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644, 0700 | 0010}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const auto bindings = load_bindings(file);
    ASSERT_FALSE(bindings.has_value()) << mode;
    EXPECT_EQ(bindings.error().code, "credentials.exposed");
  }
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    EXPECT_EQ(load_bindings(file).error().code, "credentials.exposed");
  }
  EXPECT_TRUE(load_bindings(folder + "/none.yaml")->empty());
  EXPECT_EQ(load_bindings(folder).error().code, "credentials.unreadable");
}

manifest::Manifest manifest_of(const std::string& host, const std::string& inject) {
  const auto loaded =
      manifest::load_text("t.yaml", "firestop: 1\nname: t\negress:\n  - {host: \"" + host +
                                        "\", methods: [GET], paths: [\"/**\"], credential: model}\n"
                                        "credentials:\n  model: {env: K, inject: " +
                                        inject + "}\n");
  EXPECT_TRUE(loaded.faults.empty());
  return loaded.manifest;
}

TEST(BindCredentials, WhatAManifestNeeds) {
  const auto bindings =
      parse_bindings("model: {hosts: [\"*.example.com\"], env: A}\nother: {hosts: [b.example.com], env: B}\n",
                     "f")
          .value();
  const auto bound = bind_credentials(manifest_of("api.example.com", "bearer"), bindings);
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->size(), 1u);  // no other value is handed to the run
  EXPECT_EQ(bind_credentials(manifest_of("api.example.com", "bearer"), {}).error().code,
            "credentials.unbound");
  EXPECT_EQ(bind_credentials(manifest_of("api.example.com", "oauth"), bindings).error().code,
            "credentials.unbound");
  // A manifest of a stranger does not take a value where its owner did not send it.
  for (const char* host : {"evil.example", "**.example.com", "*.sub.example.com", "example.com"}) {
    const auto astray = bind_credentials(manifest_of(host, "bearer"), bindings);
    ASSERT_FALSE(astray.has_value()) << host;
    EXPECT_EQ(astray.error().code, "credentials.host");
    EXPECT_THAT(astray.error().message, HasSubstr(host));
  }
}

}  // namespace
}  // namespace firestop::credentials
