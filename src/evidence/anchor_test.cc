#include "evidence/anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "evidence/log.h"

namespace firestop::evidence {
namespace {

using testing::HasSubstr;

class AnchorTest : public testing::Test {
 protected:
  AnchorTest() {
    std::signal(SIGPIPE, SIG_IGN);  // as main does
    std::filesystem::create_directories(directory_);
  }
  ~AnchorTest() override { std::filesystem::remove_all(directory_); }

  // A run of 25 events, checkpoints after 1, 11, 21 and 26.
  void record(const std::string& run, const std::string& where) {
    auto log = Log::create(directory_ + "/" + run, run, *key_, {}, {.checkpoint_events = 10},
                           open_anchor(where).value())
                   .value();
    for (int i = 0; i < 24; ++i) ASSERT_TRUE(log->append(Vantage::kHost, "alarm", {}));
    ASSERT_TRUE(log->close({}));
  }
  std::vector<uint64_t> counts(const std::string& where, const std::string& run) {
    std::vector<uint64_t> out;
    const auto anchored = read_anchor(where, run, {key_->public_key()}).value();
    for (const auto& checkpoint : anchored) out.push_back(checkpoint.count);
    return out;
  }

  std::string directory_ = testing::TempDir() + "anchor_test." + random_hex(8);
  Result<HostKey> key_ = HostKey::load_or_make(directory_ + "/config");
};

TEST_F(AnchorTest, AFileHasTheCheckpointsOfManyRuns) {
  const std::string where = directory_ + "/anchor";
  std::ofstream(where) << "half a line of somebody who died";
  record("one", where);
  record("two", where);
  EXPECT_THAT(counts(where, "one"), testing::ElementsAre(1, 11, 21, 26));
  EXPECT_THAT(counts(where, "two"), testing::ElementsAre(1, 11, 21, 26));
  EXPECT_THAT(counts(where, "three"), testing::IsEmpty());
  // Signed by somebody else: anybody could write that.
  EXPECT_TRUE(read_anchor(where, "one", {})->empty());
  EXPECT_EQ(read_anchor(directory_ + "/none", "one", {}).error().code, "evidence.anchor");
}

TEST_F(AnchorTest, ACommandGetsEachLine) {
  const std::string out = directory_ + "/out";
  record("one", "command:cat >> " + out);
  EXPECT_THAT(counts(out, "one"), testing::ElementsAre(1, 11, 21, 26));
  EXPECT_EQ(read_anchor("command:cat", "one", {}).error().code, "evidence.anchor");
}

TEST_F(AnchorTest, inv11_AnAnchorThatFailsEndsTheRecord) {
  auto anchor = open_anchor("command:echo no room >&2; exit 3").value();
  const auto failed = anchor("line");
  EXPECT_EQ(failed.error().code, "evidence.anchor");
  EXPECT_THAT(failed.error().message, HasSubstr("exit status 3: no room"));
  EXPECT_EQ(Log::create(directory_ + "/run", "run", *key_, {}, {}, anchor).error().code, "evidence.anchor");
  // In the middle of a run.
  int lines = 0;
  auto log = Log::create(directory_ + "/other", "other", *key_, {}, {.checkpoint_events = 2},
                         [&](const std::string&) -> Result<void> {
                           if (++lines > 1) return fail("evidence.anchor", "gone");
                           return {};
                         })
                 .value();
  EXPECT_TRUE(log->append(Vantage::kHost, "alarm", {}));
  EXPECT_EQ(log->append(Vantage::kHost, "alarm", {}).error().code, "evidence.anchor");
  EXPECT_EQ(log->append(Vantage::kHost, "alarm", {}).error().code, "evidence.anchor");
  EXPECT_EQ(log->count(), 3u);
}

TEST_F(AnchorTest, AGitRefHasACommitACheckpoint) {
  const std::string repository = directory_ + "/anchors.git";
  ASSERT_TRUE(run_checked({.argv = {"git", "init", "-q", "--bare", repository}}));
  // A hook of the repository's is not ours to run.
  std::ofstream(repository + "/hooks/reference-transaction")
      << "#!/bin/sh\ntouch " << directory_ << "/hooked\n";
  std::filesystem::permissions(repository + "/hooks/reference-transaction",
                               std::filesystem::perms::owner_all);
  const std::string where = "git:" + repository + "#refs/heads/anchor";
  EXPECT_TRUE(read_anchor(where, "one", {})->empty());
  record("one", where);
  record("two", where);
  EXPECT_THAT(counts(where, "one"), testing::ElementsAre(1, 11, 21, 26));
  EXPECT_EQ(run_checked({.argv = {"git", "-C", repository, "rev-list", "--count", "anchor"}}).value(), "8\n");
  EXPECT_FALSE(exists(directory_ + "/hooked"));
}

TEST_F(AnchorTest, WhatIsNoAnchorIsSaid) {
  for (const std::string where : {"", "git:", "git:/nowhere", "git:#refs/heads/x", "git:/nowhere#heads/x",
                                  "git:/nowhere#refs/heads/x", "/nowhere/at/all"})
    EXPECT_EQ(open_anchor(where).error().code, "evidence.anchor") << where;
}

}  // namespace
}  // namespace firestop::evidence
