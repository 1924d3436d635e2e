// The smallest manifest for what made-up runs used: what goes, what stays, and that the result is a manifest.
#include "report/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "egress/policy.h"
#include "manifest/load.h"
#include "report/manifest_text.h"
#include "report/path_patterns.h"
#include "story/testing/record_maker.h"

namespace firestop::report {
namespace {

using codec::JsonObject;
using story::testing::RecordMaker;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kManifest[] = R"(# Reads an API.
firestop: 1
name: reads
rating: 45m   # long enough

workspace:
  entries:
    out: {type: dir, output: true, max: 1MiB}
command: [agent]
capabilities: [shell, filesystem]  # both

egress:
  # the API itself
  - host: api.example.com
    methods: [GET, POST, DELETE]
    paths: [/v1/**]   # all of it
    credential: model
  # never needed
  - host: docs.example.com
  - {host: "*.cdn.example.com", methods: [GET]}
  - host: git.example.com
    git: {repository: acme/widget, fetch: true, push: ["refs/heads/agent/**"]}
    credential: forge
credentials:
  model: {env: API_KEY, inject: bearer}
  forge: {env: GIT_TOKEN, inject: basic, user: x-access-token}

limits: {memory: 512MiB, processes: 256, network: {bytes: 200MiB, connections: 64}}
)";

JsonObject request(const std::string& rule, const std::string& method, const std::string& host,
                   const std::string& path, JsonObject more = {}) {
  JsonObject out{{"verdict", "allowed"}, {"rule", rule}, {"scheme", "https"}, {"host", host},   {"port", 443},
                 {"method", method},     {"path", path}, {"status", 200},     {"took_us", 1000}};
  for (auto& [key, value] : more) out.insert_or_assign(key, std::move(value));
  return out;
}

class Suggest : public ::testing::Test {
 protected:
  void SetUp() override { record_.at(0).exec(10, 1, {"/usr/bin/agent"}); }

  void end() { record_.at(60000).exit(10).guest("collectors.done", {}).host("record.end", {{"reason", ""}}); }

  Suggestion suggestion(const std::string& manifest = kManifest) {
    auto out = suggest({record_.story()}, manifest, "firestop.yaml");
    if (!out) ADD_FAILURE() << out.error().to_string();
    if (!out) return {};
    // Whatever is suggested passes `firestop check`.
    const auto loaded = manifest::load_text("firestop.yaml", out->after);
    EXPECT_THAT(render(loaded.faults, loaded.text), IsEmpty());
    now_ = loaded.manifest;
    for (const auto& step : out->steps) EXPECT_TRUE(step.done) << step.field;
    return std::move(*out);
  }

  RecordMaker record_;
  manifest::Manifest now_;
};

TEST_F(Suggest, WhatWasUsedStaysAndTheRestGoes) {
  record_.exec(11, 10, {"/usr/bin/make"}).change(11, "write", "/workspace/a.c").exit(11);
  for (int i = 0; i < 20; ++i)
    record_.network("request", request("egress[0]", i % 2 ? "GET" : "POST", "api.example.com",
                                       "/v1/chat/" + std::to_string(i * 37), {{"credential", "model"}}));
  record_.network("request", request("egress[0]", "GET", "api.example.com", "/v1/models"));
  record_.network("request", request("egress[2]", "GET", "a.cdn.example.com", "/x.js"));
  record_.network("request", request("egress[3]", "POST", "git.example.com", "/acme/widget/git-upload-pack"));
  end();
  const auto out = suggestion();
  EXPECT_EQ(out.diff, R"(--- firestop.yaml
+++ firestop.yaml (suggested)
@@ -1,7 +1,7 @@
 # Reads an API.
 firestop: 1
 name: reads
-rating: 45m   # long enough
+rating: 2m   # long enough
 
 workspace:
   entries:
@@ -12,17 +12,13 @@
 egress:
   # the API itself
   - host: api.example.com
-    methods: [GET, POST, DELETE]
-    paths: [/v1/**]   # all of it
+    methods: [GET, POST]
+    paths: [/v1/chat/*, /v1/models]   # all of it
     credential: model
-  # never needed
-  - host: docs.example.com
-  - {host: "*.cdn.example.com", methods: [GET]}
+  - {host: a.cdn.example.com, methods: [GET], paths: [/x.js]}
   - host: git.example.com
-    git: {repository: acme/widget, fetch: true, push: ["refs/heads/agent/**"]}
-    credential: forge
+    git: {repository: acme/widget, fetch: true}
 credentials:
   model: {env: API_KEY, inject: bearer}
-  forge: {env: GIT_TOKEN, inject: basic, user: x-access-token}
 
-limits: {memory: 512MiB, processes: 256, network: {bytes: 200MiB, connections: 64}}
+limits: {memory: 512MiB, processes: 16, network: {bytes: 1MiB, connections: 64}}
)") << out.diff;
  EXPECT_THAT(out.hatches, IsEmpty());
}

TEST_F(Suggest, EverythingThatWasUsedIsStillAllowed) {
  struct Used {
    const char *method, *path;
  };
  const Used used[] = {{"GET", "/v1/a"},     {"HEAD", "/v1/b/3"},  {"POST", "/v1/c/deadbeef01/d"},
                       {"GET", "/v1/e/1/f"}, {"GET", "/v1/%2F/g"}, {"POST", "/v1/x/y/z"}};
  for (const auto& [method, path] : used)
    record_.network("request",
                    request("egress[0]", method, "api.example.com", path, {{"credential", "model"}}));
  for (int i = 0; i < 30; ++i)
    record_.network("request",
                    request("egress[0]", "GET", "api.example.com", "/v1/many/p" + std::to_string(i)));
  end();
  const auto out = suggestion();
  EXPECT_THAT(out.diff, HasSubstr("/v1/many/**"));
  const egress::Policy policy(now_.egress);
  for (const auto& [method, path] : used)
    EXPECT_TRUE(
        policy.request({.scheme = "https", .to = {"api.example.com", 443}, .method = method, .target = path})
            .allowed())
        << method << " " << path;
  EXPECT_FALSE(
      policy.request({.scheme = "https", .to = {"api.example.com", 443}, .method = "GET", .target = "/v1/q"})
          .allowed());
}

TEST_F(Suggest, NoNetworkWasUsed) {
  end();
  const auto out = suggestion();
  EXPECT_THAT(now_.egress, IsEmpty());
  EXPECT_THAT(now_.credentials, IsEmpty());
  EXPECT_THAT(now_.capabilities, IsEmpty());
  EXPECT_THAT(out.diff, HasSubstr("-egress:"));
  EXPECT_THAT(out.after, HasSubstr("# Reads an API."));
}

TEST_F(Suggest, OutputsNeedNoCapability) {
  record_.change(10, "write", "/workspace/out/report.md");
  end();
  (void)suggestion();
  EXPECT_FALSE(now_.capabilities.contains(manifest::Capability::kFilesystem));
}

TEST_F(Suggest, AnIncompleteRecordTakesNoCapabilityAway) {
  record_.guest("lost", {{"what", "processes"}, {"count", 1}});
  end();
  const auto out = suggestion();
  EXPECT_EQ(now_.capabilities.size(), 2u);
  EXPECT_EQ(now_.limits.processes, 256u);
  EXPECT_THAT(out.notes, Contains(HasSubstr("capabilities: not judged")));
}

TEST_F(Suggest, ARunThatHitACapLowersNone) {
  record_.at(60000).exit(10).guest("collectors.done", {}).host("record.end", {{"reason", "cap.output"}});
  (void)suggestion();
  EXPECT_EQ(now_.limits.network.bytes, 200u << 20);
  EXPECT_EQ(now_.rating, std::chrono::minutes(45));
}

TEST_F(Suggest, EscapeHatches) {
  record_.exec(11, 10, {"/usr/bin/npm", "install", "left-pad"});
  for (int i = 0; i < 3; ++i)
    record_.network("request", request("", "GET", "registry.npmjs.org", "/left-pad",
                                       {{"verdict", "denied"}, {"code", "egress.no_rule"}, {"pid", 11}}));
  record_.network("name", {{"verdict", "denied"}, {"code", "egress.no_rule"}, {"host", "x.example.com"}});
  record_.guest("denied", {{"what", "exec"}, {"path", "/usr/bin/gdb"}, {"count", 2}});
  end();
  const auto out = suggestion();
  ASSERT_EQ(out.hatches.size(), 3u);
  EXPECT_EQ(out.hatches[0].verb, "npm install");
  EXPECT_EQ(out.hatches[0].crossing, "GET https://registry.npmjs.org/left-pad");
  EXPECT_EQ(out.hatches[0].times, 3u);
  EXPECT_EQ(out.hatches[1].crossing, "run /usr/bin/gdb");
  EXPECT_EQ(out.hatches[2].crossing, "name x.example.com");
}

TEST_F(Suggest, PresetsGoWholeOrStay) {
  constexpr char kPresets[] =
      "firestop: 1\nname: p\ncommand: [a]\negress:\n  - preset: npm\n  - preset: pypi\n";
  record_.network("request", request("egress[0].npm[0]", "GET", "registry.npmjs.org", "/left-pad"));
  end();
  const auto out = suggestion(kPresets);
  EXPECT_THAT(out.after, HasSubstr("- preset: npm"));
  EXPECT_THAT(out.after, Not(HasSubstr("pypi")));
}

TEST_F(Suggest, BlocksOfEveryShape) {
  constexpr char kBlocks[] = R"(firestop: 1
name: blocks
command: [a]
egress:
- host: a.example.com
  # which ones
  methods:
  - GET
  - PUT
  paths:
    - /a/**
    # not this
    - /b/**
- methods: [GET]
  host: b.example.com
)";
  record_.network("request", request("egress[0]", "GET", "a.example.com", "/a/b"));
  end();
  const auto out = suggestion(kBlocks);
  EXPECT_EQ(out.after, R"(firestop: 1
name: blocks
rating: 2m
command: [a]
egress:
- host: a.example.com
  # which ones
  methods: [GET]
  paths: [/a/b]
)");
}

TEST_F(Suggest, WhatCannotBeEditedIsSaid) {
  record_.network("request", request("egress[0]", "GET", "a.example.com", "/a"));
  end();
  const auto out = suggest(
      {record_.story()},
      R"({"firestop": 1, "name": "j", "command": ["a"], "rating": "2m", "egress": [{"host": "a.example.com"}]})",
      "firestop.json");
  ASSERT_TRUE(out);
  EXPECT_THAT(out->diff, IsEmpty());
  ASSERT_FALSE(out->steps.empty());
  EXPECT_FALSE(out->steps[0].done);
  EXPECT_EQ(suggest({}, "firestop: 2\n", "x").error().code, "manifest.invalid");
}

TEST(PathPatterns, AreWhatSomebodyWouldWrite) {
  const auto all = [](std::set<std::string> paths, std::vector<std::string> allowed = {}) {
    return path_patterns(paths, allowed);
  };
  EXPECT_THAT(all({"/a", "/b/c"}), ElementsAre("/a", "/b/c"));
  EXPECT_THAT(all({"/v1/1", "/v1/22"}), ElementsAre("/v1/*"));
  EXPECT_THAT(all({"/v1/a", "/v1/b", "/v1/c", "/v1/d", "/v1/e"}), ElementsAre("/v1/**"));
  EXPECT_THAT(all({"/v1/a", "/v1/b", "/v1/c", "/v1/d", "/v1/e"}, {"/v1/*"}),
              ElementsAre("/v1/a", "/v1/b", "/v1/c", "/v1/d", "/v1/e"));
  EXPECT_THAT(all({"/v1/7"}, {"/v1/7"}), ElementsAre("/v1/7"));
  // The top folder is never every path.
  EXPECT_THAT(all({"/a", "/b", "/c", "/d", "/e"}), ElementsAre("/a", "/b", "/c", "/d", "/e"));
  EXPECT_THAT(all({"/a*b"}), IsEmpty());
}

}  // namespace
}  // namespace firestop::report
