// The guest's export against the host's import: what an agent may have done to its repository.
#include "guest/export.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/frame.h"
#include "guest/export_repository.h"
#include "workspace/testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::is_ok;

// In place of a container: a process group of its own, killed as one. Reports 128+n as the guest's runner
// does.
Result<pid_t> start_here(const guest::ContainerCommand& command) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [from, to] : command.descriptors) ::dup2(from, to);
  ::close_range(4, ~0u, 0);
  if (::chdir(command.directory.c_str()) != 0) ::_exit(125);
  std::vector<char*> argv, env;
  for (const auto& text : command.argv) argv.push_back(const_cast<char*>(text.c_str()));
  for (const auto& text : command.environment) env.push_back(const_cast<char*>(text.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);
  ::execve(argv[0], argv.data(), env.data());
  ::_exit(127);
}

class Export : public testing::Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    make_repository("src");
    fresh();
  }
  void fresh() {
    shell("rm -rf ws bundle; mkdir ws; git clone -q --single-branch --no-tags file://$PWD/src ws/repo");
  }
  // Runs `script` as the agent in its repository, exports, and keeps the bundle in "bundle".
  guest::RepositoryOutcome exported(const std::string& script,
                                    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    shell(script, "ws/repo");
    guest::ExportPlan plan;
    plan.workspace = plan.workspace_inside = path("ws");
    plan.repository_timeout = timeout;
    const UniqueFd file = *open_file(path("bundle"), O_WRONLY | O_CREAT | O_TRUNC);
    auto outcome =
        guest::export_repository(plan, {"repo", "ro0", shell("git rev-parse HEAD", "src")}, start_here,
                                 [&](std::string_view data) { return write_all(file.get(), data); });
    EXPECT_TRUE(is_ok(outcome));
    return outcome ? *outcome : guest::RepositoryOutcome{};
  }
  Result<std::optional<ImportedBranch>> import(const std::string& name) {
    auto source = resolve("src");
    EXPECT_TRUE(is_ok(source));
    return import_bundle(*source, path("bundle"), path("scratch"), name, name, ImportLimits{16u << 20, 1000});
  }
};

TEST_F(Export, NothingChanged) {
  const auto got = exported("true");
  EXPECT_EQ(got.repository.error, "");
  EXPECT_FALSE(got.repository.changed);
  EXPECT_EQ(read_file(path("bundle"))->size(), 0u);
}

TEST_F(Export, WhateverHeadIs) {
  struct Row {
    const char *name, *script, *log;  // the log of what comes back, without the base
    bool uncommitted;
  };
  constexpr char kLeft[] = "Uncommitted work of the sandbox";
  const Row rows[] = {
      {"commits", "echo 1 > a; git add a; git commit -qm one; echo 2 > a; git commit -qam two", "two one",
       false},
      {"uncommitted", "echo 1 > a; rm empty; echo x >> file", kLeft, true},
      {"both", "echo 1 > a; git add a; git commit -qm one; echo 2 > b", "Uncommitted work of the sandbox one",
       true},
      {"branch", "git checkout -qb other; echo 1 > a; git add a; git commit -qm one", "one", false},
      {"detached", "git checkout -q --detach; echo 1 > a; git add a; git commit -qm one", "one", false},
      {"unborn", "git checkout -q --orphan new; git rm -rqf .; echo 1 > only", kLeft, true},
      {"orphan", "git checkout -q --orphan new; git commit -qm root", "root", false},
      {"amended", "echo x > x; git add .; git commit -q --amend -m changed", "changed", false},
      {"locked", "touch .git/index.lock; echo 1 > a", kLeft, true},
      {"index-broken", "echo garbage > .git/index; echo 1 > a", kLeft, true},
      {"index-gone", "rm .git/index; echo 1 > a", kLeft, true},
      {"conflict",
       "git checkout -qb o; echo o > file; git commit -qam o; git checkout -q main; echo m > file; git "
       "commit -qam m; git merge o || true",
       "Uncommitted work of the sandbox m", true},
      {"gc", "echo 1 > a; git add a; git commit -qm one; git gc -q --prune=now --aggressive", "one", false},
      {"worktree-elsewhere", "git config core.worktree /; echo 1 > a", kLeft, true},
      {"bare", "git config core.bare true; echo 1 > a", kLeft, true},
      {"hooks", "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/*; echo 1 > a",
       kLeft, true},
      {"fsmonitor", "git config core.fsmonitor 'sleep 1000'; echo 1 > a", kLeft, true},
      {"bitmaps", "echo 1 > a; git add a; git commit -qm one; git repack -qadb", "one", false},
      {"identity", "git config user.useConfigOnly true; git config --unset user.name || true; echo 1 > a",
       kLeft, true},
      {"odd-name", "echo 1 > \"$(printf 'caf\\351\\n')\"", kLeft, true},
      {"replace", "echo 1 > a; git add a; git commit -qm one; git replace HEAD HEAD~1", "one", false},
      {"absolute-link", "ln -s /etc/passwd abs; echo 1 > a", kLeft, true},
      {"nested", "git init -q inner; cd inner; echo 1 > a; git add a; git commit -qm i; cd ..; echo 1 > a",
       kLeft, true},
      {"objects-lost",
       "echo 1 > a; git add a; git commit -qm one; rm -f .git/objects/[0-9a-f]*/*; touch -d 2001-01-01 a",
       kLeft, true},
      {"moved-gitdir",
       "git init -q --separate-git-dir=../elsewhere .; echo 1 > a; git add a; git commit -qm one", "one",
       false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    fresh();
    const auto got = exported(row.script);
    EXPECT_EQ(got.repository.error, "");
    EXPECT_TRUE(got.repository.changed);
    EXPECT_EQ(got.repository.uncommitted, row.uncommitted);
    const auto imported = import(row.name);
    ASSERT_TRUE(is_ok(imported));
    ASSERT_TRUE(imported->has_value());
    EXPECT_EQ((*imported)->uncommitted, row.uncommitted);
    EXPECT_EQ(
        shell("git log --format=%s main.." + (*imported)->commit + " | tr '\\n' ' ' | sed 's/ $//'", "src"),
        row.log);
  }
  EXPECT_EQ(shell("git show agent/absolute-link:a; git ls-tree --name-only agent/absolute-link abs", "src"),
            "1");
  EXPECT_EQ(shell("git ls-tree --name-only agent/unborn", "src"), "only");
}

TEST_F(Export, EndsInAnErrorAndNotInAHang) {
  struct Row {
    const char *script, *error;
  };
  const Row rows[] = {
      {"rm -rf .git", "its .git is gone"},
      {"rm -rf .git; echo nonsense > .git", "no repository"},
      {"rm .git/HEAD", "no repository"},
      {"rm -rf .git/objects; mkdir .git/objects", "HEAD names no commit"},
      {"git config filter.f.clean 'sleep 1000'; echo '* filter=f' > .gitattributes; touch file",
       "longer than 3 s"},
      {"git config core.repositoryformatversion 99", "no repository"},
      {"printf '[broken' >> .git/config", "no repository"},
      {"mkfifo ../p; rm .git/index; ln -s ../../p .git/index; echo 1 > a", "longer than 3 s"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    fresh();
    const auto got = exported(row.script, std::chrono::seconds(3));
    EXPECT_NE(got.repository.error.find(row.error), std::string::npos) << got.repository.error;
  }
}

TEST_F(Export, SaysWhatStaysBehind) {
  auto got = exported(
      "git checkout -qb other; echo 1 > a; git add a; git commit -qm one; git checkout -q main; echo 2 > b; "
      "git stash -qu; git init -q inner; git -C inner commit -q --allow-empty -m i");
  EXPECT_EQ(got.repository.error, "");
  std::string all;
  for (const auto& note : got.notes) all += note + "\n";
  EXPECT_NE(all.find("not brought back: other"), std::string::npos) << all;
  EXPECT_NE(all.find("stash"), std::string::npos) << all;
  EXPECT_NE(all.find("links only"), std::string::npos) << all;
  fresh();
  got = exported("git reset -q --hard HEAD~1");
  EXPECT_FALSE(got.repository.changed);
  EXPECT_EQ(got.notes, std::vector<std::string>{"HEAD was moved back to an older commit"});
}

TEST_F(Export, ABundleBeyondItsBoundIsCut) {
  shell("head -c 3000000 /dev/urandom > big; git add big; git commit -qm big", "ws/repo");
  guest::ExportPlan plan;
  plan.workspace = plan.workspace_inside = path("ws");
  plan.bundle_max = 1 << 20;
  uint64_t sent = 0;
  const auto got = guest::export_repository(plan, {"repo", "ro0", shell("git rev-parse HEAD", "src")},
                                            start_here, [&](std::string_view data) -> Result<void> {
                                              sent += data.size();
                                              return {};
                                            });
  ASSERT_TRUE(is_ok(got));
  EXPECT_NE(got->repository.error.find("more than 1048576 bytes"), std::string::npos)
      << got->repository.error;
  EXPECT_LE(sent, 1u << 20);
}

TEST_F(Export, FramesForPidOne) {
  shell("echo 1 > a; mkdir ../out; echo o > ../out/o", "ws/repo");
  guest::ExportPlan plan;
  plan.workspace = plan.workspace_inside = path("ws");
  plan.repositories = {{"repo", "ro0", shell("git rev-parse HEAD", "src")}};
  plan.outputs = {{"out", 1000}};
  auto running = guest::start_export(plan, start_here);
  ASSERT_TRUE(is_ok(running));
  const auto bytes = read_all(running->frames.get());
  ASSERT_TRUE(is_ok(bytes));
  int status = 0;
  ASSERT_EQ(::waitpid(running->pid, &status, 0), running->pid);
  EXPECT_EQ(status, 0);
  codec::FrameDecoder decoder;
  decoder.feed(*bytes);
  std::map<uint16_t, std::string> streams;
  std::vector<uint16_t> ends;
  std::optional<channel::Exported> exported;
  while (true) {
    auto frame = decoder.next();
    ASSERT_TRUE(is_ok(frame));
    if (!*frame) break;
    if ((*frame)->type == codec::FrameType::kData) streams[(*frame)->stream] += (*frame)->payload;
    if ((*frame)->type == codec::FrameType::kEnd) ends.push_back((*frame)->stream);
    if ((*frame)->type == codec::FrameType::kControl)
      exported = std::get<channel::Exported>(*channel::decode_from_guest((*frame)->payload));
  }
  EXPECT_EQ(ends, (std::vector<uint16_t>{channel::kFirstBundleStream, channel::kOutputsStream}));
  ASSERT_TRUE(exported.has_value());
  EXPECT_TRUE(exported->repositories.at(0).uncommitted);
  EXPECT_EQ(exported->output_files, 2u);
  write("bundle", streams[channel::kFirstBundleStream]);
  EXPECT_TRUE(is_ok(import("frames")));
  write("a.tar", streams[channel::kOutputsStream]);
  EXPECT_TRUE(is_ok(import_archive(path("a.tar"), path("to"), ImportLimits{1000, 10})));
  EXPECT_EQ(*read_file(path("to/out/o")), "o\n");
}

}  // namespace
}  // namespace firestop::workspace
