#include "channel/observation.h"

#include <gtest/gtest.h>

#include "channel/messages.h"

namespace firestop::channel::observed {
namespace {

class Taken : public Receiver {
 public:
  Result<void> observed(const Observation& observation) override {
    seen.push_back(observation);
    return {};
  }
  Result<void> content_bytes(std::string_view bytes) override {
    content += bytes;
    return {};
  }
  Result<void> content_end() override {
    ++ends;
    return {};
  }
  std::vector<Observation> seen;
  std::string content;
  int ends = 0;
};

std::string framed(const Observation& observation) {
  std::string out;
  const auto json = encode(observation);
  EXPECT_TRUE(json) << json.error().message;
  if (json) codec::append_frame(out, codec::FrameType::kControl, 0, *json);
  return out;
}
std::string data(std::string_view bytes) {
  std::string out;
  codec::append_frame(out, codec::FrameType::kData, kContentStream, bytes);
  return out;
}
std::string end_of_content() {
  std::string out;
  codec::append_frame(out, codec::FrameType::kEnd, kContentStream, "");
  return out;
}

std::string whole_story() {
  Exec exec{.pid = 7,
            .parent = 1,
            .at_us = 5,
            .file = "/tmp/\xff x",
            .content = 1,
            .argv = {"x", "\n"},
            .argc = 3,
            .cut = true,
            .cwd = "/"};
  return framed(Hello{kVersion, {"processes", "code"}, {"stdin: no BTF"}}) + framed(Fork{7, 1, 4}) +
         framed(Content{1, 9, 5}) + data("he") + framed(Alive{}) + data("llo") + end_of_content() +
         framed(exec) + framed(Code{7, 6, "script", "/tmp/x", "/bin/sh", 1, 3, ""}) +
         framed(Change{7, 7, "rename", "/a", "/b"}) + framed(Change{7, 7, "link", "/b", "/c"}) +
         framed(Exit{7, 8, 0x100, 1, 2, 3}) + framed(Lost{"code", 2}) +
         framed(Final{"/b", 3, std::string(64, 'a'), ""}) +
         framed(Connect{7, 9, "tcp", 4000, "198.18.0.1", 443}) + framed(Done{});
}

TEST(Inbox, TakesAStoryHoweverItIsCut) {
  const std::string story = whole_story();
  for (const size_t step : {size_t{1}, size_t{7}, story.size()}) {
    Taken taken;
    Inbox inbox(taken);
    for (size_t at = 0; at < story.size(); at += step) {
      const auto got = inbox.receive(std::string_view(story).substr(at, step));
      ASSERT_TRUE(got) << got.error().message;
    }
    EXPECT_EQ(taken.content, "hello");
    EXPECT_EQ(taken.ends, 1);
    ASSERT_EQ(taken.seen.size(), 13u);
    const auto& exec = std::get<Exec>(taken.seen[4]);
    EXPECT_EQ(exec.file, "/tmp/\xff x");
    EXPECT_EQ(exec.argv, (std::vector<std::string>{"x", "\n"}));
    EXPECT_TRUE(inbox.done());
  }
}

TEST(Inbox, inv11_RefusesWhatACollectorNeverSays) {
  const std::string hello = framed(Hello{});
  std::string credit;
  codec::append_credit(credit, kContentStream, 1);
  const struct {
    const char* why;
    std::string bytes;
  } table[] = {
      {"no hello", framed(Alive{})},
      {"two hellos", hello + hello},
      {"bytes of nothing", hello + data("x")},
      {"an end of nothing", hello + end_of_content()},
      {"more bytes than announced", hello + framed(Content{1, 2, 2}) + data("xyz")},
      {"fewer", hello + framed(Content{1, 2, 2}) + data("x") + end_of_content()},
      {"an id that was left out", hello + framed(Content{2, 0, 0})},
      {"a content within another", hello + framed(Content{1, 2, 2}) + framed(Content{2, 0, 0})},
      {"a reference ahead", hello + framed(Code{1, 1, "script", "", "", 1, 0, ""})},
      {"a reference to what is under way",
       hello + framed(Content{1, 2, 2}) + framed(Code{1, 1, "script", "", "", 1, 0, ""})},
      {"something after the end", hello + framed(Done{}) + framed(Alive{})},
      {"an end within a content", hello + framed(Content{1, 2, 2}) + framed(Done{})},
      {"credit", hello + credit},
      {"no frame", "GET / HTTP/1.1\r\n\r\n"},
  };
  for (const auto& row : table) {
    Taken taken;
    Inbox inbox(taken);
    EXPECT_FALSE(inbox.receive(row.bytes)) << row.why;
    EXPECT_FALSE(inbox.receive(framed(Alive{}))) << row.why << ": must stay broken";
  }
}

TEST(Observation, RefusesValuesThatCannotBe) {
  const char* table[] = {
      R"({"type":"fork","pid":-1,"parent":1,"at_us":0})",
      R"({"type":"fork","pid":1,"parent":1})",
      R"({"type":"fork","pid":1,"parent":1,"at_us":0,"more":1})",
      R"({"type":"exit","pid":1,"at_us":0,"status":65536,"user_us":0,"system_us":0,"max_rss_kib":0})",
      R"({"type":"lost","what":"everything","count":1})",
      R"({"type":"change","pid":1,"at_us":0,"what":"write","path":"","to":"L2E="})",
      R"({"type":"final","path":"","size":1,"digest":"abc","note":""})",
      R"({"type":"content","id":0,"size":1,"sent":1})",
      R"({"type":"content","id":1,"size":1,"sent":2})",
      R"({"type":"content","id":1,"size":99999999,"sent":8388609})",
      R"({"type":"shutdown"})",
      R"([])",
  };
  for (const char* json : table) EXPECT_FALSE(decode(json)) << json;
}

}  // namespace
}  // namespace firestop::channel::observed
