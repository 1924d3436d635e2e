#include "egress/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "egress/frames.h"
#include "egress/supervise.h"

namespace firestop::egress {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

ProcessConfig some_config() {
  ProcessConfig config;
  manifest::EgressRule rule;
  rule.host = "api.example.com";
  rule.ports = {443};
  rule.protocol = "http";
  rule.paths = {"/v1/**"};
  config.guard.rules = {rule};
  config.connections = 3;
  return config;
}

bool readable(int fd, int ms) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, ms) == 1;
}

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto seam = make_seam();
    ASSERT_TRUE(seam) << seam.error().to_string();
    seam_ = std::move(*seam);
    auto started =
        EgressProcess::start(FIRESTOP_EGRESS_PROCESS, some_config(), seam_, {}, milliseconds(30000));
    ASSERT_TRUE(started) << started.error().to_string();
    process_ = std::make_unique<EgressProcess>(std::move(*started));
  }

  void send_frame(const std::string& frame) {
    ASSERT_EQ(::write(seam_.tap.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  }
  // Until `enough` of them came, or nothing more does.
  EgressProcess::State collect(size_t enough, int ms = 5000) {
    auto state = EgressProcess::State::kGoing;
    while (crossings_.size() < enough && state == EgressProcess::State::kGoing &&
           readable(process_->link_fd(), ms)) {
      const auto got = process_->receive({[this](const Crossing& c) { crossings_.push_back(c); },
                                          [this](uint64_t count) { lost_ += count; }});
      if (!got) {
        error_ = got.error().code;
        break;
      }
      state = *got;
    }
    return state;
  }
  std::string status_line(const std::string& name) const {
    const auto text = read_file("/proc/" + std::to_string(process_->pid()) + "/status");
    const size_t at = text->find("\n" + name + ":\t") + name.size() + 3;
    return text->substr(at, text->find('\n', at) - at);
  }

  Seam seam_;
  std::unique_ptr<EgressProcess> process_;
  std::vector<Crossing> crossings_;
  uint64_t lost_ = 0;
  std::string error_;
};

TEST_F(ProcessTest, inv07_TheSelfTestShowsThatADeniedNameIsDenied) {
  const auto passed = self_test(*process_, seam_.tap.get(), milliseconds(20000));
  EXPECT_TRUE(passed) << passed.error().to_string();
}

TEST_F(ProcessTest, inv04_ASelfTestWithNobodyThereFails) {
  ::kill(process_->pid(), SIGSTOP);
  const auto silent = self_test(*process_, seam_.tap.get(), milliseconds(300));
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, "egress.self_test");
  process_->kill();
  EXPECT_FALSE(self_test(*process_, seam_.tap.get(), milliseconds(300)));
}

TEST_F(ProcessTest, DatagramsAreTold) {
  send_frame(frame_of(Datagram{kGuestAddress, "1.2.3.4", 7777, 443, std::string(100, 'x')}));
  collect(1);
  ASSERT_EQ(crossings_.size(), 1u);
  EXPECT_EQ(crossings_[0].kind, Crossing::Kind::kDatagram);
  EXPECT_EQ(crossings_[0].verdict, "denied");
  EXPECT_EQ(crossings_[0].host, "1.2.3.4");
  EXPECT_EQ(crossings_[0].port, 443);
  EXPECT_EQ(crossings_[0].source_port, 7777);
  EXPECT_EQ(crossings_[0].bytes_out, 100u);
}

TEST_F(ProcessTest, inv11_WhatCannotBeToldIsCounted) {
  // Nobody listens meanwhile; what the kernel drops before the process sees it is counted by it, too.
  constexpr uint64_t kSent = 60000;
  const std::string frame = frame_of(Datagram{kGuestAddress, "1.2.3.4", 7777, 443, "x"});
  for (uint64_t i = 0; i < kSent; ++i) {
    while (::write(seam_.tap.get(), frame.data(), frame.size()) < 0) ::usleep(100);
    if (i % 50 == 0) ::usleep(500);  // or the link itself is full
  }
  ::usleep(300000);
  collect(kSent, 1000);
  send_frame(frame);  // brings the kernel's count
  collect(kSent, 1000);
  uint64_t told = 0;
  for (const auto& crossing : crossings_)
    told += crossing.detail.starts_with("dropped ") ? std::stoull(crossing.detail.substr(8)) : 1;
  // By whom it is counted, the process or the kernel, depends on which of them is slower. The link itself may
  // have been full, which is no crossing.
  EXPECT_LE(told + lost_, kSent + 1);
  EXPECT_GT(told + lost_, kSent / 2);
}

TEST_F(ProcessTest, inv08_ItIsClosedToOthersAndCanDoLittle) {
  EXPECT_EQ(status_line("NoNewPrivs"), "1");
  EXPECT_EQ(status_line("Seccomp"), "2");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_EQ(status_line(set), "0000000000000000") << set;
  EXPECT_TRUE(process_->ready().landlock);
  const auto limits = read_file("/proc/" + std::to_string(process_->pid()) + "/limits");
  EXPECT_THAT(*limits, HasSubstr("Max core file size        0                    0"));
  // A process of ours that is open to us would let us in, root or not: its /proc files are root's then.
  struct stat what{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(process_->pid()) + "/environ").c_str(), &what), 0);
  EXPECT_EQ(what.st_uid, 0u);
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process_->pid()) + "/fd")) {
    const std::string target = std::filesystem::read_symlink(entry);
    EXPECT_TRUE(target == "/dev/null" || target.starts_with("socket:") || target.starts_with("anon_inode:") ||
                target.starts_with("pipe:"))
        << target;
  }
}

TEST_F(ProcessTest, inv04_WhenItDiesNothingIsThere) {
  ::kill(process_->pid(), SIGKILL);
  EXPECT_EQ(collect(100), EgressProcess::State::kEnded);
  EXPECT_TRUE(readable(process_->exit_fd(), 5000));
  EXPECT_TRUE(WIFSIGNALED(process_->kill()));
  send_frame(frame_of(Datagram{kGuestAddress, "9.9.9.9", 5555, 53, "question"}));
  EXPECT_FALSE(readable(seam_.tap.get(), 200));
}

TEST_F(ProcessTest, ItEndsInGoodOrderWhenItsSandboxDoes) {
  send_frame(frame_of(Datagram{kGuestAddress, "1.2.3.4", 7777, 443, "x"}));
  ::usleep(200000);
  process_->finish();
  EXPECT_EQ(collect(100), EgressProcess::State::kEnded);
  EXPECT_EQ(crossings_.size(), 1u);
  ASSERT_TRUE(readable(process_->exit_fd(), 5000));
#if defined(FIRESTOP_ASAN)
  process_->kill();  // the search for leaks at the end does what the filter forbids
#else
  EXPECT_EQ(process_->kill(), 0);
#endif
}

TEST(Process, inv04_ABadPolicyStartsNothing) {
  auto seam = make_seam();
  ASSERT_TRUE(seam);
  ProcessConfig config = some_config();
  config.connections = 0;
  const auto started = EgressProcess::start(FIRESTOP_EGRESS_PROCESS, config, *seam, {}, milliseconds(30000));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, "egress.bad_config");
  EXPECT_THAT(started.error().message, HasSubstr("connections"));
}

TEST(Process, inv04_CertificatesThatAreNoneStartNothing) {
  auto seam = make_seam();
  ASSERT_TRUE(seam);
  ProcessConfig config = some_config();
  config.upstream_ca = "-----BEGIN CERTIFICATE-----\nx\n";
  EXPECT_FALSE(EgressProcess::start(FIRESTOP_EGRESS_PROCESS, config, *seam, {}, milliseconds(30000)));
}

TEST(Process, ByHandItDoesNothing) {
  Command command;
  command.argv = {FIRESTOP_EGRESS_PROCESS};
  const auto done = run(std::move(command));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->exit_code(), 1);
}

TEST(Process, ItsConfigurationIsWholeOrRefused) {
  ProcessConfig config = some_config();
  config.guard.connect_to = {{{"api.example.com", 443}, "127.0.0.1:8443"}};
  config.upstream_ca = "-----BEGIN CERTIFICATE-----\n";
  const codec::Json json = to_json(config);
  const auto back = config_of(*codec::parse_json(codec::write_json(json)));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), json);
  for (const auto& [name, value] : *json.as_object()) {
    codec::JsonObject less = *json.as_object();
    less.erase(name);
    EXPECT_FALSE(config_of(less)) << name;
  }
}

}  // namespace
}  // namespace firestop::egress
