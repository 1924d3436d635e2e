// What is left of a record when its writer is killed or its disk is full: real processes, real signals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "evidence/verify.h"

namespace firestop::evidence {
namespace {

using testing::HasSubstr;

constexpr const char* kRun = "20261129-201011-abcdef";

class CrashTest : public testing::Test {
 protected:
  CrashTest() {
    std::filesystem::create_directories(directory_);
    options_.signers = {HostKey::load_or_make(directory_ + "/config").value().public_key()};
  }
  ~CrashTest() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> writer(const std::string& record, const std::string& events,
                                  const std::string& checkpoint_events) {
    return {FIRESTOP_EVIDENCE_WRITER, record, directory_ + "/config", kRun, events, checkpoint_events};
  }
  static std::string told(const Verification& found) {
    std::string out;
    for (const auto& finding : found.findings) out += finding.code + ": " + finding.message + "\n";
    return out;
  }

  std::string directory_ = testing::TempDir() + "crash_test." + random_hex(8);
  VerifyOptions options_;
};

// FIRESTOP_KILLS sets how often; what was accepted before the last checkpoint that was told must be there,
// and no kill may look like tampering.
TEST_F(CrashTest, inv11_KilledAtAnyMomentThePrefixVerifies) {
  const char* more = std::getenv("FIRESTOP_KILLS");
  const int kills = more ? std::atoi(more) : 200;
  std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<int> moment(0, 12000);
  uint64_t events = 0, half = 0, uncovered = 0;
  for (int i = 0; i < kills; ++i) {
    const std::string record = directory_ + "/record";
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    UniqueFd out(pipe[0]);
    UniqueFd in(pipe[1]);
    auto child = spawn({.argv = writer(record, "0", "20"), .descriptors = {{in.get(), 1}}}).value();
    in.reset();
    // From its first checkpoint on: before it there is no record that anybody relied on.
    char first = 0;
    ASSERT_EQ(::read(out.get(), &first, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    child.kill_and_wait();
    const std::string said = first + read_all(out.get()).value();
    const std::string whole = said.substr(0, said.rfind('\n'));
    const uint64_t accepted =
        std::stoull(whole.substr(whole.rfind('\n') == std::string::npos ? 0 : whole.rfind('\n') + 1));
    const auto found = verify(record, options_).value();
    SCOPED_TRACE("kill " + std::to_string(i) + "\n" + told(found));
    ASSERT_EQ(found.integrity, Integrity::kPrefix);
    ASSERT_TRUE(found.trusted);
    ASSERT_GE(found.trusted->count, accepted);
    ASSERT_GE(found.events, found.trusted->count);
    for (const auto& finding : found.findings) {
      ASSERT_THAT(finding.code, testing::AnyOf("evidence.cut", "evidence.uncovered", "evidence.not_ended",
                                               "evidence.content_missing"));
      half += finding.code == "evidence.cut" ? 1 : 0;
      uncovered += finding.code == "evidence.uncovered" ? 1 : 0;
    }
    events += found.events;
    std::filesystem::remove_all(record);
  }
  // Kills that all come too early would show nothing.
  EXPECT_GT(events, static_cast<uint64_t>(kills) * 2);
  EXPECT_GT(uncovered, 0u);
  RecordProperty("events", std::to_string(events));
  RecordProperty("half_lines", std::to_string(half));
}

int limit_file_size(void* context) {
  const rlimit limit{*static_cast<rlim_t*>(context), *static_cast<rlim_t*>(context)};
  return ::setrlimit(RLIMIT_FSIZE, &limit);
}

// A file that may grow no further answers as a full disk does: half a write, then an error.
TEST_F(CrashTest, inv11_WhenTheDiskIsFullThePrefixVerifies) {
  for (rlim_t bytes : {rlim_t{1000}, rlim_t{5000}, rlim_t{5001}, rlim_t{20000}}) {
    SCOPED_TRACE(std::to_string(bytes));
    const std::string record = directory_ + "/record";
    const auto ended = run({.argv = writer(record, "0", "20"),
                            .before_exec = limit_file_size,
                            .before_exec_context = &bytes})
                           .value();
    EXPECT_EQ(ended.exit_code(), 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("evidence.write: cannot write"));
    const auto found = verify(record, options_).value();
    SCOPED_TRACE(told(found));
    EXPECT_EQ(found.integrity, Integrity::kPrefix);
    ASSERT_TRUE(found.trusted);
    // Nothing half: the rest of a line is taken back. And all that was accepted is signed, where the
    // signature finds room (a checkpoint has some 600 bytes).
    for (const auto& finding : found.findings) EXPECT_NE(finding.code, "evidence.cut");
    if (bytes >= 5000) {
      EXPECT_EQ(found.trusted->count, found.events);
    }
    EXPECT_GT(found.events, 1u);
    std::filesystem::remove_all(record);
  }
}

}  // namespace
}  // namespace firestop::evidence
