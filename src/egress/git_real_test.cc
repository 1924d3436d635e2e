// The rules between the real git and the real git-http-backend: what is refused reads as a sentence, what is
// allowed works, and the server's refs are what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/process.h"
#include "egress/testing/git_server.h"

namespace firestop::egress {
namespace {

using manifest::EgressRule;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

EgressRule::Git rule(bool fetch = true, std::vector<std::string> push = {"refs/heads/agent/**"}) {
  EgressRule::Git git;
  git.repository = "acme/widget";
  git.fetch = fetch;
  git.push = std::move(push);
  return git;
}

class GitReal : public testing::Test {
 protected:
  // A server with one commit on main, and a working copy that was cloned through it.
  void start(GitTestServer::Coding coding = GitTestServer::Coding::kAsItCame) {
    char name[] = "/tmp/firestop-git-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    const std::string bare = folder_ + "/srv/acme/widget.git";
    git({"init", "-q", "--bare", "-b", "main", "--object-format=" + format_, bare});
    for (const char* option : {"receive.advertisePushOptions=true", "receive.certNonceSeed=seed",
                               "uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true"}) {
      const std::string text = option;
      git({"-C", bare, "config", text.substr(0, text.find('=')), text.substr(text.find('=') + 1)});
    }
    git({"init", "-q", "-b", "main", "--object-format=" + format_, folder_ + "/seed"});
    git({"-C", folder_ + "/seed", "commit", "-q", "--allow-empty", "-m", "first"});
    git({"-C", folder_ + "/seed", "commit", "-q", "--allow-empty", "-m", "second"});
    git({"-C", folder_ + "/seed", "push", "-q", bare, "main", "main:agent/old", "main:stable"});
    server_ = std::make_unique<GitTestServer>(folder_ + "/srv", rule(), coding);
    clone({});
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void clone(std::vector<std::string> more) {
    std::filesystem::remove_all(folder_ + "/work");
    std::vector<std::string> argv{"clone", "-q"};
    argv.insert(argv.end(), more.begin(), more.end());
    argv.insert(argv.end(), {server_->url("acme/widget.git"), folder_ + "/work"});
    git(argv);
    git({"-C", folder_ + "/work", "commit", "-q", "--allow-empty", "-m", "mine"});
  }

  RunResult try_git(std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"git", "-c", "protocol.version=" + version_, "-c", "core.askPass=true"});
    Command command;
    command.argv = std::move(argv);
    command.env = std::vector<std::string>{"PATH=/usr/bin:/bin",
                                           "HOME=" + folder_,
                                           "LC_ALL=C",
                                           "GIT_CONFIG_GLOBAL=/dev/null",
                                           "GIT_CONFIG_SYSTEM=/dev/null",
                                           "GIT_TERMINAL_PROMPT=0",
                                           "GIT_AUTHOR_NAME=T",
                                           "GIT_AUTHOR_EMAIL=t@example.org",
                                           "GIT_COMMITTER_NAME=T",
                                           "GIT_COMMITTER_EMAIL=t@example.org"};
    auto done = run(std::move(command), {.timeout = std::chrono::milliseconds(60000)});
    EXPECT_TRUE(done) << done.error().message;
    return done ? *done : RunResult{};
  }
  std::string git(std::vector<std::string> argv) {
    const auto done = try_git(argv);
    EXPECT_TRUE(done.ok()) << testing::PrintToString(argv) << done.err;
    return done.out;
  }
  // In the working copy.
  RunResult push(std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"-C", folder_ + "/work", "push"});
    return try_git(argv);
  }
  std::string work(std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"-C", folder_ + "/work"});
    return git(argv);
  }
  // "id ref" lines of the server.
  std::string refs() {
    return git({"-C", folder_ + "/srv/acme/widget.git", "for-each-ref", "--format=%(refname)=%(objectname)"});
  }
  bool server_has(const std::string& ref, const std::string& commit = "HEAD") {
    std::string id = work({"rev-parse", commit});
    id.pop_back();
    return refs().find(ref + "=" + id + "\n") != std::string::npos;
  }
  // Nothing changed on the server, and no command of the push came to it.
  void refused(std::vector<std::string> argv, const std::string& why) {
    const std::string before = refs();
    const auto done = push(argv);
    EXPECT_FALSE(done.ok());
    EXPECT_THAT(done.err, HasSubstr(why));
    EXPECT_EQ(refs(), before);
    EXPECT_THAT(server_->passed(), Each(Not(HasSubstr("push: refs/"))));
  }

  std::string format_ = "sha1", version_ = "2", folder_;
  std::unique_ptr<GitTestServer> server_;
};

using Variant = std::tuple<const char*, const char*>;
class GitRealVariants : public GitReal, public testing::WithParamInterface<Variant> {
 protected:
  GitRealVariants() {
    format_ = std::get<0>(GetParam());
    version_ = std::get<1>(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(FormatsAndVersions, GitRealVariants,
                         testing::Combine(testing::Values("sha1", "sha256"), testing::Values("0", "1", "2")),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param)) + "_v" + std::get<1>(one.param);
                         });

TEST_P(GitRealVariants, inv09_AgentBranchesAreThePushedOnesAndMainIsNot) {
  start();
  const auto to_main = push({"origin", "HEAD:main"});
  EXPECT_FALSE(to_main.ok());
  EXPECT_THAT(
      to_main.err,
      AllOf(
          HasSubstr("remote: Firestop: this push is refused as a whole, nothing of it has left the sandbox."),
          HasSubstr(
              "remote: This sandbox may push refs/heads/agent/** in acme/widget, without push options."),
          HasSubstr("! [remote rejected] HEAD -> main (firestop: only refs/heads/agent/** may be pushed)")));
  EXPECT_FALSE(server_has("refs/heads/main"));
  EXPECT_THAT(server_->passed(), Each(Not(HasSubstr("push: refs/"))));

  EXPECT_TRUE(push({"origin", "HEAD:refs/heads/agent/fix"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/fix"));
  EXPECT_THAT(server_->passed(), Contains(HasSubstr("push: refs/heads/agent/fix created to ")));
  EXPECT_TRUE(push({"origin", "HEAD:refs/heads/agent/fix"}).ok());  // up to date
  work({"fetch", "-q", "origin"});
}

TEST_F(GitReal, inv09_OneRefusedRefRefusesThePushAndEachIsNamed) {
  start();
  refused({"origin", "HEAD:main", "HEAD:agent/a", "HEAD:refs/tags/v1"},
          "! [remote rejected] HEAD -> main (firestop: only refs/heads/agent/** may be pushed)");
  const auto again = push({"--atomic", "origin", "HEAD:main", "HEAD:agent/a"});
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("HEAD -> main (firestop: only"),
                    HasSubstr("HEAD -> agent/a (firestop: not pushed, because another ref was refused)")));
  EXPECT_TRUE(push({"--atomic", "origin", "HEAD:agent/a", "HEAD:agent/b"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/a") && server_has("refs/heads/agent/b"));
}

TEST_F(GitReal, inv09_DeletingNeedsItsOwnWord) {
  start();
  refused({"origin", ":agent/old"}, "agent/old (firestop: may be pushed, but not deleted)");
  auto git = rule();
  git.deletes = true;
  server_->set_rule(git);
  refused({"origin", ":stable"}, "stable (firestop: only refs/heads/agent/** may be pushed)");
  EXPECT_TRUE(push({"origin", ":agent/old"}).ok());
  EXPECT_THAT(refs(), Not(HasSubstr("agent/old")));
}

TEST_F(GitReal, AForcedPushIsTheServersToDecide) {
  start();
  EXPECT_TRUE(push({"origin", "HEAD:agent/old"}).ok());
  work({"reset", "-q", "--hard", "HEAD~2"});
  work({"commit", "-q", "--allow-empty", "-m", "other"});
  EXPECT_TRUE(push({"--force", "origin", "HEAD:agent/old"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/old"));
  git({"-C", folder_ + "/srv/acme/widget.git", "config", "receive.denyNonFastForwards", "true"});
  work({"reset", "-q", "--hard", "HEAD~1"});
  const auto denied = push({"--force", "origin", "HEAD:agent/old"});
  EXPECT_FALSE(denied.ok());
  EXPECT_THAT(denied.err, HasSubstr("non-fast-forward"));
  EXPECT_FALSE(server_has("refs/heads/agent/old"));
}

TEST_F(GitReal, inv09_TagsArePushedWhereAPatternSaysSo) {
  start();
  work({"tag", "-a", "-m", "x", "v1"});
  refused({"origin", "v1"}, "v1 -> v1 (firestop: only");
  refused({"--mirror", "origin"}, "firestop: only");
  server_->set_rule(rule(true, {"refs/heads/agent/**", "refs/tags/v*"}));
  EXPECT_TRUE(push({"origin", "v1"}).ok());
  EXPECT_TRUE(server_has("refs/tags/v1", "v1"));
}

TEST_F(GitReal, inv09_PushOptionsNeedTheirOwnWord) {
  start();
  refused({"-o", "ci.skip", "origin", "HEAD:agent/a"},
          "(firestop: the push option 'ci.skip' is not allowed)");
  auto git = rule();
  git.options = {"ci.*"};
  server_->set_rule(git);
  refused({"-o", "ci.skip", "-o", "merge_request.merge", "origin", "HEAD:agent/a"},
          "(firestop: the push option 'merge_request.merge' is not allowed)");
  EXPECT_TRUE(push({"-o", "ci.skip", "-o", "ci.variable=a=b", "origin", "HEAD:agent/a"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/a"));
}

TEST_F(GitReal, inv09_ASignedPushIsReadInItsCertificate) {
  start();
  const std::string key = folder_ + "/key";
  ASSERT_TRUE(run_checked({.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key}}));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"gpg.format", "ssh"}, {"user.signingKey", key + ".pub"}, {"push.gpgSign", "true"}})
    work({"config", name, value});
  refused({"origin", "HEAD:main", "HEAD:agent/a"}, "HEAD -> main (firestop: only");
  refused({"-o", "x", "origin", "HEAD:agent/a"}, "firestop: the push option 'x' is not allowed");
  EXPECT_TRUE(push({"origin", "HEAD:agent/a"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/a"));
}

TEST_F(GitReal, AShallowCopyFetchesAndPushes) {
  start();
  clone({"--depth=1"});
  EXPECT_EQ(work({"rev-list", "--count", "HEAD"}), "2\n");
  refused({"origin", "HEAD:main"}, "firestop: only");
  EXPECT_TRUE(push({"origin", "HEAD:agent/shallow"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/shallow"));
  work({"fetch", "-q", "--unshallow"});
  EXPECT_EQ(work({"rev-list", "--count", "origin/main"}), "2\n");
  clone({"--filter=blob:none", "--single-branch"});
}

TEST_F(GitReal, inv09_GzipBodiesAreReadAsWell) {
  start(GitTestServer::Coding::kGzip);
  refused({"origin", "HEAD:main"}, "firestop: only refs/heads/agent/** may be pushed");
  EXPECT_TRUE(push({"origin", "HEAD:agent/gz"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/gz"));
  for (int i = 0; i < 60; ++i) work({"commit", "-q", "--allow-empty", "-m", std::to_string(i)});
  work({"fetch", "-q", "origin"});  // with enough haves that git itself compresses
}

TEST_F(GitReal, ALargePackGoesInChunksAndALargeRefusedOneIsAnswered) {
  start();
  std::string noise(3u << 20, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  ASSERT_TRUE(write_file_atomic(folder_ + "/work/noise", noise, 0644));
  work({"add", "noise"});
  work({"commit", "-q", "-m", "noise"});
  refused({"origin", "HEAD:main"}, "firestop: only refs/heads/agent/** may be pushed");
  EXPECT_TRUE(push({"origin", "HEAD:agent/noise"}).ok());
  EXPECT_TRUE(server_has("refs/heads/agent/noise"));
}

TEST_F(GitReal, inv09_WhatARuleDoesNotGrantEndsBeforeTheServer) {
  start();
  const size_t before = server_->passed().size();
  server_->set_rule(rule(true, {}));
  EXPECT_THAT(push({"origin", "HEAD:agent/a"}).err,
              HasSubstr("fatal: remote error: Firestop: pushing to acme/widget is not allowed"));
  server_->set_rule(rule(false));
  EXPECT_THAT(try_git({"-C", folder_ + "/work", "fetch", "origin"}).err,
              HasSubstr("fatal: remote error: Firestop: fetching from acme/widget is not allowed"));
  auto other = rule();
  other.repository = "acme/gadget";
  server_->set_rule(other);
  for (const char* version : {"0", "1", "2"}) {
    version_ = version;
    EXPECT_THAT(try_git({"-C", folder_ + "/work", "fetch", "origin"}).err,
                HasSubstr("fatal: remote error: Firestop: the rule is for the repository acme/gadget"));
  }
  EXPECT_EQ(server_->passed().size(), before);
  for (const auto& denial : server_->denials())
    EXPECT_THAT(denial.code, AnyOf("egress.git_service", "egress.git_repository"));
}

}  // namespace
}  // namespace firestop::egress
