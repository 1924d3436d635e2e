#include "sandbox/recorder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/digest.h"
#include "base/file.h"
#include "codec/frame.h"
#include "evidence/anchor.h"
#include "evidence/verify.h"

namespace firestop::sandbox {
namespace {

namespace observed = channel::observed;
using namespace std::chrono_literals;
using testing::HasSubstr;

// A run whose guest is the test: it writes what collectors would into one end of a socket.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    std::signal(SIGPIPE, SIG_IGN);
    std::filesystem::create_directories(directory_);
    ::setenv("XDG_CONFIG_HOME", (directory_ + "/config").c_str(), 1);
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    ours_.reset(ends[0]);
    guest_.reset(ends[1]);
  }
  ~RecorderTest() override {
    if (recorder_) recorder_->unwatch();
    std::filesystem::remove_all(directory_);
  }

  void begin(evidence::LogLimits limits = {}, const std::string& anchor = {}) {
    plan_.name = "run";
    plan_.seal.digest = std::string(64, 'a');
    run_.emplace(std::move(*RunStore(directory_ + "/state").create("run", RunStore::new_id())));
    auto begun = Recorder::begin(plan_, *run_, anchor, limits);
    ASSERT_TRUE(begun) << begun.error().to_string();
    recorder_ = std::move(*begun);
    recorder_->watch(
        loop_, ours_.get(),
        [this](Error error) {
          failed_ = std::move(error);
          loop_.stop();
        },
        [this] { loop_.stop(); });
  }
  void tell(const observed::Observation& observation) {
    std::string frame;
    codec::append_frame(frame, codec::FrameType::kControl, 0, observed::encode(observation).value());
    send(frame);
  }
  // As Teller does: what it is of, its bytes, its end.
  void tell_content(uint32_t id, const std::string& bytes) {
    tell(observed::Content{id, bytes.size(), bytes.size()});
    std::string frames;
    for (size_t at = 0; at < bytes.size(); at += codec::kMaxPayload)
      codec::append_frame(frames, codec::FrameType::kData, observed::kContentStream,
                          std::string_view(bytes).substr(at, codec::kMaxPayload));
    codec::append_frame(frames, codec::FrameType::kEnd, observed::kContentStream, {});
    send(frames);
  }
  void send(const std::string& frames) {
    for (size_t at = 0; at < frames.size();) {
      const ssize_t put = ::write(guest_.get(), frames.data() + at, frames.size() - at);
      if (put < 0) {
        ASSERT_EQ(errno, EAGAIN);
        recorder_->drain();
        continue;
      }
      at += static_cast<size_t>(put);
    }
    recorder_->drain();
  }
  observed::Exec exec(const std::string& file, bool from_image, uint32_t content = 0) {
    observed::Exec out;
    out.pid = 7, out.parent = 1;
    out.file = file, out.from_image = from_image, out.content = content;
    out.argv = {file}, out.argc = 1;
    return out;
  }
  std::vector<codec::Json> events(const std::string& kind) {
    std::istringstream in(read_file(run_->directory() + "/evidence/events.jsonl").value());
    std::vector<codec::Json> out;
    for (std::string line; std::getline(in, line);)
      if (auto event = evidence::parse_event(line).value(); event.kind == kind)
        out.push_back(std::move(event.data));
    return out;
  }

  std::string directory_ = testing::TempDir() + "recorder_test." + random_hex(8);
  UniqueFd ours_, guest_;
  Loop loop_;
  Plan plan_;
  std::optional<OwnedRun> run_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<Error> failed_;
};

TEST_F(RecorderTest, ExecutablesOfTheImageHaveTheirDigests) {
  begin();
  const std::string text = "root " + std::string(64, 'a') + "\n" + sha256_hex("dash") + " 4 /usr/bin/dash\n";
  recorder_->executables(image::Executables::parse(text, sha256_hex(text), std::string(64, 'a')).value());
  tell(observed::Hello{observed::kVersion, {"processes"}, {}});
  tell_content(1, "echo mine\n");
  tell(exec("/usr/bin/dash", true));
  tell(exec("/usr/bin/unheard", true));
  tell(exec("/usr/bin/dash", false, 1));  // somebody wrote to it
  tell(exec("/tmp/own", false, 1));
  const auto seen = events("process.exec");
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].string_or("digest", ""), sha256_hex("dash"));
  EXPECT_EQ(seen[0].int_or("size", 0), 4);
  EXPECT_EQ(seen[0].find("kept"), nullptr) << "these bytes are in the image, not in the record";
  EXPECT_EQ(seen[1].find("digest"), nullptr);
  for (const size_t own : {size_t{2}, size_t{3}})
    EXPECT_EQ(seen[own].string_or("digest", ""), sha256_hex("echo mine\n"));
  EXPECT_EQ(seen[3].int_or("kept", 0), 10);
}

TEST_F(RecorderTest, WhatTheStoreHasNoRoomForIsCutWithANote) {
  begin({.content_bytes = 12});
  tell(observed::Hello{observed::kVersion, {"processes"}, {}});
  tell_content(1, "echo one\n");
  tell_content(2, "echo two\n");
  tell_content(3, "echo one\n");
  tell_content(4, "echo three\n");
  for (uint32_t id = 1; id <= 4; ++id)
    tell(observed::Code{.pid = 7, .how = "command", .content = id, .note = id == 4 ? "of theirs" : ""});
  const auto codes = events("code");
  ASSERT_EQ(codes.size(), 4u);
  EXPECT_EQ(codes[0].string_or("note", "?"), "");
  EXPECT_EQ(codes[1].string_or("note", "?"), "cut after 3 bytes: the record keeps no more of this run");
  EXPECT_EQ(codes[1].int_or("size", 0), 9);
  EXPECT_EQ(codes[1].int_or("kept", 0), 3);
  EXPECT_EQ(codes[1].string_or("digest", ""), sha256_hex("ech"));
  EXPECT_EQ(codes[2].string_or("note", "?"), "") << "the same bytes are there already";
  EXPECT_EQ(codes[3].int_or("kept", 9), 0);
  EXPECT_EQ(codes[3].string_or("note", "?"),
            "cut after 0 bytes: the record keeps no more of this run; of theirs");
  EXPECT_FALSE(failed_);
}

TEST_F(RecorderTest, inv11_ARecordThatIsFullEndsTheRun) {
  begin({.events_bytes = 3000});
  tell(observed::Hello{observed::kVersion, {"processes"}, {}});
  for (uint32_t i = 0; i < 40 && !failed_; ++i) tell(observed::Fork{i + 2, 1, 5});
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, "evidence.full");
  EXPECT_EQ(recorder_->end(run_->record()).error().code, "evidence.full");
  const auto end = events("record.end");
  ASSERT_EQ(end.size(), 1u);
  EXPECT_FALSE(end[0].bool_or("complete", true));
  EXPECT_FALSE(exists(run_->directory() + "/evidence/attestation.json"));
}

TEST_F(RecorderTest, ACapThatWasHitHasItsLimit) {
  begin();
  const std::vector<KeptCap> kept = {{"memory", "256MiB", {"qemu"}}, {"output", "1MiB", {"host_count"}}};
  recorder_->cap_hit("output", kept);
  recorder_->cap_hit("network.bytes", {});
  const auto hit = events("cap.hit");
  ASSERT_EQ(hit.size(), 2u);
  EXPECT_EQ(hit[0].string_or("cap", ""), "output");
  EXPECT_EQ(hit[0].string_or("limit", ""), "1MiB");
  EXPECT_EQ(hit[1].string_or("limit", "?"), "");
}

// An anchor that takes its time: the loop goes on, the collectors are held up before too much is unsigned.
TEST_F(RecorderTest, inv11_ASlowAnchorHoldsUpTheCollectorsAndNotTheLoop) {
  const std::string gate = directory_ + "/gate", told = directory_ + "/told";
  begin({.checkpoint_events = 20}, "command:cat >> " + told + "; test $(wc -l < " + told +
                                       ") -lt 2 || while [ ! -e " + gate + " ]; do sleep 0.02; done");
  std::string frames;
  codec::append_frame(frames, codec::FrameType::kControl, 0,
                      observed::encode(observed::Hello{observed::kVersion, {"processes"}, {}}).value());
  for (uint32_t i = 0; i < 12000; ++i)
    codec::append_frame(frames, codec::FrameType::kControl, 0,
                        observed::encode(observed::Fork{i + 2, 1, 5}).value());
  codec::append_frame(frames, codec::FrameType::kControl, 0, observed::encode(observed::Done{}).value());
  size_t sent = 0;
  int turns = 0;
  const auto feeder = loop_.every(5ms, [&] {
    ++turns;
    while (sent < frames.size()) {
      const ssize_t put = ::write(guest_.get(), frames.data() + sent, frames.size() - sent);
      if (put < 0) break;
      sent += static_cast<size_t>(put);
    }
    if (turns == 100) {
      EXPECT_LT(sent, frames.size()) << "nobody reads while the anchor has not taken the one before";
      EXPECT_LT(events("process.fork").size(), 11000u);
      EXPECT_TRUE(write_file_atomic(gate, ""));
    }
  });
  const auto limit = loop_.once(100s, [this] {
    failed_ = Error{"test.slow", "it never came to its end", {}, 0};
    loop_.stop();
  });
  loop_.run();
  EXPECT_FALSE(failed_) << failed_->to_string();
  EXPECT_GE(turns, 100);
  recorder_->unwatch();
  ASSERT_TRUE(recorder_->end(run_->record()));
  EXPECT_EQ(events("process.fork").size(), 12000u);
  evidence::VerifyOptions options;
  options.signers = {evidence::HostKey::load_or_make(directory_ + "/config/firestop").value().public_key()};
  options.anchor = evidence::read_anchor(told, run_->record().id, options.signers).value();
  const auto found = evidence::verify(run_->directory() + "/evidence", options).value();
  EXPECT_EQ(found.integrity, evidence::Integrity::kIntact);
  EXPECT_EQ(found.anchored, options.anchor->size());
}

TEST_F(RecorderTest, inv11_AnAnchorThatFailsIsToldWithoutAnEvent) {
  const std::string told = directory_ + "/told";
  begin({.checkpoint_events = 20}, "command:test ! -e " + told + " && touch " + told);
  tell(observed::Hello{observed::kVersion, {"processes"}, {}});
  for (uint32_t i = 0; i < 30 && !failed_; ++i) tell(observed::Fork{i + 2, 1, 5});
  const auto limit = loop_.once(30s, [this] { loop_.stop(); });
  if (!failed_) loop_.run();  // the clock asks once a second
  ASSERT_TRUE(failed_);
  EXPECT_EQ(failed_->code, "evidence.anchor");
  EXPECT_EQ(recorder_->end(run_->record()).error().code, "evidence.anchor");
}

egress::Crossing connection(egress::Crossing::Kind kind, uint16_t from) {
  egress::Crossing out;
  out.kind = kind;
  out.verdict = "denied";
  out.scheme = "tcp";
  out.host = "192.0.2.1";
  out.port = 443;
  out.source_port = from;
  return out;
}

TEST_F(RecorderTest, inv11_ACrossingWaitsForItsSocketAndKeepsItsPlace) {
  begin();
  tell(observed::Hello{observed::kVersion, {"connections"}, {}});
  recorder_->crossing(connection(egress::Crossing::Kind::kConnection, 40000));
  recorder_->crossing(connection(egress::Crossing::Kind::kDatagram, 0));
  EXPECT_TRUE(events("network.connection").empty());
  EXPECT_TRUE(events("network.datagram").empty());
  tell(observed::Connect{7, 1, "tcp", 40000, "192.0.2.1", 443});
  // Told together with what is read before it: this one's is there already.
  recorder_->crossing(connection(egress::Crossing::Kind::kRequest, 40000));
  ASSERT_EQ(events("network.connection").size(), 1u);
  EXPECT_EQ(events("network.connection")[0].int_or("pid", 0), 7);
  EXPECT_EQ(events("network.datagram").size(), 1u);
  ASSERT_EQ(events("network.request").size(), 1u);
  EXPECT_EQ(events("network.request")[0].int_or("pid", 0), 7);
  // Nothing that ends a run waits, and nothing is left behind.
  recorder_->crossing(connection(egress::Crossing::Kind::kConnection, 40001));
  recorder_->crossing(connection(egress::Crossing::Kind::kAlarm, 40001));
  EXPECT_EQ(events("network.connection").size(), 2u);
  EXPECT_EQ(events("network.alarm").size(), 1u);
  recorder_->crossing(connection(egress::Crossing::Kind::kConnection, 40002));
  recorder_->unwatch();
  EXPECT_EQ(events("network.connection").size(), 3u);
}

TEST_F(RecorderTest, inv11_ACrossingWhoseSocketNeverComesIsWrittenWithoutIt) {
  begin();
  tell(observed::Hello{observed::kVersion, {"connections"}, {}});
  recorder_->crossing(connection(egress::Crossing::Kind::kConnection, 40000));
  const auto stop = loop_.once(kLongestJoin + 1500ms, [this] { loop_.stop(); });
  loop_.run();
  ASSERT_EQ(events("network.connection").size(), 1u);
  EXPECT_EQ(events("network.connection")[0].int_or("pid", 0), 0);
}

}  // namespace
}  // namespace firestop::sandbox
