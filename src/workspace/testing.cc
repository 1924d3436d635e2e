#include "workspace/testing.h"

#include <cstdlib>

#include "base/path.h"

namespace firestop::workspace::testing {
namespace {

Command shell_command(const std::string& script, const std::string& folder) {
  Command command;
  command.argv = {"sh", "-ec", script};
  command.directory = folder;
  command.env = std::vector<std::string>{"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                         "HOME=/nonexistent",
                                         "LC_ALL=C",
                                         "GIT_CONFIG_GLOBAL=/dev/null",
                                         "GIT_CONFIG_NOSYSTEM=1",
                                         "GIT_AUTHOR_NAME=a",
                                         "GIT_AUTHOR_EMAIL=a@b.invalid",
                                         "GIT_COMMITTER_NAME=a",
                                         "GIT_COMMITTER_EMAIL=a@b.invalid",
                                         "GIT_AUTHOR_DATE=1700000000 +0000",
                                         "GIT_COMMITTER_DATE=1700000000 +0000",
                                         "GIT_CONFIG_COUNT=3",
                                         "GIT_CONFIG_KEY_0=protocol.file.allow",
                                         "GIT_CONFIG_VALUE_0=always",
                                         "GIT_CONFIG_KEY_1=init.defaultBranch",
                                         "GIT_CONFIG_VALUE_1=main",
                                         "GIT_CONFIG_KEY_2=safe.directory",
                                         "GIT_CONFIG_VALUE_2=*"};
  return command;
}

}  // namespace

void Sandbox::SetUp() {
  char name[] = "/tmp/firestop-workspace-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  root_ = name;
  ASSERT_TRUE(is_ok(make_directories(path("cache"))));
  ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  manifest_.folder = root_;
  manifest_.file = path("firestop.yaml");
  manifest_.name = "job";
  manifest_.run_as = "agent";
}

void Sandbox::TearDown() {
  // Tests make unreadable folders; an ordinary user must open them again first.
  shell_ok("chmod -R u+rwx .");
  (void)remove_tree(root_);
}

std::string Sandbox::shell(const std::string& script, const std::string& folder) {
  auto out = run_checked(shell_command(script, path(folder)));
  EXPECT_TRUE(is_ok(out)) << script;
  std::string text = out ? *out : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool Sandbox::shell_ok(const std::string& script, const std::string& folder) {
  const auto result = run(shell_command(script, path(folder)));
  return result && result->ok();
}

void Sandbox::write(const std::string& name, const std::string& data) {
  ASSERT_TRUE(is_ok(make_directories(parent_path(path(name)))));
  ASSERT_TRUE(is_ok(write_file_atomic(path(name), data, 0644)));
}

Result<RepoSource> Sandbox::resolve(const std::string& repo, const std::string& ref,
                                    std::optional<uint32_t> depth) {
  manifest::Entry entry;
  entry.path = "repo";
  entry.type = manifest::EntryType::kGitRepo;
  entry.repo = repo;
  entry.ref = ref;
  entry.depth = depth;
  return resolve_repository(manifest_, entry);
}

void Sandbox::make_repository(const std::string& name, const std::string& options) {
  shell("git init -q " + options + " " + name + R"(
cd )" + name +
        R"(
echo one > file; mkdir -p dir/sub; echo two > dir/sub/deep; printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
ln -s dir/sub/deep link; : > empty
git add -A; git commit -qm first; git tag -a -m v1 v1; git tag light
echo more >> file; git commit -qam second
echo third >> file; git commit -qam third)");
}

}  // namespace firestop::workspace::testing
