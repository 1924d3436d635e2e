#include "egress/git_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::egress {
namespace {

using http::RequestHead;
using manifest::EgressRule;
using testing::HasSubstr;

RequestHead request(const std::string& method, const std::string& target, http::Headers headers = {}) {
  RequestHead head;
  head.method = method;
  head.scheme = "https";
  head.authority = {"git.example.com", 443};
  head.target = target;
  head.headers = std::move(headers);
  if (method == "POST") head.body.kind = http::Body::Kind::kUnknown;
  return head;
}

RequestHead post(const std::string& service, http::Headers more = {}) {
  http::Headers headers{{"content-type", "application/x-" + service + "-request"}};
  headers.insert(headers.end(), more.begin(), more.end());
  return request("POST", "/acme/widget.git/" + service, headers);
}

EgressRule::Git rule(bool fetch, std::vector<std::string> push) {
  EgressRule::Git git;
  git.repository = "acme/widget";
  git.fetch = fetch;
  git.push = std::move(push);
  return git;
}

const EgressRule::Git kBoth = rule(true, {"refs/heads/agent/**"});

// The denial's code, or "" and what reads the body: "body", "none".
std::string judged(const EgressRule::Git& git, const RequestHead& head) {
  const auto verdict = judge_git_request(git, "egress[0]", head);
  if (verdict.denial) {
    EXPECT_EQ(verdict.denial->rule, "egress[0]");
    EXPECT_FALSE(verdict.denial->message.empty());
    EXPECT_EQ(verdict.body, nullptr);
    return verdict.denial->code;
  }
  return verdict.body ? "body" : "none";
}

TEST(GitRules, RefPatterns) {
  struct {
    const char *pattern, *ref;
    bool matches;
  } rows[] = {
      {"refs/heads/agent/**", "refs/heads/agent/x", true},
      {"refs/heads/agent/**", "refs/heads/agent/x/y/z", true},
      {"refs/heads/agent/**", "refs/heads/agent", false},
      {"refs/heads/agent/**", "refs/heads/agent/", true},  // no valid ref: refused as such
      {"refs/heads/agent/**", "refs/heads/agentx/y", false},
      {"refs/heads/agent/**", "refs/heads/Agent/y", false},
      {"refs/heads/agent/**", "refs/heads/main", false},
      {"refs/heads/agent/*", "refs/heads/agent/x", true},
      {"refs/heads/agent/*", "refs/heads/agent/x/y", false},
      {"refs/heads/agent-*", "refs/heads/agent-", true},
      {"refs/heads/agent-*", "refs/heads/agent-1", true},
      {"refs/heads/agent-*", "refs/heads/agent-1/x", false},
      {"refs/heads/*-fix-*", "refs/heads/a-fix-b-fix-c", true},
      {"refs/heads/*-fix", "refs/heads/a-fix-b", false},
      {"refs/heads/**/x", "refs/heads/a/b/x", true},
      {"refs/heads/**/x", "refs/heads/x", false},
      {"refs/heads/**/a/**", "refs/heads/a/a/a", true},
      {"refs/heads/a", "refs/heads/a", true},
      {"refs/heads/a", "refs/heads/a/b", false},
      {"refs/tags/*", "refs/heads/v1", false},
      {"refs/heads/**", "refs/heads/", true},
      {"refs/heads/**", "refs/tags/v1", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ(ref_matches(row.pattern, row.ref), row.matches) << row.pattern << " " << row.ref;
  // No pattern takes long.
  std::string pattern = "refs/heads", ref = "refs/heads";
  for (int i = 0; i < 60; ++i) {
    pattern += "/**";
    ref += "/" + std::string(20, 'a');
  }
  EXPECT_FALSE(ref_matches(pattern + "/x", ref));
  EXPECT_FALSE(
      ref_matches("refs/heads/" + std::string(200, '*') + "b", "refs/heads/" + std::string(60000, 'a')));
}

TEST(GitRules, FetchAndPushOverTheSmartProtocol) {
  for (const char* repository : {"/acme/widget", "/acme/widget.git"}) {
    const std::string at = repository;
    for (const char* method : {"GET", "HEAD"}) {
      EXPECT_EQ(judged(kBoth, request(method, at + "/info/refs?service=git-upload-pack")), "none");
      EXPECT_EQ(judged(kBoth, request(method, at + "/info/refs?service=git-receive-pack")), "none");
    }
    for (const char* service : {"git-upload-pack", "git-receive-pack"})
      EXPECT_EQ(
          judged(kBoth, request("POST", at + "/" + service,
                                {{"Content-Type", std::string("application/x-") + service + "-request"}})),
          "body");
  }
  auto dotted = kBoth;
  dotted.repository = "acme/widget.git";
  EXPECT_EQ(judged(dotted, request("GET", "/acme/widget/info/refs?service=git-upload-pack")), "none");
  auto odd = kBoth;
  odd.repository = "~me/ein projekt";
  EXPECT_EQ(judged(odd, request("GET", "/~me/ein%20projekt.git/info/refs?service=git-upload-pack")), "none");
}

TEST(GitRules, inv09_FetchIsNotPushAndPushIsNotFetch) {
  const auto fetch = rule(true, {}), push = rule(false, {"refs/heads/agent/**"});
  struct {
    const char *service, *by_fetch, *by_push;
  } rows[] = {{"git-upload-pack", "body", "egress.git_service"},
              {"git-receive-pack", "egress.git_service", "body"}};
  for (const auto& row : rows) {
    EXPECT_EQ(judged(fetch, post(row.service)), row.by_fetch);
    EXPECT_EQ(judged(push, post(row.service)), row.by_push);
    const auto refs = request("GET", std::string("/acme/widget.git/info/refs?service=") + row.service);
    EXPECT_EQ(judged(fetch, refs) == "none", row.by_fetch == std::string("body"));
    EXPECT_EQ(judged(push, refs) == "none", row.by_push == std::string("body"));
  }
}

TEST(GitRules, inv09_AnotherRepositoryHoweverItIsWritten) {
  for (const char* path :
       {"/acme/other.git", "/acme/widget2", "/acme/widget.git.git", "/ACME/widget", "/acme//widget",
        "//acme/widget", "/x/../acme/widget", "/acme/widget/..", "/acme/%77idget", "/acme%2Fwidget",
        "/acme/widget%2Egit", "/acme/widget/", "/acme/widget;x", "/acme", "", "/acme/widget/tree"}) {
    const std::string at = path;
    EXPECT_EQ(judged(kBoth, request("GET", at + "/info/refs?service=git-upload-pack")),
              "egress.git_repository")
        << at;
    EXPECT_EQ(judged(kBoth, request("POST", at + "/git-receive-pack",
                                    {{"Content-Type", "application/x-git-receive-pack-request"}})),
              "egress.git_repository")
        << at;
  }
  EXPECT_EQ(judged(kBoth, request("OPTIONS", "*")), "egress.git_repository");
}

TEST(GitRules, inv09_WhatElseAForgeOffersForARepository) {
  struct {
    const char *method, *target, *code;
  } rows[] = {
      {"GET", "/acme/widget.git/info/refs", "egress.git_service"},  // the dumb protocol
      {"GET", "/acme/widget.git/HEAD", "egress.git_service"},
      {"GET", "/acme/widget.git/objects/info/packs", "egress.git_service"},
      {"GET", "/acme/widget.git/objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904", "egress.git_service"},
      {"GET", "/acme/widget", "egress.git_service"},
      {"PUT", "/acme/widget.git/info/refs?service=git-receive-pack", "egress.method"},
      {"POST", "/acme/widget.git/info/refs?service=git-upload-pack", "egress.method"},
      {"GET", "/acme/widget.git/git-receive-pack", "egress.method"},
      {"GET", "/acme/widget.git/info/refs?service=git-upload-archive", "egress.git_service"},
      {"GET", "/acme/widget.git/info/refs?service=git-upload-pack&service=git-receive-pack",
       "egress.git_service"},
      {"GET", "/acme/widget.git/info/refs?a=b&service=git-upload-pack", "egress.git_service"},
      {"GET", "/acme/widget.git/info/refs?service=git%2dupload-pack", "egress.git_service"},
      {"POST", "/acme/widget.git/git-receive-pack?x", "egress.git_service"},
      {"POST", "/acme/widget.git/git-receive-pack?", "egress.git_service"},
      {"POST", "/acme/widget.git/info/lfs/objects/batch", "egress.git_service"},
      {"GET", "/acme/widget.git/info/lfs/locks", "egress.git_service"},
      {"POST", "/acme/widget.git/git-upload-archive", "egress.git_repository"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(judged(kBoth, request(row.method, row.target)), row.code) << row.target;
  EXPECT_THAT(judge_git_request(kBoth, "", request("POST", "/acme/widget.git/info/lfs/objects/batch"))
                  .denial->message,
              HasSubstr("LFS"));
}

TEST(GitRules, HeadsThatAServerCouldReadOtherwise) {
  const std::string push = "git-receive-pack";
  EXPECT_EQ(judged(kBoth, request("POST", "/acme/widget.git/git-receive-pack")), "egress.bad_request");
  EXPECT_EQ(judged(kBoth, request("POST", "/acme/widget.git/git-receive-pack",
                                  {{"Content-Type", "application/x-git-upload-pack-request"}})),
            "egress.bad_request");
  EXPECT_EQ(judged(kBoth, post(push, {{"Content-Encoding", "gzip"}})), "body");
  EXPECT_EQ(judged(kBoth, post(push, {{"Content-Encoding", "X-GZip"}})), "body");
  for (const char* coding : {"br", "deflate", "identity", "gzip, gzip", "gzip,", "", "zstd"})
    EXPECT_EQ(judged(kBoth, post(push, {{"Content-Encoding", coding}})), "egress.bad_request") << coding;
  EXPECT_EQ(judged(kBoth, post(push, {{"Content-Encoding", "gzip"}, {"content-encoding", "gzip"}})),
            "egress.bad_request");
  auto body = request("GET", "/acme/widget.git/info/refs?service=git-upload-pack");
  body.body = {http::Body::Kind::kLength, 4};
  EXPECT_EQ(judged(kBoth, body), "egress.bad_request");
  auto upgrade = request("GET", "/acme/widget.git/info/refs?service=git-upload-pack");
  upgrade.upgrade = "websocket";
  EXPECT_EQ(judged(kBoth, upgrade), "egress.git_service");
}

TEST(GitRules, ADenialOfSomethingElseTakesGitsFormForGitOnly) {
  http::Denial denial;
  denial.code = "credential.unavailable";
  denial.message = "the credential forge is not there";
  answer_in_git(request("GET", "/v1/models"), denial);
  EXPECT_FALSE(denial.answer.has_value());
  answer_in_git(request("GET", "/acme/widget.git/info/refs?service=git-receive-pack"), denial);
  ASSERT_TRUE(denial.answer.has_value());
  EXPECT_EQ(denial.answer->status, 200);
  EXPECT_EQ(http::find_header(denial.answer->headers, "content-type")->value,
            "application/x-git-receive-pack-advertisement");
  EXPECT_THAT(denial.answer->body, HasSubstr("ERR Firestop: the credential forge is not there"));
}

}  // namespace
}  // namespace firestop::egress
