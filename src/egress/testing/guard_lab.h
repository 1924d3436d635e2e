// A guard of some rules, without a network, and what stands for the credentials' values.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/guard_config.h"
#include "egress/guard_impl.h"
#include "manifest/load.h"

namespace firestop::egress {

inline constexpr std::string_view kValue = "s3cret/value+with=chars&more";

class FakeVault : public credentials::Vault {
 public:
  void get(const std::string& credential, Done done) override {
    ++asked;
    if (fails) {
      done(fail("credential.unavailable", "the keyring is locked"));
      return;
    }
    auto give = [this, credential, done = std::move(done)] {
      auto secret = std::make_shared<const credentials::Secret>(credentials::Secret::copy(value).value());
      given_[credential] = {secret};
      ++changes_;
      done(credentials::SharedSecret(secret));
    };
    if (later)
      waiting.push_back(give);
    else
      give();
  }
  std::vector<credentials::SharedSecret> given(const std::string& credential) const override {
    const auto found = given_.find(credential);
    return found == given_.end() ? std::vector<credentials::SharedSecret>{} : found->second;
  }

  uint64_t changes() const override { return changes_; }

  std::string value{kValue};
  bool fails = false, later = false;
  int asked = 0;
  std::vector<std::function<void()>> waiting;

 private:
  std::map<std::string, std::vector<credentials::SharedSecret>> given_;
  uint64_t changes_ = 0;
};

inline constexpr const char* kGuardManifest = R"(
firestop: 1
name: t
egress:
  - {host: api.example.com, methods: [GET, POST], paths: [/v1/**], credential: model, websocket: true}
  - {host: api.example.com}
  - {host: plain.example.com, methods: [GET], paths: ["/**"], credential: plain, plain_text: true}
  - {host: key.example.com, methods: [GET], paths: ["/**"], credential: key}
  - {host: query.example.com, methods: [GET], paths: ["/**"], credential: query}
  - {host: git.example.com, methods: [GET], paths: ["/**"], credential: forge}
  - {host: "*.other.example.org"}
  - {host: chat.example.com, methods: [GET, POST], paths: [/v1/**], credential: model, websocket: true, placeholders_in_body: own}
  - {host: open.example.com, placeholders_in_body: all}
credentials:
  model: {env: MODEL, inject: bearer, prefix: sk-}
  plain: {env: PLAIN, inject: bearer}
  key: {env: KEY, inject: header, header: X-Api-Key, scheme: Token}
  query: {env: QUERY, inject: query, query: key}
  forge: {env: FORGE, inject: basic, user: x-access-token}
)";

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    auto loaded = manifest::load_text("t.yaml", kGuardManifest);
    EXPECT_TRUE(loaded.faults.empty()) << render(loaded.faults, loaded.text);
    placeholders = credentials::make_placeholders(loaded.manifest.credentials);
    guard = make_guard({.rules = loaded.manifest.egress,
                        .credentials = loaded.manifest.credentials,
                        .placeholders = placeholders,
                        .vault = &vault,
                        .connect_to = {{{"api.example.com", 443}, "127.0.0.1:9"}}});
  }

  std::string placeholder(const std::string& credential) const {
    for (const auto& one : placeholders)
      if (one.credential == credential) return one.text;
    return "?";
  }

  static http::RequestHead request(const std::string& method, const std::string& host,
                                   const std::string& target, http::Headers headers = {}) {
    return {.method = method,
            .scheme = "https",
            .authority = {host, 443},
            .target = target,
            .headers = std::move(headers)};
  }

  // The code of the denial, or "".
  std::string admit(http::RequestHead& head) {
    const bool tls = head.scheme == "https";
    exchange =
        guard->exchange({.asked = head.authority, .server_name = tls ? head.authority.host : "", .tls = tls});
    denial.reset();
    done = false;
    exchange->admit(head, [this](std::optional<Denial> result) {
      denial = std::move(result);
      done = true;
    });
    return denial ? denial->code : "";
  }
  std::string admit(http::RequestHead&& head) { return admit(head); }

  static std::string through(Filter* filter, std::initializer_list<std::string_view> pieces) {
    std::string out;
    if (!filter) return "no filter";
    for (const auto piece : pieces)
      if (const auto denied = filter->feed(piece, out)) return "denied " + denied->code;
    if (const auto denied = filter->finish(out)) return "denied " + denied->code;
    return out;
  }

  FakeVault vault;
  std::vector<credentials::Placeholder> placeholders;
  std::unique_ptr<Guard> guard;
  std::unique_ptr<Exchange> exchange;
  std::optional<Denial> denial;
  http::ResponseHead last;
  bool done = false;
};

}  // namespace firestop::egress
