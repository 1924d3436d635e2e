#include "guest/evidence/audit_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>

namespace firestop::guest {
namespace {

using ::testing::ElementsAre;

constexpr char kCall[] =
    "audit(1764447379.123:42): arch=c000003e syscall=59 success=yes exit=0 a0=55d0 a1=55e0 a2=55f0 a3=8 "
    "items=2 ppid=88 pid=89 auid=4294967295 uid=1000 gid=1001 euid=1000 suid=1000 fsuid=1000 egid=1001 "
    "sgid=1001 fsgid=1001 tty=(none) ses=4294967295 comm=\"sh\" exe=\"/usr/bin/dash\" key=(null)";

std::optional<AuditEvent> end(AuditAssembler& assembler, int serial = 42) {
  return assembler.take(AUDIT_EOE, "audit(1764447379.123:" + std::to_string(serial) + "): ");
}

TEST(AuditRecord, AnExecutionIsPutTogetherFromItsRecords) {
  AuditAssembler assembler;
  EXPECT_FALSE(assembler.take(AUDIT_SYSCALL, kCall));
  EXPECT_FALSE(assembler.take(AUDIT_EXECVE,
                              "audit(1764447379.123:42): argc=3 a0=\"sh\" a1=\"-c\" a2=6563686F2022612200"));
  EXPECT_FALSE(assembler.take(AUDIT_CWD, "audit(1764447379.123:42): cwd=\"/workspace\""));
  EXPECT_FALSE(assembler.take(AUDIT_PATH,
                              "audit(1764447379.123:42): item=0 name=\"/bin/sh\" inode=77 dev=00:15 "
                              "mode=0100755 ouid=0 ogid=0 rdev=00:00 nametype=NORMAL cap_fp=0"));
  const auto event = end(assembler);
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->complete);
  EXPECT_EQ(event->number, 59u);
  EXPECT_EQ(event->at_ms, 1764447379123);
  EXPECT_EQ(event->pid, 89u);
  EXPECT_EQ(event->parent, 88u);
  EXPECT_EQ(event->uid, 1000u);
  EXPECT_EQ(event->gid, 1001u);
  EXPECT_EQ(event->exe, "/usr/bin/dash");
  EXPECT_EQ(event->cwd, "/workspace");
  EXPECT_EQ(event->arguments[0], 0x55d0u);
  EXPECT_THAT(event->argv, ElementsAre("sh", "-c", std::string("echo \"a\"\0", 9)));
  EXPECT_FALSE(event->cut);
  ASSERT_EQ(event->paths.size(), 1u);
  EXPECT_EQ(event->paths[0].name, "/bin/sh");
  EXPECT_EQ(event->paths[0].inode, 77u);
  EXPECT_EQ(event->paths[0].mode, 0100755u);
  EXPECT_EQ(event->paths[0].kind, "NORMAL");
}

TEST(AuditRecord, ALongArgumentComesInPieces) {
  AuditAssembler assembler;
  (void)assembler.take(AUDIT_SYSCALL, kCall);
  (void)assembler.take(AUDIT_EXECVE, "audit(1764447379.123:42): argc=3 a0=\"sh\" a1_len=8 a1[0]=\"abc\"");
  (void)assembler.take(AUDIT_EXECVE, "audit(1764447379.123:42):  a1[1]=64650A a1[2]=\"fg\" a2=\"end\"");
  const auto event = end(assembler);
  ASSERT_TRUE(event);
  EXPECT_THAT(event->argv, ElementsAre("sh", "abcde\nfg", "end"));
  EXPECT_FALSE(event->cut);
}

TEST(AuditRecord, EventsMayBeMixed) {
  AuditAssembler assembler;
  (void)assembler.take(AUDIT_SYSCALL, "audit(1.000:1): syscall=82 pid=5 exe=\"/a\"");
  (void)assembler.take(AUDIT_SYSCALL, "audit(1.001:2): syscall=87 pid=6 exe=\"/b\"");
  (void)assembler.take(AUDIT_PATH, "audit(1.001:2): item=0 name=\"two\" nametype=DELETE");
  (void)assembler.take(AUDIT_PATH, "audit(1.000:1): item=0 name=\"one\" nametype=DELETE");
  const auto second = assembler.take(AUDIT_EOE, "audit(1.001:2): ");
  const auto first = assembler.take(AUDIT_EOE, "audit(1.000:1): ");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->pid, 5u);
  EXPECT_EQ(first->paths[0].name, "one");
  EXPECT_EQ(second->paths[0].name, "two");
}

// An account chooses its arguments and its files' names: none of them can pass for another field.
TEST(AuditRecord, inv11_TextCannotBecomeFields) {
  EXPECT_EQ(audit_field("name=\"x pid=1\" pid=7", "pid"), "7");
  EXPECT_EQ(audit_text("\"plain\""), "plain");
  EXPECT_EQ(audit_text("6122622070"), "a\"b p");
  EXPECT_EQ(audit_text("(null)"), "");
  EXPECT_EQ(audit_text("<too_long>"), "");
}

TEST(AuditRecord, MissingArgumentsAreToldAsCut) {
  AuditAssembler assembler;
  (void)assembler.take(AUDIT_SYSCALL, kCall);
  (void)assembler.take(AUDIT_EXECVE, "audit(1764447379.123:42): argc=3 a0=\"sh\" a2=\"later\"");
  const auto event = end(assembler);
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->cut);
  EXPECT_EQ(event->argc, 3u);
}

TEST(AuditRecord, MoreThanCanBeHeldIsCountedAndTheArgumentsBounded) {
  AuditAssembler assembler;
  for (size_t i = 0; i < AuditAssembler::kMostOpen + 3; ++i)
    (void)assembler.take(AUDIT_SYSCALL, "audit(1.000:" + std::to_string(i) + "): syscall=59 pid=5");
  EXPECT_EQ(assembler.take_lost(), 3u);
  EXPECT_EQ(assembler.take_lost(), 0u);
  EXPECT_FALSE(assembler.take(AUDIT_EOE, "audit(1.000:0): "));

  const std::string piece(4096, '4');
  (void)assembler.take(AUDIT_SYSCALL, "audit(2.000:9999): syscall=59 pid=5");
  for (size_t i = 0; i < 2000; ++i)
    (void)assembler.take(AUDIT_EXECVE, "audit(2.000:9999): a0[" + std::to_string(i) + "]=" + piece);
  const auto event = assembler.take(AUDIT_EOE, "audit(2.000:9999): ");
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->cut);
  EXPECT_LE(event->argv[0].size(), AuditAssembler::kMostArguments);
}

TEST(AuditRecord, WhatIsNoRecordIsNothing) {
  AuditAssembler assembler;
  for (const char* text : {"", "audit(", "audit(1:2", "audit(1.2)", "audit(a.b:c): x=1",
                           "audit(1.9999:2): x=1", "audit(99999999999999999999.1:2): x", "hello"})
    EXPECT_FALSE(assembler.take(AUDIT_SYSCALL, text)) << text;
  EXPECT_FALSE(assembler.take(AUDIT_EOE, "audit(1.000:5): "));
}

}  // namespace
}  // namespace firestop::guest
