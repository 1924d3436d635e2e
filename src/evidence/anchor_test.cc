#include "evidence/anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "evidence/anchor_thread.h"
#include "evidence/log.h"

namespace firestop::evidence {
namespace {

using namespace std::chrono_literals;
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
    for (int i = 0; i < 24; ++i) {
      ASSERT_TRUE(log->append(Vantage::kHost, "alarm", {}));
      while (!log->anchored()) std::this_thread::sleep_for(1ms);
    }
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
  // In the middle of a run, at the next call.
  auto log = Log::create(directory_ + "/other", "other", *key_, {}, {.checkpoint_events = 2},
                         [lines = 0](const std::string&) mutable -> Result<void> {
                           if (++lines > 1) return fail("evidence.anchor", "gone");
                           return {};
                         })
                 .value();
  EXPECT_TRUE(log->append(Vantage::kHost, "alarm", {}));
  EXPECT_TRUE(log->append(Vantage::kHost, "alarm", {}));
  while (!log->anchored()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(log->tick().error().code, "evidence.anchor");
  EXPECT_EQ(log->append(Vantage::kHost, "alarm", {}).error().code, "evidence.anchor");
  EXPECT_EQ(log->count(), 3u);
}

// The last one that is wrong is found out at the end, and the record does not say that it is complete.
TEST_F(AnchorTest, inv11_AFailureThatComesLateIsTheEndsFailure) {
  for (const int bad : {2, 3}) {
    SCOPED_TRACE(bad);
    const std::string record = directory_ + "/late" + std::to_string(bad);
    auto log = Log::create(record, "late", *key_, {}, {.checkpoint_events = 2},
                           [bad, lines = 0](const std::string&) mutable -> Result<void> {
                             std::this_thread::sleep_for(50ms);
                             if (++lines == bad) return fail("evidence.anchor", "gone");
                             return {};
                           })
                   .value();
    EXPECT_TRUE(log->append(Vantage::kHost, "alarm", {}));
    EXPECT_TRUE(log->append(Vantage::kHost, "alarm", {}));
    EXPECT_EQ(log->close({{"complete", true}}).error().code, "evidence.anchor");
    const std::string events = read_file(record + "/events.jsonl").value();
    EXPECT_EQ(events.find("\"complete\":true") == std::string::npos, bad == 2);
  }
}

// A slow anchor holds up nobody: it has one checkpoint at a time, and the next covers all until then.
TEST_F(AnchorTest, inv11_ASlowAnchorHoldsUpNothingAndMissesNothing) {
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0, allowed = 1;
  std::vector<std::string> lines;
  const Anchor slow = [&](const std::string& line) -> Result<void> {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    changed.wait(lock, [&] { return allowed > 0; });
    --allowed;
    --waiting;
    lines.push_back(line);
    return {};
  };
  auto log = Log::create(directory_ + "/slow", "slow", *key_, {}, {.checkpoint_events = 10}, slow).value();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 105; ++i) {
    ASSERT_TRUE(log->append(Vantage::kHost, "alarm", {}));
    EXPECT_FALSE(log->crowded()) << i;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(log->covered(), 11u);
  EXPECT_FALSE(log->anchored());
  for (int i = 105; i < 200; ++i) ASSERT_TRUE(log->append(Vantage::kHost, "alarm", {}));
  EXPECT_TRUE(log->crowded());
  {
    const std::scoped_lock lock(mutex);
    allowed = 1000;
    changed.notify_all();
  }
  while (!log->anchored()) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(log->append(Vantage::kHost, "alarm", {}));
  EXPECT_FALSE(log->crowded());
  ASSERT_TRUE(log->close({}));
  std::vector<uint64_t> counts;
  for (const auto& line : lines) counts.push_back(checkpoint_of(parse_envelope(line).value())->count);
  EXPECT_THAT(counts, testing::ElementsAre(1, 11, 202, 203));
}

TEST_F(AnchorTest, inv11_AnAnchorThatNeverAnswersIsGivenUp) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, left = false;
  };
  const auto gate = std::make_shared<Gate>();  // outlives the thread that is left behind
  {
    AnchorThread thread(
        [gate](const std::string&) -> Result<void> {
          std::unique_lock lock(gate->mutex);
          gate->changed.wait(lock, [&] { return gate->open; });
          gate->left = true;
          gate->changed.notify_all();
          return {};
        },
        100ms);
    ASSERT_TRUE(thread.give("line"));
    EXPECT_TRUE(thread.check());
    EXPECT_EQ(thread.give("next").error().code, "evidence.anchor");
    EXPECT_THAT(thread.wait().error().message, HasSubstr("did not take a checkpoint within 100 ms"));
    EXPECT_EQ(thread.check().error().code, "evidence.anchor");
    EXPECT_TRUE(thread.busy());
  }
  std::unique_lock lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
  gate->changed.wait(lock, [&] { return gate->left; });
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
