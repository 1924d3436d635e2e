#include "evidence/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/digest.h"
#include "base/file.h"
#include "evidence/checkpoint.h"

namespace firestop::evidence {
namespace {

using testing::HasSubstr;

class LogTest : public testing::Test {
 protected:
  LogTest() { std::filesystem::create_directories(directory_); }
  ~LogTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Log> make(LogLimits limits = {}) {
    auto log =
        Log::create(directory_ + "/record", "20261129-201011-abcdef", *key_, {{"name", "test"}}, limits);
    EXPECT_TRUE(log) << log.error().to_string();
    return std::move(*log);
  }
  std::vector<std::string> lines(const std::string& name) {
    std::vector<std::string> out;
    const std::string text = read_file(directory_ + "/record/" + name).value();
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out.push_back(text.substr(at, text.find('\n', at) - at));
    return out;
  }

  std::string directory_ = testing::TempDir() + "log_test." + random_hex(8);
  Result<HostKey> key_ = HostKey::load_or_make(directory_ + "/config");
};

TEST_F(LogTest, ChainsSignsAndEnds) {
  auto log = make();
  ASSERT_TRUE(log->append(Vantage::kGuest, "process.fork", {{"pid", 7}, {"parent", 1}}));
  ASSERT_TRUE(log->append(Vantage::kGuest, "process.fork", {{"pid", 8}, {"parent", 7}}));
  ASSERT_TRUE(log->close({{"status", 0}, {"complete", true}}));
  EXPECT_EQ(log->append(Vantage::kHost, "alarm", {}).error().code, "evidence.closed");

  std::string prev(64, '0');
  std::vector<Event> events;
  for (const auto& line : lines("events.jsonl")) {
    events.push_back(parse_event(line).value());
    EXPECT_EQ(events.back().prev, prev);
    EXPECT_EQ(events.back().seq, events.size() - 1);
    prev = sha256_hex(line);
  }
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(log->head(), prev);
  EXPECT_EQ(events[0].kind, "record.begin");
  EXPECT_EQ(events[0].data.string_or("key", ""), key_->public_key().id());
  EXPECT_EQ(events[3].kind, "record.end");
  EXPECT_EQ(events[3].data.find("counts")->int_or("process.fork", 0), 2);

  const auto checkpoints = lines("checkpoints.jsonl");
  ASSERT_EQ(checkpoints.size(), 2u);
  const auto envelope = parse_envelope(checkpoints[1]).value();
  EXPECT_NE(signer_of(envelope, {key_->public_key()}), nullptr);
  const auto last = checkpoint_of(envelope).value();
  EXPECT_EQ(last.count, 4u);
  EXPECT_EQ(last.head, prev);
  EXPECT_TRUE(last.final);
}

TEST_F(LogTest, EventsThatAreNoneDoNotEndIt) {
  auto log = make();
  EXPECT_EQ(log->append(Vantage::kGuest, "code", {{"path", "\xff"}}).error().code, "evidence.bad_event");
  EXPECT_EQ(log->append(Vantage::kGuest, "code", {{"path", std::string(kMostLine, 'x')}}).error().code,
            "evidence.bad_event");
  EXPECT_EQ(log->append(Vantage::kGuest, "code", {{"size", INT64_MAX}}).error().code, "evidence.bad_event");
  EXPECT_TRUE(log->append(Vantage::kGuest, "code", {{"path", "x"}}));
  EXPECT_EQ(log->count(), 2u);
}

TEST_F(LogTest, KeepsNoMoreThanItsLimitAndSaysSo) {
  auto log = make({.events_bytes = 2000});
  Result<void> last;
  while (last) last = log->append(Vantage::kGuest, "code", {{"path", std::string(100, 'x')}});
  EXPECT_EQ(last.error().code, "evidence.full");
  EXPECT_EQ(log->append(Vantage::kHost, "alarm", {}).error().code, "evidence.full");
  ASSERT_TRUE(log->close({{"complete", true}}));
  EXPECT_FALSE(parse_event(lines("events.jsonl").back()).value().data.bool_or("complete", true));
}

TEST_F(LogTest, ContentsAreStoredOnceAndCutWhereTheStoreEnds) {
  auto log = make({.content_bytes = 10});
  const auto first = log->content().put("1234567").value();
  EXPECT_EQ(first.digest, sha256_hex("1234567"));
  EXPECT_FALSE(first.cut);
  const auto second = log->content().put("abcdefg").value();
  EXPECT_EQ(second.digest, sha256_hex("abc"));
  EXPECT_EQ(second.size, 3u);
  EXPECT_TRUE(second.cut);
  // There already, whole.
  const auto again = log->content().put("1234567").value();
  EXPECT_EQ(again.digest, first.digest);
  EXPECT_FALSE(again.cut);
  EXPECT_EQ(read_file(content_path(directory_ + "/record", second.digest)).value(), "abc");
  EXPECT_EQ(content_path(directory_, "../../etc/passwd"), "");
}

}  // namespace
}  // namespace firestop::evidence
