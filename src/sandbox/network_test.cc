// This program is also what a network starts: see main().
#include "sandbox/network.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "codec/frame.h"
#include "credentials/source_process.h"
#include "egress/link.h"
#include "egress/process.h"

namespace firestop::sandbox {
namespace {

credentials::Bindings some_bindings() {
  credentials::Binding binding;
  binding.hosts = {"api.example.com"};
  binding.source.place = "FIRESTOP_NETWORK_TEST";
  return {{"model", binding}};
}

egress::ProcessConfig some_config() {
  egress::ProcessConfig config;
  manifest::EgressRule rule;
  rule.host = "api.example.com";
  rule.ports = {443};
  rule.protocol = "http";
  config.guard.rules = {rule};
  return config;
}

// Neither a process nor its remains.
bool childless() {
  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

std::string start() {
  ::setenv("FIRESTOP_NETWORK_TEST", "s3cret-value-of-a-test", 1);
  const auto network = Network::make(some_config(), some_bindings(), {});
  return network ? "" : network.error().code;
}

TEST(Network, inv04_NothingIsLeftOfOneThatFailsItsSelfTest) {
  ASSERT_TRUE(childless());
  ::setenv("FIRESTOP_NETWORK_TEST_DEAF", "1", 1);
  EXPECT_EQ(start(), "egress.self_test");
  ::unsetenv("FIRESTOP_NETWORK_TEST_DEAF");
  EXPECT_TRUE(childless());
}

// Says that it is ready, and ends: whoever waits for its first answer waits in vain.
int deaf_process() {
  codec::FrameDecoder decoder;
  for (bool told = false; !told;) {
    char buffer[4096];
    const ssize_t got = ::recv(egress::kLinkFd, buffer, sizeof buffer, 0);
    if (got <= 0) return 1;
    decoder.feed({buffer, static_cast<size_t>(got)});
    for (auto frame = decoder.next(); frame && *frame; frame = decoder.next())
      told = told || (*frame)->type == codec::FrameType::kEnd;
  }
  egress::LinkWriter(egress::kLinkFd).say(codec::JsonObject{{"type", "ready"}});
  return 0;
}

}  // namespace

int network_process() {
  return std::getenv("FIRESTOP_NETWORK_TEST_DEAF") ? deaf_process() : egress::process_main();
}

}  // namespace firestop::sandbox

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (part == "__credentials") return firestop::credentials::source_main(firestop::credentials::kSourceFd);
  if (part == "__egress") return firestop::sandbox::network_process();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
