// A command in the container of a real machine: what it sees, what it cannot do, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <memory>
#include <string>

#include "base/file.h"
#include "integration/guest/machine.h"

namespace firestop::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string zeros(size_t count) {
  std::string text;
  text.resize(count);
  return text;
}

// One machine for all tests of a suite: exec after exec, each in a fresh container.

class GuestExec : public ::testing::Test {
 protected:
  static inline std::unique_ptr<Machine> shared_;
  static inline std::string shared_directory_;

  static void SetUpTestSuite() {
    char directory[] = "/tmp/firestop-guest-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    shared_directory_ = directory;
    const auto files = find_boot_files(shared_directory_);
    if (!files) return;
    auto machine = Machine::boot(*files, {}, shared_directory_);
    ASSERT_TRUE(machine) << machine.error().message;
    channel::Start start = Machine::usual_start();
    start.environment = {"GREETING=hello world", "BYTES=\xff\xfe"};
    start.accounts[0].groups = {2000};
    start.groups = {{"reviewers", 2000}};
    const auto started = (*machine)->start(start);
    ASSERT_TRUE(started) << started.error().message;
    shared_ = std::move(*machine);
  }
  static void TearDownTestSuite() {
    shared_.reset();
    EXPECT_TRUE(remove_tree(shared_directory_));
  }
  void SetUp() override {
    if (!shared_) GTEST_SKIP() << "no image agent-base: firestop image build";
  }
  void TearDown() override {}

  static Finished done(Result<Finished> finished) {
    if (!finished) {
      ADD_FAILURE() << finished.error().message;
      return {};
    }
    return *finished;
  }
  static Finished shell(const std::string& script, const ExecOptions& options = {}) {
    return done(shared_->shell(script, options));
  }
  static int exit_code(const Finished& finished) {
    return WIFEXITED(finished.exited.status) ? WEXITSTATUS(finished.exited.status) : -1;
  }
  static int killed_by(const Finished& finished) {
    return WIFSIGNALED(finished.exited.status) ? WTERMSIG(finished.exited.status) : 0;
  }
};

TEST_F(GuestExec, RunsOnAnotherKernelAsTheAccount) {
  EXPECT_THAT(shell("uname -sr").out, StartsWith("Linux 6."));
  EXPECT_EQ(shell("id").out, "uid=1000(agent) gid=1000(agent) groups=1000(agent),2000(reviewers)\n");
  EXPECT_EQ(shell("pwd; hostname").out, "/workspace\nsandbox\n");
  EXPECT_THAT(shell("date +%Y-%m-%d").out, StartsWith("2027-01-15"));
}

TEST_F(GuestExec, TheEnvironmentIsAsDeclaredAndFourMore) {
  const Finished finished = done(shared_->run({"env", "-0"}));
  std::string expected;
  for (const char* item : {"GREETING=hello world", "BYTES=\xff\xfe", "PATH=/usr/local/bin:/usr/bin:/bin",
                           "HOME=/home/agent", "USER=agent", "TERM=dumb"})
    expected.append(item).push_back('\0');
  EXPECT_EQ(finished.out, expected);
}

TEST_F(GuestExec, HasNoPrivilegesAndCannotGetAny) {
  const std::string status = shell("cat /proc/self/status").out;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_THAT(status, HasSubstr(std::string(set) + ":\t0000000000000000\n"));
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  EXPECT_NE(exit_code(shell("su -c id")), 0);
  const struct {
    const char* script;
    const char* why;
  } kRefused[] = {
      {"unshare -U true", "user namespaces give capabilities"},
      {"unshare -m true", "mount namespaces"},
      {"mount -t tmpfs none /tmp", "mounts"},
      {"umount /proc/kcore", "masks"},
      {"echo 1 > /proc/sys/kernel/sysrq", "kernel settings"},
      {"echo b > /proc/sysrq-trigger && exit 1; test -s /proc/sysrq-trigger", "rebooting the machine"},
      {"cat /proc/kcore | grep -q .", "the kernel's memory"},
      {"ls /sys/firmware | grep -q .", "the firmware"},
      {"ls /proc/1/fd", "the reaper's descriptors"},
      {"readlink /proc/1/exe", "the reaper's program"},
      {"cat /proc/1/environ", "the reaper's memory"},
      {"mknod /tmp/null c 1 3", "devices"},
      {"touch /etc/passwd", "the accounts"},
      {"touch /workspace/../new", "the root directory"},
      {"echo x > /run/firestop/capabilities.json", "what is granted"},
      {"kill -9 1; kill -0 1 && exit 1; exit 1", "the reaper lives on: pid 1 ignores its own namespace"},
      {"hostname other", "the host name"},
      {"ls -d /mnt/image /mnt/scratch 2>/dev/null | grep -q .", "PID 1's own mounts"},
      {"cat /dev/vda || cat /dev/vport0p1", "the machine's devices"},
  };
  for (const auto& row : kRefused)
    EXPECT_NE(exit_code(shell(row.script)), 0) << row.script << ": " << row.why;
}

TEST_F(GuestExec, SeesOnlyItself) {
  EXPECT_EQ(shell("ls /sys/class/net; tail -n +3 /proc/net/dev | cut -d: -f1").out, "lo\n    lo\n");
  EXPECT_EQ(shell("echo /proc/[0-9]*").out, "/proc/1 /proc/2\n");
  EXPECT_EQ(shell("ls /dev").out,
            "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n");
  EXPECT_EQ(shell("cat /proc/self/cgroup").out, "0::/\n");
  EXPECT_EQ(shell("cat /run/firestop/capabilities.json").out,
            "{\"capabilities\":[\"shell\",\"filesystem\"]}\n");
  EXPECT_EQ(shell("cat /etc/resolv.conf").out, "");
  EXPECT_EQ(shell("ls /proc/self/fd").out, "0\n1\n2\n3\n") << "3 is ls's own";
  EXPECT_THAT(shell("ulimit -n; ulimit -c; umask").out, HasSubstr("1024\n0\n0022\n"));
  EXPECT_EQ(shell("cat /proc/self/oom_score_adj").out, "0\n");
}

TEST_F(GuestExec, LoopbackWorks) {
  EXPECT_EQ(
      exit_code(shell(
          "perl -MIO::Socket::INET -e '"
          "my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or exit 1;"
          "my $c = IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $s->sockport) or exit 2'")),
      0);
}

TEST_F(GuestExec, EndsAsTheCommandEnds) {
  EXPECT_EQ(exit_code(shell("exit 0")), 0);
  EXPECT_EQ(exit_code(shell("exit 7")), 7);
  EXPECT_EQ(exit_code(shell("exit 255")), 255);
  EXPECT_EQ(killed_by(shell("kill -TERM $$")), SIGTERM);
  EXPECT_EQ(killed_by(shell("kill -SEGV $$")), SIGSEGV);
}

TEST_F(GuestExec, SaysWhyACommandCannotStart) {
  const Finished missing = done(shared_->run({"no-such-program"}));
  EXPECT_EQ(exit_code(missing), 127);
  EXPECT_EQ(missing.exited.cannot_start, "no-such-program: not found in PATH");
  const Finished plain = done(shared_->run({"/etc/passwd"}));
  EXPECT_EQ(exit_code(plain), 126);
  EXPECT_EQ(plain.exited.cannot_start, "/etc/passwd: Permission denied");
  shell("printf '#!/no/interpreter\\n' > /workspace/script; chmod +x /workspace/script");
  const Finished script = done(shared_->run({"./script"}));
  EXPECT_EQ(exit_code(script), 127);
  EXPECT_EQ(script.exited.cannot_start, "./script: the interpreter that it names does not exist");
  shell("printf 'echo from a script without a first line\\n' > /workspace/script");
  EXPECT_EQ(done(shared_->run({"./script"})).out, "from a script without a first line\n");
}

TEST_F(GuestExec, ArgumentsAreBytes) {
  EXPECT_EQ(done(shared_->run({"printf", "%s", "\xff\xc3\x28 'quoted' $HOME\n"})).out,
            "\xff\xc3\x28 'quoted' $HOME\n");
  EXPECT_EQ(done(shared_->run({"printf", "%s", std::string(20'000, 'a')})).out, std::string(20'000, 'a'));
}

TEST_F(GuestExec, InputAndOutputAreBytes) {
  std::string bytes;
  for (int i = 0; i < 3'000'000; ++i) bytes.push_back(static_cast<char>(i * i >> 7));
  const int id = shared_->exec({"cat"});
  shared_->input(id, bytes);
  shared_->end_input(id);
  const Finished finished = done(shared_->finish(id));
  EXPECT_TRUE(finished.out == bytes) << finished.out.size() << " bytes came back of " << bytes.size();
}

TEST_F(GuestExec, InputThatNobodyReadsDoesNotHang) {
  const int id = shared_->exec({"true"});
  shared_->input(id, std::string(3'000'000, 'x'));
  shared_->end_input(id);
  EXPECT_EQ(exit_code(done(shared_->finish(id))), 0);
}

TEST_F(GuestExec, LargeOutputArrivesWhole) {
  const Finished finished = shell("head -c 20000000 /dev/zero; printf 'no newline' >&2");
  EXPECT_TRUE(finished.out == zeros(20'000'000)) << finished.out.size();
  EXPECT_EQ(finished.err, "no newline");
}

TEST_F(GuestExec, ASlowReaderGetsEverythingAndStopsOnlyItself) {
  const int id =
      shared_->exec({"/bin/sh", "-c", "head -c 5000000 /dev/zero; echo done >&2"}, {.read_output = false});
  shared_->end_input(id);
  shared_->listen(Milliseconds(1500));
  EXPECT_EQ(shared_->output(id).size(), channel::kWindow) << "one window was granted";
  shared_->read_all(id);
  const Finished finished = done(shared_->finish(id));
  EXPECT_EQ(finished.out.size(), 5'000'000u);
  EXPECT_EQ(finished.err, "done\n");
}

TEST_F(GuestExec, OutputOfACommandThatIsGoneStillArrives) {
  const int id = shared_->exec({"/bin/sh", "-c", "head -c 60000 /dev/zero"}, {.read_output = false});
  shared_->end_input(id);
  EXPECT_EQ(done(shared_->finish(id)).out.size(), 60'000u);
}

TEST_F(GuestExec, AGrandchildThatHoldsStdoutHoldsUpNothing) {
  const Finished finished = shell("sleep 1000 & (setsid sleep 1000 &); echo said");
  EXPECT_EQ(finished.out, "said\n");
  EXPECT_EQ(exit_code(finished), 0);
  EXPECT_EQ(finished.exited.left_behind, 2u);
  EXPECT_EQ(shell("echo /proc/[0-9]*").exited.left_behind, 0u) << "and nothing of it is there afterwards";
}

TEST_F(GuestExec, OrphansAreReaped) {
  const Finished finished = shell(
      "i=0; while [ $i -lt 20 ]; do (sh -c true &); i=$((i+1)); done; sleep 1; grep -l '^State:.Z' "
      "/proc/[0-9]*/status; echo end");
  EXPECT_EQ(finished.out, "end\n");
}

TEST_F(GuestExec, SignalsReachTheWholeProcessGroup) {
  const int id =
      shared_->exec({"/bin/sh", "-c", "trap 'echo got it; exit 3' TERM; sleep 100 & echo ready; wait"});
  ASSERT_TRUE(shared_->wait_for_output(id, "ready"));
  shared_->signal(id, SIGTERM);
  const Finished finished = done(shared_->finish(id));
  EXPECT_EQ(finished.out, "ready\ngot it\n");
  EXPECT_EQ(exit_code(finished), 3);

  const int stubborn = shared_->exec({"/bin/sh", "-c", "trap '' TERM INT; echo ready; sleep 100; sleep 100"});
  ASSERT_TRUE(shared_->wait_for_output(stubborn, "ready"));
  shared_->signal(stubborn, SIGTERM);
  shared_->signal(stubborn, SIGKILL);
  EXPECT_EQ(killed_by(done(shared_->finish(stubborn))), SIGKILL);
}

TEST_F(GuestExec, SignalsForNobodyAreIgnored) {
  shared_->signal(4000, SIGKILL);
  shared_->resize(4000, 1, 1);
  EXPECT_EQ(shell("echo fine").out, "fine\n");
}

TEST_F(GuestExec, ATerminalIsOne) {
  const Finished finished =
      shell("tty; stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2 && echo all",
            {.terminal = true, .term = "xterm-256color", .rows = 33, .columns = 99});
  EXPECT_EQ(finished.out, "/dev/pts/0\r\n33 99\r\nxterm-256color\r\nall\r\n");
  EXPECT_EQ(finished.err, "");
}

TEST_F(GuestExec, ATerminalIsResized) {
  const int id = shared_->exec(
      {"/bin/sh", "-c", "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.1; done"},
      {.terminal = true});
  ASSERT_TRUE(shared_->wait_for_output(id, "ready"));
  shared_->resize(id, 11, 22);
  const Finished finished = done(shared_->finish(id));
  EXPECT_EQ(finished.out, "ready\r\n11 22\r\n");
  EXPECT_EQ(exit_code(finished), 5);
}

TEST_F(GuestExec, KeysOfATerminalAreSignalsAndEndOfFile) {
  // Not a shell: dash catches SIGINT, and loses one that comes between its fork and its exec.
  const std::vector<std::string> sleeper = {"perl", "-e", "$| = 1; print qq(ready\n); sleep 100"};
  const int interrupted = shared_->exec(sleeper, {.terminal = true});
  ASSERT_TRUE(shared_->wait_for_output(interrupted, "ready"));
  shared_->input(interrupted, "\x03");
  EXPECT_EQ(killed_by(done(shared_->finish(interrupted))), SIGINT);

  const int asked = shared_->exec(sleeper, {.terminal = true});
  ASSERT_TRUE(shared_->wait_for_output(asked, "ready"));
  shared_->signal(asked, SIGINT);
  EXPECT_EQ(killed_by(done(shared_->finish(asked))), SIGINT);

  const int reader = shared_->exec({"cat"}, {.terminal = true});
  shared_->input(reader, "line\n");
  shared_->end_input(reader);
  const Finished finished = done(shared_->finish(reader));
  EXPECT_EQ(finished.out, "line\r\nline\r\n") << "the echo, and cat";
  EXPECT_EQ(exit_code(finished), 0);
}

TEST_F(GuestExec, AllOfATerminalsOutputArrives) {
  const Finished finished = shell("seq 1 20000", {.terminal = true});
  EXPECT_THAT(finished.out, ::testing::EndsWith("19999\r\n20000\r\n"));
  EXPECT_EQ(finished.out.size(), 128'894u);
}

TEST_F(GuestExec, MemoryIsCappedAndItsEndIsTold) {
  const Finished hog = done(shared_->run({"perl", "-e", "my @a; push @a, 'x' x 1000000 while 1"}));
  EXPECT_EQ(killed_by(hog), SIGKILL);
  EXPECT_TRUE(hog.exited.out_of_memory);
  EXPECT_EQ(hog.exited.oom_kills, 1u);
  const Finished other = shell("perl -e 'my @a; push @a, q(x) x 1000000 while 1'; echo $?");
  EXPECT_EQ(other.out, "137\n");
  EXPECT_FALSE(other.exited.out_of_memory) << "a child was killed, the command was not";
  EXPECT_EQ(other.exited.oom_kills, 1u);
  const int killed = shared_->exec({"sleep", "100"});
  shared_->listen(Milliseconds(300));
  shared_->signal(killed, SIGKILL);
  EXPECT_FALSE(done(shared_->finish(killed)).exited.out_of_memory);
}

TEST_F(GuestExec, SharedMemoryIsCapped) {
  EXPECT_NE(exit_code(shell("head -c 250000000 /dev/zero > /dev/shm/file")), 0);
  EXPECT_EQ(shell("ls /dev/shm").out, "") << "and a new container has a new one";
}

TEST_F(GuestExec, ProcessesAreCapped) {
  const Finished bomb = done(
      shared_->run({"perl", "-e",
                    "my $n = 1; while (defined(my $p = fork())) { if (!$p) { sleep 1000 } $n++ } print $n"}));
  EXPECT_EQ(bomb.out, "100");
  EXPECT_EQ(bomb.exited.left_behind, 99u);
  EXPECT_EQ(shell("echo alive").out, "alive\n");
}

TEST_F(GuestExec, TheRootIsWritableWhereAnAccountMayWrite) {
  EXPECT_EQ(exit_code(shell("touch /tmp/file ~/file /workspace/file /var/tmp/file")), 0);
  EXPECT_EQ(shell("stat -c '%U %a' ~ /tmp /workspace").out, "agent 755\nroot 1777\nagent 755\n");
}

TEST_F(GuestExec, ToolsOfTheTradeWork) {
  EXPECT_EQ(exit_code(shell("cd /workspace && git init -q repo && cd repo && echo hi > f && git add f && "
                            "git -c user.name=a -c user.email=b commit -qm c && mkdir d && git mv f d/ && "
                            "git mv d e && test -f e/f")),
            0);
  EXPECT_EQ(shell("python3 -c 'import threading, subprocess; t = threading.Thread(target=print, args=(1,)); "
                  "t.start(); t.join(); print(subprocess.run([\"true\"]).returncode)'")
                .out,
            "1\n0\n");
}

}  // namespace
}  // namespace firestop::test
