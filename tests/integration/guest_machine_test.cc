// PID 1 in a real machine: the file systems it makes of disks, and how machines end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>

#include "base/file.h"
#include "erofs/writer.h"
#include "integration/guest/fixture.h"

namespace firestop::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GuestWorkspace : public Guest {
 protected:
  // An image of the files, owned by the account.
  std::string image(const std::string& name, const erofs::NodePtr& root) {
    const std::string path = directory_ + "/" + name;
    erofs::Writer writer(root);
    EXPECT_TRUE(writer.layout());
    auto fd = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
    EXPECT_TRUE(fd && writer.write(fd->get()));
    return path;
  }
  static erofs::NodePtr folder() { return erofs::make_directory(0755, 1000, 1000, 1'700'000'000); }
  static erofs::NodePtr file(const std::string& text) {
    return erofs::make_file(text, 0644, 1000, 1000, 1'700'000'000);
  }
};

TEST_F(GuestWorkspace, EntriesRepositoriesMountsAndOutputs) {
  const auto entries = folder();
  entries->children["notes.md"] = file("notes\n");
  entries->children["deep"] = folder();
  const auto repository = folder();
  repository->children["tracked"] = file("tracked\n");
  repository->children["directory"] = folder();
  repository->children["directory"]->children["inner"] = file("inner\n");
  const auto data = folder();
  data->children["fact"] = file("fact\n");
  const std::vector<std::string> disks = {image("entries", entries), image("repository", repository),
                                          image("data", data)};
  boot({.disks = disks});
  channel::Start wanted = Machine::usual_start();
  wanted.entries_serial = "ro0";
  wanted.repositories = {{"code/repo", "ro1", std::string(40, 'a')}};
  wanted.mounts = {{"deep/data", "ro2"}};
  wanted.outputs = {{"out/report", 1000}};
  start(wanted);
  const auto shell = [&](const std::string& script) {
    auto finished = machine_->shell(script);
    return finished ? finished->out + finished->err : finished.error().message;
  };
  EXPECT_EQ(shell("cat notes.md code/repo/tracked deep/data/fact"), "notes\ntracked\nfact\n");
  EXPECT_EQ(shell("find . | sort | xargs stat -c '%n %U'"),
            ". agent\n./code agent\n./code/repo agent\n./code/repo/directory agent\n"
            "./code/repo/directory/inner agent\n./code/repo/tracked agent\n./deep agent\n./deep/data agent\n"
            "./deep/data/fact agent\n./notes.md agent\n./out agent\n./out/report agent\n");
  // What git's index holds: the image's inode number in the lower 32 bits, its time as mtime and as ctime.
  EXPECT_EQ(shell("perl -e 'my @s = stat(q(code/repo/tracked)); print $s[1] & 0xffffffff, q( ), $s[9], q( ), "
                  "$s[10]'"),
            std::to_string(repository->children["tracked"]->inode_number) + " 1700000000 1700000000");
  EXPECT_EQ(shell("echo more >> code/repo/tracked && echo more >> notes.md && touch out/report/x && cat "
                  "code/repo/tracked"),
            "tracked\nmore\n");
  EXPECT_EQ(shell("mv code/repo/directory code/repo/renamed && cat code/repo/renamed/inner"), "inner\n");
  EXPECT_EQ(shell("rm -r code/repo/renamed && ls code/repo"), "tracked\n");
  EXPECT_THAT(shell("touch deep/data/new"), HasSubstr("Read-only file system"));
  EXPECT_THAT(shell("rm -f deep/data/fact"), HasSubstr("Read-only file system"));
}

TEST_F(GuestWorkspace, WithoutTheFilesystemCapabilityOnlyOutputsAreWritable) {
  const auto repository = folder();
  repository->children["tracked"] = file("tracked\n");
  boot({.disks = {image("repository", repository)}});
  channel::Start wanted = Machine::usual_start();
  wanted.repositories = {{"repo", "ro0", std::string(40, 'a')}};
  wanted.outputs = {{"report", 1000}};
  wanted.capabilities = {"shell"};
  start(wanted);
  const auto finished = machine_->shell(
      "touch new; touch repo/new; echo x >> repo/tracked; rm -f repo/tracked; touch report/new && touch "
      "/tmp/new && echo written");
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_THAT(finished->out, "written\n");
  EXPECT_THAT(finished->err,
              AllOf(HasSubstr("'new': Read-only"), HasSubstr("'repo/new': Read-only"),
                    HasSubstr("repo/tracked: Read-only"), HasSubstr("'repo/tracked': Read-only")));
}

TEST_F(GuestWorkspace, HandsOverOutputsWhileTheCommandStillRuns) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.outputs = {{"report", 1 << 20}};
  start(wanted);
  const int id =
      machine_->exec({"/bin/sh", "-c", "echo the result > report/result.txt; echo ready; sleep 1000"});
  ASSERT_TRUE(machine_->wait_for_output(id, "ready"));
  const auto exported = machine_->hand_over({.repositories = false, .outputs = true}, 0);
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->outputs_error, "");
  EXPECT_EQ(exported->output_files, 2u) << "the folder, and the file";
  EXPECT_THAT(machine_->stream(channel::kOutputsStream),
              AllOf(HasSubstr("report/result.txt"), HasSubstr("the result\n")));
  const auto finished = machine_->finish(id);
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(WTERMSIG(finished->exited.status), SIGKILL);
}

TEST_F(GuestWorkspace, TheDiskIsTheCap) {
  boot({.scratch_mib = 64});
  start();
  const auto finished =
      machine_->shell("head -c 100000000 /dev/zero > big; rm big; echo after > small; cat small");
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->out, "after\n");
  EXPECT_THAT(finished->err, HasSubstr("No space left on device"));
}

// ---------------------------------------------------------------------------------------------------------

class GuestEnds : public Guest {};

TEST_F(GuestEnds, OnShutdown) {
  boot();
  start();
  ASSERT_TRUE(machine_->shell("true"));
  machine_->say(channel::Shutdown{});
  EXPECT_TRUE(machine_->ended(Milliseconds(20'000)));
  EXPECT_THAT(machine_->console(), Not(HasSubstr("firestop-guest")));
}

TEST_F(GuestEnds, WhenTheHostIsGone) {
  boot();
  start();
  machine_->exec({"sleep", "1000"});
  machine_->close_channel();
  EXPECT_TRUE(machine_->ended(Milliseconds(20'000)));
}

TEST_F(GuestEnds, WhenStartCannotBeDone) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.mounts = {{"data", "ro99"}};
  const auto started = machine_->start(wanted);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("the machine has no disk \"ro99\""));
  EXPECT_TRUE(machine_->ended(Milliseconds(20'000)));
  EXPECT_THAT(machine_->console(), HasSubstr("the machine has no disk \"ro99\""));
}

TEST_F(GuestEnds, WhenTheContainerCannotBeMade) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.seccomp = std::string(8, '\x01');  // no program that the kernel takes
  start(wanted);
  machine_->exec({"true"});
  machine_->listen(Milliseconds(20'000));
  EXPECT_THAT(machine_->failure(), HasSubstr("cannot install the system call filter"));
  EXPECT_TRUE(machine_->ended(Milliseconds(20'000)));
}

TEST_F(GuestEnds, WhenACapIsMissing) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.memory_max = 0;
  const auto started = machine_->start(wanted);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("a cap is missing"));
}

TEST_F(GuestEnds, WhenTheAccountWouldBeRoot) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.accounts[0].uid = 0;
  start(wanted);
  machine_->exec({"true"});
  machine_->listen(Milliseconds(20'000));
  EXPECT_THAT(machine_->failure(), HasSubstr("cannot be root"));
}

// The opposite of everything above, for the attack tests: root, every capability, PID 1's own namespaces.
TEST_F(GuestEnds, TestRootIsOutside) {
  boot();
  channel::Start wanted = Machine::usual_start();
  wanted.test_root = true;
  start(wanted);
  const auto finished = machine_->shell(
      "id -u; grep CapEff /proc/self/status; grep Seccomp: /proc/self/status; ls /sys/class/virtio-ports | "
      "wc -l; sleep 1000 & :");
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(finished->out, "0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n2\n");
  EXPECT_EQ(finished->exited.left_behind, 1u);
  const auto again = machine_->shell("pgrep -r R,S,D sleep; echo none");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->out, "none\n");
}

}  // namespace
}  // namespace firestop::test
