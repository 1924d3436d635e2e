#include "story/story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "story/testing/record_maker.h"

namespace firestop::story {
namespace {

using codec::JsonObject;
using story::testing::kStartUs;
using story::testing::RecordMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StoryTest, ProcessesAreATreeWithProgramsAndEnds) {
  RecordMaker made;
  made.at(10).exec(2, 1, {"/bin/sh", "-c", "make"}, {{"cwd", "/workspace/app"}});
  made.at(20).fork(3, 2).at(21).exec(3, 2, {"/usr/bin/make", "test"});
  made.at(30).fork(4, 3).at(40).exit(4, 256, 500).at(50).exit(3, 9, 4000).at(60).exit(2, 0x0200);
  const Story story = made.story();
  ASSERT_EQ(story.processes.size(), 3u);
  EXPECT_THAT(story.roots, ElementsAre(0));
  EXPECT_THAT(story.processes[0].children, ElementsAre(1));
  EXPECT_THAT(story.processes[1].children, ElementsAre(2));
  const Process& shell = story.processes[0];
  EXPECT_EQ(shell.pid, 2u);
  EXPECT_EQ(shell.parent, kNone);
  EXPECT_EQ(shell.parent_pid, 1u);
  EXPECT_EQ(shell.started_us, kStartUs + 10000);
  EXPECT_EQ(shell.ended_us, kStartUs + 60000);
  ASSERT_EQ(shell.execs.size(), 1u);
  EXPECT_THAT(shell.execs[0].argv, ElementsAre("/bin/sh", "-c", "make"));
  EXPECT_EQ(shell.execs[0].cwd, "/workspace/app");
  EXPECT_EQ(shell.execs[0].uid, 1000u);
  EXPECT_TRUE(shell.execs[0].from_image);
  const Process& copy = story.processes[2];
  EXPECT_THAT(copy.execs, IsEmpty());
  EXPECT_EQ(name_of(story, 2), "make");
  EXPECT_EQ(copy.status, 256);
  EXPECT_EQ(copy.user_us, 500u);
  EXPECT_EQ(copy.max_rss_kib, 4096u);
  EXPECT_EQ(story.note, "");
  EXPECT_EQ(story.first_time, "2026-11-29T20:00:00.010000Z");
  EXPECT_EQ(story.last_time, "2026-11-29T20:00:00.060000Z");
}

TEST(StoryTest, APidThatIsUsedAgainIsAnotherProcess) {
  RecordMaker made;
  made.at(1).exec(2, 1, {"/bin/sh"});
  made.at(10).fork(7, 2).at(11).exec(7, 2, {"/bin/first"}).at(20).exit(7);
  made.at(30).fork(7, 2).at(31).exec(7, 2, {"/bin/second"}).exec(7, 2, {"/bin/third"});
  made.at(15).code(7, "script", "/tmp/early.sh", "early").at(35).code(7, "script", "/tmp/late.sh", "late");
  made.at(40).fork(7, 2);                                 // the end of the one before was lost
  made.at(50).exit(7).at(60).exec(7, 2, {"/bin/fifth"});  // and this one's fork
  const Story story = made.story();
  ASSERT_EQ(story.processes.size(), 5u);
  EXPECT_EQ(name_of(story, 1), "first");
  EXPECT_EQ(name_of(story, 2), "third");
  EXPECT_EQ(story.processes[2].execs.size(), 2u);
  EXPECT_FALSE(story.processes[2].ended);
  EXPECT_TRUE(story.processes[3].ended);
  EXPECT_EQ(name_of(story, 4), "fifth");
  EXPECT_THAT(story.processes[0].children, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(story.scripts[0].process, 1u);
  EXPECT_EQ(story.scripts[1].process, 2u);
}

TEST(StoryTest, EventsOutOfOrderFindTheirProcess) {
  RecordMaker made;
  made.at(5).exec(2, 1, {"/bin/sh"});
  made.at(12).exec(5, 2, {"/bin/ls"}).at(11).fork(5, 2);                // exec told before its fork
  made.at(11).code(6, "program", "/tmp/a", "x");                        // before anything of its process
  made.at(10).fork(6, 2).at(20).exit(6).at(13).exec(6, 2, {"/tmp/a"});  // exec told after its end
  made.at(14).change(6, "delete", "/tmp/a").at(20).exit(6);             // an end told twice
  const Story story = made.story();
  ASSERT_EQ(story.processes.size(), 3u);
  EXPECT_EQ(story.processes[1].started_us, kStartUs + 11000);
  EXPECT_EQ(story.processes[1].execs.size(), 1u);
  EXPECT_EQ(name_of(story, 2), "a");
  EXPECT_EQ(story.scripts[0].process, 2u);
  EXPECT_EQ(story.changes[0].process, 2u);
}

TEST(StoryTest, OrphansAreRootsAndAnEndAloneIsAProcess) {
  RecordMaker made;
  made.at(1).fork(9, 8).at(2).exit(77, 1);
  const Story story = made.story();
  ASSERT_EQ(story.processes.size(), 2u);
  EXPECT_THAT(story.roots, ElementsAre(0, 1));
  EXPECT_EQ(story.processes[0].parent_pid, 8u);
  EXPECT_EQ(story.processes[1].started_us, 0);
  EXPECT_EQ(name_of(story, 0), "pid 9");
  EXPECT_EQ(name_of(story, kNone), "");
  EXPECT_EQ(program_of(story, kNone), nullptr);
}

TEST(StoryTest, inv11_ParentsThatGoRoundAreNone) {
  RecordMaker made;
  made.at(1).fork(2, 2).fork(3, 4).fork(4, 3).exec(5, 6, {"/a"}).exec(6, 5, {"/b"}).fork(0, 0);
  const Story story = made.story();
  ASSERT_EQ(story.processes.size(), 6u);
  for (size_t i = 0; i < story.processes.size(); ++i) {
    const size_t parent = story.processes[i].parent;
    EXPECT_TRUE(parent == kNone || parent < i) << i;
  }
}

TEST(StoryTest, ScriptsHaveWhoWroteThemAndWhetherTheyExist) {
  RecordMaker made;
  made.at(1).exec(2, 1, {"/bin/agent"}).fork(3, 2).fork(4, 2);
  const auto ran = [&made](const std::string& path, std::string_view bytes) {
    made.code(3, "script", path, bytes, {{"writer", 4}, {"interpreter", "/bin/sh"}});
  };
  made.at(10);
  ran("/workspace/same.sh", "same");
  ran("/workspace/changed.sh", "old");
  ran("/tmp/deleted.sh", "gone");
  ran("/workspace/moved.sh", "moved");
  ran("/tmp/not-known.sh", "?");
  ran("/workspace/covered.sh", "below");
  ran("/workspace/dir/in.sh", "in");
  ran("/workspace/back.sh", "again");
  ran("/workspace/linked.sh", "linked");
  made.code(3, "command", "", "echo hi", {{"interpreter", "/bin/sh"}});
  made.guest("code", {{"pid", 3}, {"how", "stdin"}, {"note", "too fast"}, {"size", 9}});
  made.at(20)
      .change(3, "delete", "/tmp/deleted.sh")
      .change(3, "link", "/workspace/linked.sh", "/workspace/second.sh")
      .change(3, "delete", "/workspace/linked.sh")
      .change(3, "rename", "/workspace/moved.sh", "/workspace/m2");
  made.change(3, "rename", "/workspace/other", "/workspace/covered.sh");
  made.change(3, "rename", "/workspace/dir", "/workspace/dir2").change(4, "write", "/workspace/changed.sh");
  made.change(3, "delete", "/workspace/back.sh").change(3, "write", "/workspace/back.sh");
  made.final("same.sh", "same").final("changed.sh", "new").final("m2", "moved").final("dir2/in.sh", "in");
  made.final("back.sh", "again").final("covered.sh", "below").final("second.sh", "linked");
  const Story story = made.story();
  ASSERT_EQ(story.scripts.size(), 11u);
  std::vector<std::optional<bool>> exist;
  for (const auto& script : story.scripts) exist.push_back(script.exists);
  EXPECT_THAT(exist, ElementsAre(true, false, false, true, std::nullopt, false, true, false, true,
                                 std::nullopt, std::nullopt));
  EXPECT_EQ(story.scripts[0].process, 1u);
  EXPECT_EQ(story.scripts[0].writer, 2u);
  EXPECT_EQ(story.scripts[0].writer_pid, 4u);
  EXPECT_EQ(story.scripts[9].writer, kNone);
  EXPECT_EQ(story.scripts[10].digest, "");
  EXPECT_EQ(story.scripts[10].note, "too fast");
}

TEST(StoryTest, AScriptIsRunByTheProgramOfItsTime) {
  RecordMaker made;
  made.at(1).exec(2, 1, {"/bin/sh"}).at(10).fork(3, 2).at(11).code(3, "module", "/workspace/x", "x");
  made.at(12).code(3, "program", "/tmp/wc", "wc").exec(3, 2, {"/usr/bin/wc"});
  made.at(13).code(3, "argument", "/workspace/y", "y").code(9, "stdin", "", "z");
  const Story story = made.story();
  std::vector<std::string> names;
  for (const auto& script : story.scripts) names.push_back(name_of_runner(story, script));
  EXPECT_THAT(names, ElementsAre("sh", "wc", "wc", ""));
}

TEST(StoryTest, WhatWasNotWrittenExistsOnlyIfAllWasTold) {
  for (const bool lost : {false, true}) {
    RecordMaker made;
    made.at(1).code(2, "script", "/workspace/repo/test.sh", "from the repository");
    made.guest("collectors",
               {{"working", codec::JsonArray{"files"}}, {"missing", codec::JsonArray{"stdin: x"}}});
    if (lost) made.guest("lost", {{"what", "files"}, {"count", 1}});
    made.guest("collectors.done", {});
    EXPECT_EQ(made.story().scripts[0].exists, lost ? std::optional<bool>() : true);
  }
}

TEST(StoryTest, CrossingsAreOfTheProcessThatTheirPidOrPortTells) {
  RecordMaker made;
  made.at(1).exec(2, 1, {"/usr/bin/curl"}).fork(3, 2);
  const auto socket = [&made](uint32_t pid, int port) {
    made.guest("socket", {{"pid", pid},
                          {"at_us", kStartUs + 100000},
                          {"protocol", "tcp"},
                          {"source_port", port},
                          {"address", "198.18.0.5"},
                          {"port", 443}});
  };
  made.at(100);
  socket(3, 40000);
  made.at(101).network("request", {{"host", "a.example"}, {"pid", 2}});
  made.network("request", {{"host", "b.example"}, {"source_port", 40000}});
  made.network("name", {{"host", "c.example"}, {"source_port", 40001}});
  made.at(5).network("request", {{"host", "early.example"}, {"source_port", 40000}}).at(99999);
  made.network("alarm", {{"host", "d.example"}, {"pid", -5}});
  const Story story = made.story();
  std::vector<size_t> processes;
  for (const auto& event : story.network) processes.push_back(event.process);
  EXPECT_THAT(processes, ElementsAre(0, 1, kNone, 1, kNone));
  EXPECT_EQ(story.network[0].kind, "request");
  EXPECT_EQ(story.sockets[0].port, 443);
}

TEST(StoryTest, TheRestHasItsPlace) {
  RecordMaker made;
  made.host("record.begin", {{"run", "r"}}).host("run.plan", {{"image", "base"}});
  made.host("run.cap", {{"name", "memory"}}).host("run.state", {{"state", "started"}});
  made.guest("collectors",
             {{"working", codec::JsonArray{"processes"}}, {"missing", codec::JsonArray{"stdin: no BTF"}}});
  made.guest("denied", {{"what", "exec"}, {"path", "/bin/sh"}, {"count", 2}});
  made.guest("denied", {{"what", "exec"}, {"path", "/bin/sh"}, {"count", 3}});
  made.guest("lost", {{"what", "files"}, {"count", 4}}).host("lost", {{"what", "files"}, {"count", 1}});
  made.guest("of.another.version", {}).guest("collectors.done", {}).host("record.end", {{"status", 0}});
  const Story story = made.story();
  EXPECT_EQ(story.begin.string_or("run", ""), "r");
  EXPECT_EQ(story.plan.string_or("image", ""), "base");
  EXPECT_EQ(story.caps.size(), 1u);
  ASSERT_EQ(story.host.size(), 1u);
  EXPECT_EQ(story.host[0].kind, "run.state");
  EXPECT_THAT(story.working, ElementsAre("processes"));
  EXPECT_THAT(story.missing, ElementsAre("stdin: no BTF"));
  ASSERT_EQ(story.refusals.size(), 1u);
  EXPECT_EQ(story.refusals[0].count, 5u);
  EXPECT_EQ(story.lost.at("files"), 5u);
  EXPECT_TRUE(story.collectors_done);
  EXPECT_EQ(story.end.int_or("status", -1), 0);
  EXPECT_EQ(story.events, 12u);
}

TEST(StoryTest, HalfRecordsAreReadAsFarAsTheyGo) {
  RecordMaker cut;
  cut.at(1).fork(2, 1).tail(R"({"data":{},"kind":"process.fo)");
  EXPECT_EQ(cut.story().processes.size(), 1u);
  EXPECT_EQ(cut.story().note, "");  // a writer may be at it

  RecordMaker bad;
  bad.at(1).fork(2, 1).line("not json").fork(3, 1);
  const Story story = bad.story();
  EXPECT_EQ(story.processes.size(), 1u);
  EXPECT_THAT(story.note, HasSubstr("events.jsonl:2: "));

  RecordMaker large;
  large.at(1).fork(2, 1).line(std::string(evidence::kMostLine + 1, 'x')).fork(3, 1);
  EXPECT_THAT(large.story().note, HasSubstr("events.jsonl:2: longer"));
  EXPECT_EQ(large.story().processes.size(), 1u);

  RecordMaker endless;
  endless.tail(std::string(8 * evidence::kMostLine, 'x'));
  EXPECT_EQ(endless.story().events, 0u);  // half a line, however long

  RecordMaker empty;
  EXPECT_EQ(empty.story().events, 0u);
}

TEST(StoryTest, WhatIsNoRecordIsSaid) {
  RecordMaker made;
  EXPECT_EQ(read_story(made.directory()).error().code, "evidence.not_found");
  EXPECT_EQ(read_story(made.directory() + "/none").error().code, "evidence.not_found");
  const std::string events = made.directory() + "/events.jsonl";
  ASSERT_EQ(::mkfifo(events.c_str(), 0600), 0);  // must not hold the reader up
  EXPECT_EQ(read_story(made.directory()).error().code, "evidence.unreadable");
  ASSERT_EQ(::unlink(events.c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", events.c_str()), 0);
  EXPECT_EQ(read_story(made.directory()).error().code, "evidence.unreadable");
}

// Values of other types and beyond every range: taken as nothing, never as something large.
TEST(StoryTest, inv11_AbsurdValuesAreHarmless) {
  RecordMaker made;
  const codec::Json values[] = {-1,
                                INT64_C(9007199254740992),
                                1e300,
                                "7",
                                true,
                                codec::Json(),
                                codec::JsonArray{1},
                                JsonObject{{"base64", "?"}}};
  const char* kinds[] = {"process.fork", "process.exec",    "process.exit", "code",
                         "file.write",   "file.final",      "socket",       "denied",
                         "lost",         "network.request", "collectors",   "run.cap"};
  const char* keys[] = {"pid",    "parent", "at_us",  "uid",        "file",        "image",
                        "digest", "size",   "argv",   "cwd",        "user_us",     "path",
                        "count",  "what",   "writer", "started_us", "source_port", "missing"};
  for (const char* kind : kinds)
    for (const auto& value : values) {
      JsonObject data;
      for (const char* key : keys) data[key] = value;
      made.guest(kind, std::move(data));
    }
  const Story story = made.story();
  EXPECT_EQ(story.note, "");
  EXPECT_EQ(story.events, std::size(kinds) * std::size(values));
}

// A row of forks as long as the record: nothing that reads it may go as deep as it is.
TEST(StoryTest, DeepTreesAndManyOfOnePidTakeNoTime) {
  RecordMaker made;
  // What grew with the square of it would not end before the test's limit.
#if defined(FIRESTOP_ASAN)
  constexpr uint32_t kMany = 2000;
#else
  constexpr uint32_t kMany = 20000;
#endif
  for (uint32_t pid = 2; pid < kMany; ++pid) made.fork(pid, pid - 1);
  for (uint32_t i = 0; i < kMany; ++i) made.fork(1, kMany - 1).exit(1).code(1, "script", "/a/b/c", "x");
  made.write();
  const Story story = made.story();
  EXPECT_EQ(story.processes.size(), kMany - 2 + kMany);
  EXPECT_EQ(name_of(story, kMany - 3), "pid " + std::to_string(kMany - 1));
}

}  // namespace
}  // namespace firestop::story
