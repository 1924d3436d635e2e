#include "sandbox/run_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "base/file.h"
#include "base/path.h"

namespace firestop::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kId1 = "20261129-100000-aaaaaa";
constexpr const char* kId2 = "20261129-110000-bbbbbb";

class RunStoreTest : public ::testing::Test {
 protected:
  RunStoreTest() {
    char name[] = "/tmp/run_store_test.XXXXXX";
    state_ = ::mkdtemp(name);
  }
  ~RunStoreTest() override { (void)remove_tree(state_); }

  RunStore store() const { return RunStore(state_); }
  std::string path(const std::string& id, const std::string& name) const {
    return join_path(store().directory_of(id), name);
  }

  // A process that creates a run in `state` with disks, says so and waits to be killed.
  pid_t owner(const std::string& name, const std::string& id, RunState state) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto run = store().create(name, id);
      if (!run) ::_exit(1);
      run->record().state = state;
      const bool made = run->save() && make_directories(run->directory() + "/work/deep", 0700) &&
                        write_file_atomic(run->directory() + "/scratch.img", "disk") &&
                        write_file_atomic(run->directory() + "/work/deep/file", "x") &&
                        write_file_atomic(run->directory() + "/manifest.yaml", "firestop: 1\n") &&
                        write_file_atomic(run->directory() + "/manifest.canonical.aB3dEf", "{") &&
                        write_file_atomic(run->directory() + "/console.log", "hello\n");
      if (!made) ::_exit(1);
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the owner failed";
    ::close(ready[0]);
    return pid;
  }
  static void kill9(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  std::string state_;
};

TEST_F(RunStoreTest, AnEmptyStoreHasNothing) {
  EXPECT_THAT(*store().list(), IsEmpty());
  EXPECT_THAT(*store().sweep(), IsEmpty());
  EXPECT_EQ(store().find("x").error().code, "run.not_found");
  EXPECT_EQ(store().find("").error().code, "run.not_found");
}

TEST_F(RunStoreTest, ARecordSurvivesItsFile) {
  RunRecord record;
  record.id = kId1;
  record.name = "fix";
  record.manifest_file = "firestop.yaml";
  record.manifest_name = "demo";
  record.manifest_digest = "ab";
  record.signer = "me@x", record.signer_key = "SHA256:k";
  record.image = "agent-base";
  record.image_digest = "cd";
  record.accelerator = "tcg";
  record.command = {"sh", "-c", "exit \"3\"\n"};
  record.created_ms = 1, record.started_ms = 2, record.ended_ms = 3;
  record.state = RunState::kEnded;
  record.exit_status = 243;
  record.reason = "rating.reached";
  record.message = "after 5m";
  record.branches = {{"repo", "/src/x", "refs/heads/agent/fix", "0123", 2, true}};
  record.outputs_directory = "/out", record.output_files = 4, record.output_bytes = 5;
  record.memory = {"demo", true, 2, 7, "why"};
  record.denied = {{"exec", "/usr/bin/id", 3}, {"exec", "", 1}};
  record.caps = {{"memory", "1GiB", {"qemu", "host_cgroup_v2"}}, {"io", "", {}}};
  record.caps_note = "v2: not handed down to us: cpu";
  record.steps_us = {{"resolve", 10}, {"boot", 20}};
  const auto again = RunRecord::from_json(*codec::parse_json(codec::write_json_pretty(record.to_json())));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, record);
}

TEST_F(RunStoreTest, OwnersAreSeenAliveUntilTheyEnd) {
  {
    auto run = store().create("fix", kId1);
    ASSERT_TRUE(run) << run.error().message;
    struct stat st{};
    ASSERT_EQ(::stat(run->directory().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0700u);
    EXPECT_TRUE(store().find(kId1)->alive);
    EXPECT_EQ(store().remove(kId1).error().code, "run.alive");
    EXPECT_THAT(*store().sweep(), IsEmpty());
    ASSERT_TRUE(write_file_atomic(run->directory() + "/scratch.img", "disk"));
    ASSERT_TRUE(run->remove_work_files());
    run->record().state = RunState::kEnded;
    run->record().exit_status = 0;
    ASSERT_TRUE(run->save());
    EXPECT_TRUE(store().find(kId1)->alive);
  }
  EXPECT_FALSE(store().find(kId1)->alive);
  EXPECT_FALSE(exists(path(kId1, "scratch.img")));
  EXPECT_FALSE(exists(path(kId1, "lock")));
  EXPECT_THAT(*store().sweep(), IsEmpty());
  EXPECT_EQ(store().find(kId1)->record.state, RunState::kEnded);
  EXPECT_TRUE(store().remove(kId1));
  EXPECT_EQ(store().remove(kId1).error().code, "run.not_found");
}

TEST_F(RunStoreTest, MovingKeepsTheLock) {
  auto run = store().create("fix", kId1);
  ASSERT_TRUE(run);
  {
    const OwnedRun moved = std::move(*run);
    EXPECT_TRUE(store().find(kId1)->alive);
  }
  EXPECT_FALSE(store().find(kId1)->alive);
}

TEST_F(RunStoreTest, inv15_AKilledOwnerIsSweptAndOnlyIt) {
  const pid_t dies = owner("dies", kId1, RunState::kRunning);
  const pid_t lives = owner("lives", kId2, RunState::kRunning);
  EXPECT_THAT(*store().sweep(), IsEmpty());
  kill9(dies);
  EXPECT_FALSE(store().find("dies")->alive);
  EXPECT_THAT(*store().sweep(), ElementsAre(kId1));

  const auto dead = store().find(kId1);
  EXPECT_EQ(dead->record.state, RunState::kDied);
  EXPECT_EQ(dead->record.reason, "owner.died");
  EXPECT_FALSE(exists(path(kId1, "scratch.img")));
  EXPECT_FALSE(exists(path(kId1, "work")));
  EXPECT_FALSE(exists(path(kId1, "manifest.canonical.aB3dEf"))) << "half written";
  EXPECT_TRUE(exists(path(kId1, "manifest.yaml")));
  EXPECT_TRUE(exists(path(kId1, "console.log")));

  const auto living = store().find(kId2);
  EXPECT_TRUE(living->alive);
  EXPECT_EQ(living->record.state, RunState::kRunning);
  EXPECT_TRUE(exists(path(kId2, "scratch.img")));
  EXPECT_TRUE(exists(path(kId2, "work/deep/file")));

  EXPECT_THAT(*store().sweep(), IsEmpty()) << "a second sweep finds nothing";
  kill9(lives);
  EXPECT_THAT(*store().sweep(), ElementsAre(kId2));
}

TEST_F(RunStoreTest, AnOwnerKilledAfterItEndedLosesOnlyItsLeftovers) {
  kill9(owner("fix", kId1, RunState::kEnded));
  EXPECT_TRUE(exists(path(kId1, "scratch.img")));
  EXPECT_THAT(*store().sweep(), IsEmpty());
  EXPECT_EQ(store().find(kId1)->record.state, RunState::kEnded);
  EXPECT_FALSE(exists(path(kId1, "scratch.img")));
}

TEST_F(RunStoreTest, OfManySweepersOneReportsARun) {
  for (int round = 0; round < 5; ++round) {
    const std::string id = "20261129-10000" + std::to_string(round) + "-aaaaaa";
    kill9(owner("fix", id, RunState::kPreparing));
    std::atomic<int> reports = 0;
    std::vector<std::jthread> sweepers;
    for (int i = 0; i < 4; ++i)
      sweepers.emplace_back([&] {
        const auto swept = store().sweep();
        reports += swept ? static_cast<int>(swept->size()) : 100;
      });
    sweepers.clear();
    EXPECT_EQ(reports, 1);
    EXPECT_EQ(store().find(id)->record.state, RunState::kDied);
  }
}

TEST_F(RunStoreTest, LookersNeverMakeARunSeemAlive) {
  kill9(owner("fix", kId1, RunState::kRunning));
  std::atomic<bool> stop = false, seen_alive = false;
  std::jthread looker([&] {
    while (!stop)
      if (const auto found = store().find(kId1); found && found->alive) seen_alive = true;
  });
  for (int i = 0; i < 50; ++i) (void)store().find(kId1);
  EXPECT_THAT(*store().sweep(), ElementsAre(kId1));
  stop = true;
  looker.join();
  EXPECT_FALSE(seen_alive);
}

TEST_F(RunStoreTest, SweepersNeverHarmRunsThatAreBeingMade) {
  std::atomic<bool> stop = false;
  std::jthread sweeper([&] {
    while (!stop) EXPECT_THAT(*store().sweep(), IsEmpty());
  });
  for (int i = 0; i < 50; ++i) {
    auto run = store().create("fix", RunStore::new_id());
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_TRUE(exists(run->directory() + "/run.json"));
    run->record().state = RunState::kEnded;
    ASSERT_TRUE(run->save());
  }
  stop = true;
}

TEST_F(RunStoreTest, UnfinishedMakingsAndRemovalsAreTidied) {
  for (const char* name : {".new-20261129-100000-aaaaaa", ".gone-20261129-100000-bbbbbb"}) {
    ASSERT_TRUE(make_directories(join_path(state_, "runs/" + std::string(name)), 0700));
    ASSERT_TRUE(write_file_atomic(join_path(state_, "runs/" + std::string(name) + "/disk"), "x"));
  }
  ASSERT_TRUE(make_directories(join_path(state_, "runs/somebody-elses"), 0700));
  EXPECT_THAT(*store().sweep(), IsEmpty());
  EXPECT_FALSE(exists(join_path(state_, "runs/.new-20261129-100000-aaaaaa")));
  EXPECT_FALSE(exists(join_path(state_, "runs/.gone-20261129-100000-bbbbbb")));
  EXPECT_TRUE(exists(join_path(state_, "runs/somebody-elses")));
}

TEST_F(RunStoreTest, BadRecordsAreListedWithANoteAndCanBeRemoved) {
  struct Row {
    const char* text;
    const char* why;
  };
  const Row rows[] = {
      {"", "cut to nothing"},
      {"{\"version\": 1, \"id\": \"2026", "cut in the middle"},
      {"[]", "another type"},
      {"{\"id\":\"20261129-100000-aaaaaa\",\"state\":\"running\"}", "no version"},
      {"{\"version\":\"1\",\"id\":\"20261129-100000-aaaaaa\",\"state\":\"running\"}",
       "version of another type"},
      {"{\"version\":1,\"id\":\"../../etc\",\"state\":\"running\"}", "an id that is a path"},
      {"{\"version\":1,\"id\":\"20261129-110000-bbbbbb\",\"state\":\"running\"}", "the id of another run"},
      {"{\"version\":1,\"id\":\"20261129-100000-aaaaaa\",\"state\":\"flying\"}", "an unknown state"},
      {"{\"version\":1,\"id\":\"20261129-100000-aaaaaa\",\"state\":\"ended\",\"exit_status\":4711}",
       "a status that does not fit"},
      {"{\"version\":1,\"id\":\"20261129-100000-aaaaaa\",\"state\":\"ended\",\"command\":[1]}",
       "a command that is no words"},
      {"{\"version\":1,\"version\":1,\"id\":\"20261129-100000-aaaaaa\",\"state\":\"ended\"}",
       "a duplicate key"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    kill9(owner("fix", kId1, RunState::kRunning));
    ASSERT_TRUE(write_file_atomic(path(kId1, "run.json"), row.text));
    const auto listed = store().list();
    ASSERT_EQ(listed->size(), 1u);
    EXPECT_EQ(listed->front().record.id, kId1);
    EXPECT_FALSE(listed->front().note.empty());
    // Its owner is gone for certain, so its disks go; what it says of itself stays to be looked at.
    EXPECT_THAT(*store().sweep(), ElementsAre(kId1));
    EXPECT_FALSE(exists(path(kId1, "scratch.img")));
    EXPECT_EQ(*read_file(path(kId1, "run.json")), row.text);
    EXPECT_TRUE(store().remove(kId1));
    EXPECT_THAT(*store().list(), IsEmpty());
  }
}

TEST_F(RunStoreTest, ARunOfANewerFirestopIsLeftAlone) {
  kill9(owner("fix", kId1, RunState::kRunning));
  const std::string text = R"({"version":2,"id":"20261129-100000-aaaaaa","state":"hovering"})";
  ASSERT_TRUE(write_file_atomic(path(kId1, "run.json"), text));
  EXPECT_THAT(*store().sweep(), IsEmpty());
  EXPECT_TRUE(exists(path(kId1, "scratch.img")));
  EXPECT_EQ(*read_file(path(kId1, "run.json")), text);
  EXPECT_THAT(store().find(kId1)->note, HasSubstr("newer firestop"));
}

TEST_F(RunStoreTest, inv15_ANameIsTakenWhileItsRunLives) {
  {
    const auto first = store().create("fix", kId1);
    ASSERT_TRUE(first);
    EXPECT_EQ(store().create("fix", kId2).error().code, "run.name_taken");
    EXPECT_TRUE(store().create("other", kId2));
  }
  EXPECT_TRUE(store().create("fix", "20261129-120000-cccccc")) << "its owner is gone";
}

TEST_F(RunStoreTest, OneIdIsMadeOnce) {
  const auto first = store().create("one", kId1);
  ASSERT_TRUE(first);
  EXPECT_FALSE(store().create("two", kId1));
  EXPECT_EQ(store().find(kId1)->record.name, "one");
}

TEST_F(RunStoreTest, FindsByIdNameAndPrefix) {
  {
    ASSERT_TRUE(store().create("fix", kId1));
  }
  {
    ASSERT_TRUE(store().create("fix", kId2));
  }
  EXPECT_EQ(store().find(kId1)->record.id, kId1);
  EXPECT_EQ(store().find("fix")->record.id, kId2) << "the newest wins";
  EXPECT_EQ(store().find("20261129-10")->record.id, kId1);
  EXPECT_EQ(store().find("20261129-1").error().code, "run.ambiguous");
  EXPECT_THAT(store().find("20261129-1").error().message, HasSubstr(kId1));
  EXPECT_EQ(store().find("20261129-12").error().code, "run.not_found");
  EXPECT_EQ(store().find("../runs").error().code, "run.not_found");
  const auto listed = store().list();
  EXPECT_EQ(listed->front().record.id, kId2) << "newest first";
}

TEST_F(RunStoreTest, NamesAreRefComponents) {
  for (const char* good : {"a", "0", "fix-2", "a.b_c", "agent-base", "x.lock1"})
    EXPECT_TRUE(RunStore::valid_name(good)) << good;
  for (const char* bad :
       {"", "-a", ".a", "_a", "A", "a b", "a/b", "a..b", "a.lock", "a.", "a\n", "ä", "a~", "a^", "a:", "@{"})
    EXPECT_FALSE(RunStore::valid_name(bad)) << bad;
  EXPECT_TRUE(RunStore::valid_name(std::string(63, 'a')));
  EXPECT_FALSE(RunStore::valid_name(std::string(64, 'a')));
  EXPECT_EQ(store().create("../x", kId1).error().code, "usage.run_name");
}

TEST_F(RunStoreTest, IdsHaveOneShape) {
  EXPECT_TRUE(RunStore::valid_id(RunStore::new_id()));
  for (const char* bad : {"", "..", "20261129-100000-AAAAAA", "20261129-100000-aaaaa",
                          "20261129_100000-aaaaaa", "20261129-100000-aaaaaa/"})
    EXPECT_FALSE(RunStore::valid_id(bad)) << bad;
  EXPECT_FALSE(store().create("fix", "../x"));
  EXPECT_EQ(store().remove("..").error().code, "run.not_found");
}

}  // namespace
}  // namespace firestop::sandbox
