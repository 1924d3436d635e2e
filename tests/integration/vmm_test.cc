// Machines as they are really started, with a guest of their own (vmm/test_init.cc) instead of Firestop's.
// Needs a kernel and its modules: those of the image "agent-base", or FIRESTOP_TEST_BOOT=DIR with the files
// `vmlinux` and `initramfs`.
#include "vmm/vmm.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/frame.h"
#include "image/image.h"
#include "image/initramfs.h"

namespace firestop::vmm {
namespace {

using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Vmm : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const char* given = std::getenv("FIRESTOP_TEST_BOOT")) {
      kernel_ = std::string(given) + "/vmlinux";
      base_initramfs_ = std::string(given) + "/initramfs";
    } else if (const auto found = image::find("agent-base")) {
      kernel_ = found->kernel;
      base_initramfs_ = found->initramfs;
    }
    char directory[] = "/tmp/firestop-vmm-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    directory_ = directory;
    ::setenv("XDG_CACHE_HOME", (directory_ + "/cache").c_str(), 1);
  }
  static void TearDownTestSuite() { EXPECT_TRUE(remove_tree(directory_)); }

  void SetUp() override {
    if (kernel_.empty()) GTEST_SKIP() << "no image agent-base: firestop image build";
    ::unsetenv("FIRESTOP_BOOT_LIMIT_MS");
  }

  static std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // A disk whose first 16 bytes are `head`.
  static std::string disk(const std::string& name, std::string head, size_t size) {
    head.resize(size, '.');
    return file(name, head);
  }

  // The image's initramfs with our init over it; a later archive's files replace an earlier one's.
  static Machine machine(const std::string& mode = "") {
    const auto base = read_file(base_initramfs_);
    const auto init = read_file(FIRESTOP_TEST_INIT);
    EXPECT_TRUE(base && init);
    image::CpioWriter over;
    over.add_file("init", 0755, *init);
    over.add_file("mode", 0644, mode);
    Machine m;
    m.kernel = kernel_;
    m.initramfs = file("initramfs-" + mode, *base + over.finish());
    m.image_digest = sha256_hex("vmm_test " + mode);
    m.root = {"root", disk("root", "ROOT-ROOT-ROOT-R", 65536), true};
    m.scratch = {"scratch", disk("scratch-" + std::to_string(++number_), "EMPTY-EMPTY-EMPT", 1 << 20), false};
    m.memory = 128u << 20;
    m.accelerator = Accelerator::kTcg;
    return m;
  }

  Result<Launched> start(const Machine& m) {
    return launch(m, [this](const std::string& notice) { notices_ += notice + "\n"; });
  }

  static inline std::string kernel_, base_initramfs_, directory_;
  static inline int number_ = 0;
  std::string notices_;
};

// One line to the guest, one line back; empty if none comes.
std::string ask(Vm& vm, const std::string& line, seconds limit = seconds(30)) {
  const std::string out = line + "\n";
  if (::send(vm.channel_fd(), out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    return {};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string in;
  while (std::chrono::steady_clock::now() < deadline && !in.ends_with('\n')) {
    vm.drain_console();
    pollfd wait{vm.channel_fd(), POLLIN, 0};
    if (::poll(&wait, 1, 20) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::recv(vm.channel_fd(), buffer, sizeof buffer, 0);
    if (n == 0) break;
    if (n > 0) in.append(buffer, static_cast<size_t>(n));
  }
  if (!in.empty() && in.back() == '\n') in.pop_back();
  return in;
}

bool readable_within(int fd, int ms) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, ms) == 1;
}

std::string steps_of(const Vm& vm) {
  std::string out;
  for (const auto& step : vm.steps()) out += step.step + "=" + std::to_string(step.took.count()) + "us ";
  return out;
}

TEST_F(Vmm, ClonesHaveTheirOwnDisksAndKnowNothingOfEachOther) {
  std::set<std::string> keys;
  for (int i = 0; i < 3; ++i) {
    Machine m = machine();
    const size_t size = 65536u << i;  // other sizes than the template's, and than each other's
    const std::string head = "DISK-" + std::to_string(i) + "-AAAAAAAA=";
    m.disks = {{"ro0", disk("ro0-" + std::to_string(i), head, size), true}};
    if (i == 2) m.disks.push_back({"ro1", disk("ro1", "SECOND-SECOND-SE", 4096), true});
    auto launched = start(m);
    ASSERT_TRUE(launched) << launched.error().to_string();
    Vm& vm = launched->vm;
    EXPECT_TRUE(vm.from_template()) << notices_;
    keys.insert(vm.template_key());
    codec::FrameDecoder decoder;
    decoder.feed(launched->ready);
    const auto frame = decoder.next();
    ASSERT_TRUE(frame && *frame);
    EXPECT_THAT((*frame)->payload, HasSubstr("ready"));
    EXPECT_EQ(ask(vm, "hello"), "hello");
    EXPECT_EQ(ask(vm, "disk root"), "root 65536 ROOT-ROOT-ROOT-R");
    EXPECT_EQ(ask(vm, "disk ro0"), "ro0 " + std::to_string(size) + " " + head);
    EXPECT_EQ(ask(vm, "disk ro1"), i == 2 ? "ro1 4096 SECOND-SECOND-SE" : "ro1 4096 ");
    EXPECT_EQ(ask(vm, "disk scratch"), "scratch 1048576 EMPTY-EMPTY-EMPT");
    EXPECT_EQ(ask(vm, "write scratch MINE-" + std::to_string(i)), "written");
    EXPECT_THAT(ask(vm, "write ro0 CHANGED"), HasSubstr("cannot"));
    vm.kill();
    EXPECT_EQ(read_file(m.scratch.path)->substr(0, 6), "MINE-" + std::to_string(i));
    EXPECT_EQ(read_file(m.disks[0].path)->substr(0, 6), "DISK-" + std::to_string(i));
    std::cout << "clone " << i << ": " << steps_of(vm) << "\n";
  }
  EXPECT_EQ(keys.size(), 1u);
  // Made once, and said so.
  EXPECT_EQ(notices_.find("first start"), notices_.rfind("first start"));
  const auto templates = list_templates();
  ASSERT_TRUE(templates);
  ASSERT_EQ(templates->size(), 1u);
  EXPECT_EQ(templates->front().memory, 128u << 20);
}

TEST_F(Vmm, TheGuestsClockGoesOnFromWhereTheTemplateStopped) {
  auto first = start(machine());
  ASSERT_TRUE(first) << first.error().to_string();
  const long one = std::stol(ask(first->vm, "clock"));
  first->vm.kill();
  std::this_thread::sleep_for(seconds(2));
  auto second = start(machine());
  ASSERT_TRUE(second) << second.error().to_string();
  const auto begin = std::chrono::steady_clock::now();
  const long two = std::stol(ask(second->vm, "clock"));
  EXPECT_LT(std::abs(two - one), 1500) << "the time between the clones is not the guest's";
  std::this_thread::sleep_for(seconds(2));
  const long three = std::stol(ask(second->vm, "clock"));
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  EXPECT_NEAR(static_cast<double>(three - two), static_cast<double>(passed.count()), 500);
}

TEST_F(Vmm, EightStartAtOnceAndEightRun) {
  // A size of its own: all eight come to a template that is not there yet.
  std::vector<Machine> machines;
  for (int i = 0; i < 8; ++i) {
    machines.push_back(machine());
    machines.back().memory = 96u << 20;
    machines.back().disks = {
        {"ro0", disk("eight-" + std::to_string(i), "EIGHT-" + std::to_string(i) + "--------=", 8192), true}};
  }
  std::vector<std::string> answers(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      auto launched = launch(machines[i], [](const std::string&) {});
      answers[i] = launched ? ask(launched->vm, "disk ro0", seconds(60)) : launched.error().to_string();
    });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(answers[i], "ro0 8192 EIGHT-" + std::to_string(i) + "--------=");
}

TEST_F(Vmm, TheIoRateIsKeptByQemu) {
  Machine m = machine();
  m.io_rate = 1u << 20;
  m.disks = {{"ro0", disk("four", "FOUR-MIB-OF-DATA", 4u << 20), true}};
  auto launched = start(m);
  ASSERT_TRUE(launched) << launched.error().to_string();
  EXPECT_TRUE(launched->vm.from_template()) << notices_;
  const auto time_reading = [](Vm& vm) {
    const std::string read = ask(vm, "read ro0", seconds(60));
    EXPECT_TRUE(read.starts_with("4194304 ")) << read;
    return read.size() > 8 ? std::stol(read.substr(8)) : 0;
  };
  const long limited = time_reading(launched->vm);
  EXPECT_GT(limited, 2000) << "4 MiB at 1 MiB/s, less what a burst allows";
  m.io_rate.reset();
  auto unlimited = start(m);
  ASSERT_TRUE(unlimited) << unlimited.error().to_string();
  EXPECT_LT(time_reading(unlimited->vm), limited);
  EXPECT_EQ(ask(launched->vm, "write scratch LIMITED"), "written");
}

TEST_F(Vmm, ManyProcessorsStartFromATemplateToo) {
  Machine m = machine();
  m.cpus = 2;
  auto launched = start(m);
  ASSERT_TRUE(launched) << launched.error().to_string();
  EXPECT_TRUE(launched->vm.from_template()) << notices_;
  EXPECT_EQ(ask(launched->vm, "hello"), "hello");
}

TEST_F(Vmm, AGuestThatNeverSaysReadyIsShownWithItsConsole) {
  ::setenv("FIRESTOP_BOOT_LIMIT_MS", "20000", 1);
  const auto launched = start(machine("silent"));
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, "vmm.no_boot");
  EXPECT_THAT(launched.error().message, HasSubstr("within 20000 ms"));
  EXPECT_THAT(launched.error().message, HasSubstr("test init: saying nothing ?[31mon purpose"));
  EXPECT_THAT(launched.error().message, Not(HasSubstr("\033")))
      << "the guest does not paint the host's terminal";
}

TEST_F(Vmm, AGuestThatPanicsIsShownWithItsConsole) {
  const auto launched = start(machine("ends"));
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, "vmm.no_boot");
  EXPECT_THAT(launched.error().message, HasSubstr("QEMU ended before the guest was up"));
  EXPECT_THAT(launched.error().message, HasSubstr("Kernel panic"));
}

TEST_F(Vmm, AGuestThatCannotGoOnSaysWhy) {
  const auto launched = start(machine("failed"));
  ASSERT_FALSE(launched);
  EXPECT_THAT(launched.error().message, HasSubstr("the guest cannot go on: root: no such disk"));
}

TEST_F(Vmm, AGuestThatSaysNoFrameIsRefused) {
  const auto launched = start(machine("garbage"));
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, "vmm.no_boot");
  EXPECT_THAT(launched.error().message, HasSubstr("no frame"));
}

TEST_F(Vmm, AnUnusableDiskIsRefusedBeforeAnythingStarts) {
  Machine m = machine();
  m.disks = {{"ro0", disk("odd", "ODD", 1000), true}};
  const auto launched = start(m);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, "vmm.bad_machine");
  EXPECT_THAT(launched.error().message, HasSubstr("1000 bytes"));
  EXPECT_THAT(notices_, IsEmpty()) << "no template was made for it";
  m.disks[0].path = directory_ + "/missing";
  EXPECT_EQ(start(m).error().code, "file.open");
  m.disks[0].path = directory_;
  EXPECT_EQ(start(m).error().code, "vmm.bad_machine") << "a directory";
}

TEST_F(Vmm, AQemuThatIsKilledIsSeenAtOnce) {
  auto launched = start(machine());
  ASSERT_TRUE(launched) << launched.error().to_string();
  Vm& vm = launched->vm;
  EXPECT_FALSE(readable_within(vm.exit_fd(), 0));
  ASSERT_EQ(::kill(vm.pid(), SIGKILL), 0);
  EXPECT_TRUE(readable_within(vm.exit_fd(), 10000));
  const int status = vm.kill();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(vm.exit_fd(), -1);
}

TEST_F(Vmm, QemuHasTheNamedDescriptorsAndNoSecretsOfOurs) {
  ::setenv("FIRESTOP_TEST_SECRET", "hunter2hunter2", 1);
  const UniqueFd ours(::open("/etc/passwd", O_RDONLY));  // inheritable: not close-on-exec
  auto launched = start(machine());
  ::unsetenv("FIRESTOP_TEST_SECRET");
  ASSERT_TRUE(launched) << launched.error().to_string();
  const std::string proc = "/proc/" + std::to_string(launched->vm.pid());
  EXPECT_THAT(*read_file(proc + "/environ"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(*read_file(proc + "/limits"), HasSubstr("Max core file size        0                    0"));
  for (int fd = 0; fd < 1024; ++fd) {
    char target[4096] = {};
    if (::readlink((proc + "/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1) < 0) continue;
    EXPECT_THAT(target, Not(HasSubstr("/etc/passwd")));
    EXPECT_THAT(target, Not(HasSubstr("/templates/"))) << "a template must be out of QEMU's reach";
  }
}

TEST_F(Vmm, AGuestThatFloodsItsConsoleHarmsOnlyItself) {
  auto launched = start(machine());
  ASSERT_TRUE(launched) << launched.error().to_string();
  Vm& vm = launched->vm;
  EXPECT_EQ(ask(vm, "spam", seconds(120)), "spammed");
  vm.drain_console();
  EXPECT_LE(vm.console().size(), kConsoleTail);
  EXPECT_GT(vm.console().size(), kConsoleTail / 2);
  EXPECT_EQ(ask(vm, "hello"), "hello");
}

TEST_F(Vmm, AFloodThatNobodyReadsYetIsHeldByTheGuest) {
  auto launched = start(machine());
  ASSERT_TRUE(launched) << launched.error().to_string();
  Vm& vm = launched->vm;
  ASSERT_EQ(::send(vm.channel_fd(), "spam\n", 5, MSG_NOSIGNAL), 5);
  EXPECT_FALSE(readable_within(vm.channel_fd(), 4000)) << "more than a pipe's worth was taken, or lost";
  // What answers "hello" may be in the same breath.
  EXPECT_THAT(ask(vm, "hello", seconds(120)), ::testing::StartsWith("spammed"));
}

TEST_F(Vmm, QemuDiesWithItsParent) {
  Machine m = machine();
  {
    ASSERT_TRUE(start(m));
  }  // the template is there
  int report[2];
  ASSERT_EQ(::pipe2(report, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto launched = launch(m, nullptr);
    const pid_t qemu = launched ? launched->vm.pid() : -1;
    (void)!::write(report[1], &qemu, sizeof qemu);
    for (;;) ::pause();
  }
  pid_t qemu = -1;
  ASSERT_EQ(::read(report[0], &qemu, sizeof qemu), static_cast<ssize_t>(sizeof qemu));
  ASSERT_GT(qemu, 0);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, qemu, 0)));
  ASSERT_TRUE(pidfd.valid());
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(readable_within(pidfd.get(), 10000));
  ::close(report[0]);
  ::close(report[1]);
}

TEST_F(Vmm, ADamagedTemplateIsRemovedAndTheGuestBootsCold) {
  struct Case {
    const char* file;
    const char* reason;
    std::function<void(const std::string&)> damage;
  };
  const auto truncate = [](off_t size) {
    return [size](const std::string& path) { ASSERT_EQ(::truncate(path.c_str(), size), 0); };
  };
  const auto overwrite = [](const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY));
    ASSERT_EQ(::pwrite(fd.get(), "XXXXXXXX", 8, 1000), 8);
  };
  const std::vector<Case> cases = {
      {"state", "state has other bytes", overwrite},
      {"state", "state has other bytes", truncate(100)},
      {"memory", "another size", truncate(4096)},
      {"memory", "lacks data",
       [&](const std::string& path) {
         truncate(4096)(path);  // a hole where the guest was
         truncate(128 << 20)(path);
       }},
      {"meta.json", "meta.json is unreadable", truncate(10)},
      {"ready", "ready is missing", [](const std::string& path) { ::unlink(path.c_str()); }},
  };
  const Machine m = machine();
  std::string key;
  {
    auto launched = start(m);
    ASSERT_TRUE(launched) << launched.error().to_string();
    key = launched->vm.template_key();
  }
  const std::string directory = cache_directory() + "/templates/" + key, good = directory_ + "/good";
  ASSERT_EQ(::rename(directory.c_str(), good.c_str()), 0);
  for (const auto& c : cases) {
    ASSERT_TRUE(make_directories(directory));
    for (const std::string name : {"memory", "state", "ready", "meta.json"})
      ASSERT_TRUE(copy_sparse(good + "/" + name, directory + "/" + name));
    c.damage(directory + "/" + c.file);
    notices_.clear();
    auto launched = start(m);
    ASSERT_TRUE(launched) << launched.error().to_string();
    EXPECT_FALSE(launched->vm.from_template());
    EXPECT_THAT(notices_, HasSubstr("booting without a snapshot"));
    EXPECT_THAT(notices_, HasSubstr(c.reason));
    EXPECT_EQ(ask(launched->vm, "hello"), "hello");
    EXPECT_FALSE(exists(directory));
    std::cout << "cold: " << steps_of(launched->vm) << "\n";
  }
}

TEST_F(Vmm, AStateThatQemuRefusesLeadsToAColdBoot) {
  // The digest fits, so only QEMU can tell.
  Machine m = machine();
  std::string key;
  {
    auto launched = start(m);
    ASSERT_TRUE(launched) << launched.error().to_string();
    key = launched->vm.template_key();
  }
  const std::string directory = cache_directory() + "/templates/" + key;
  std::string state = *read_file(directory + "/state");
  std::fill(state.begin() + 200, state.end(), '\x55');
  std::string meta = *read_file(directory + "/meta.json");
  const std::string old = sha256_hex(*read_file(directory + "/state"));
  ASSERT_NE(meta.find(old), std::string::npos);
  meta.replace(meta.find(old), old.size(), sha256_hex(state));
  ASSERT_TRUE(write_file_atomic(directory + "/state", state));
  ASSERT_TRUE(write_file_atomic(directory + "/meta.json", meta));
  notices_.clear();
  auto launched = start(m);
  ASSERT_TRUE(launched) << launched.error().to_string();
  EXPECT_FALSE(launched->vm.from_template());
  EXPECT_THAT(notices_, HasSubstr("booting without a snapshot"));
  EXPECT_EQ(ask(launched->vm, "hello"), "hello");
  EXPECT_FALSE(exists(directory));
}

TEST_F(Vmm, PruningLeavesRunningClonesAlone) {
  auto launched = start(machine());
  ASSERT_TRUE(launched) << launched.error().to_string();
  ASSERT_TRUE(make_directories(cache_directory() + "/templates/" + std::string(32, 'a') + ".new"));
  file("cache/firestop/templates/" + std::string(32, 'a') + ".lock", "");
  const auto freed = prune_templates(true);
  ASSERT_TRUE(freed) << freed.error().to_string();
  EXPECT_GT(*freed, 8u << 20);
  EXPECT_THAT(*list_templates(), IsEmpty());
  EXPECT_FALSE(exists(cache_directory() + "/templates/" + std::string(32, 'a') + ".new"));
  EXPECT_EQ(ask(launched->vm, "hello"), "hello");
}

TEST_F(Vmm, TheProbeSaysWhichAcceleratorWorksAndWhyNot) {
  const Machine m = machine();
  const auto probe = probe_accelerator(m.kernel, m.initramfs, m.root.path);
  ASSERT_TRUE(probe) << probe.error().to_string();
  if (probe->accelerator == Accelerator::kKvm)
    EXPECT_THAT(probe->why, IsEmpty());
  else
    EXPECT_THAT(probe->why, AnyOf(HasSubstr("/dev/kvm"), HasSubstr("KVM")));
  std::cout << "probe: " << probe->why << "\n";
  const auto again = probe_accelerator(m.kernel, m.initramfs, m.root.path);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->why, probe->why);
}

}  // namespace
}  // namespace firestop::vmm
