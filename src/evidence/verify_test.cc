// A table of what can be done to a record: each is named, with its code and the record that it is about.
#include "evidence/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "base/digest.h"
#include "base/file.h"
#include "evidence/content_store.h"
#include "evidence/log.h"

namespace firestop::evidence {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Lines = std::vector<std::string>;

constexpr const char* kRun = "20261129-201011-abcdef";

struct Record {
  std::string directory;
  Lines events, checkpoints;

  void load() {
    events = lines_of("events.jsonl");
    checkpoints = lines_of("checkpoints.jsonl");
  }
  void store() const {
    write("events.jsonl", events);
    write("checkpoints.jsonl", checkpoints);
  }
  Lines lines_of(const std::string& name) const {
    Lines out;
    const std::string text = read_file(directory + "/" + name).value();
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out.push_back(text.substr(at, text.find('\n', at) - at));
    return out;
  }
  void write(const std::string& name, const Lines& lines) const {
    std::ofstream out(directory + "/" + name, std::ios::trunc | std::ios::binary);
    for (const auto& line : lines) out << line << '\n';
  }
  void write_raw(const std::string& name, const std::string& text) const {
    std::ofstream(directory + "/" + name, std::ios::trunc | std::ios::binary) << text;
  }
  std::string text(const std::string& name) const { return read_file(directory + "/" + name).value(); }
};

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    std::filesystem::create_directories(directory_);
    key_.emplace(HostKey::load_or_make(directory_ + "/config").value());
    other_.emplace(HostKey::load_or_make(directory_ + "/other").value());
    options_.signers = {key_->public_key()};
  }
  ~VerifyTest() override { std::filesystem::remove_all(directory_); }

  // Of 30 events (0 to 29) and checkpoints after 1, 11, 21 and 30.
  Record make(const std::string& name, const HostKey& key, const std::string& run = kRun) {
    Record out{.directory = directory_ + "/" + name};
    auto log = Log::create(out.directory, run, key, {}, {.checkpoint_events = 10}).value();
    script_ = log->content().put("echo " + name + "\n").value().digest;
    EXPECT_TRUE(log->append(Vantage::kGuest, "collectors", {{"working", codec::JsonArray{"code"}}}));
    EXPECT_TRUE(log->append(Vantage::kGuest, "code", {{"pid", 7}, {"how", "argument"}, {"digest", script_}}));
    for (int i = 3; i < 28; ++i)
      EXPECT_TRUE(log->append(Vantage::kGuest, "process.fork", {{"pid", i}, {"parent", 1}}));
    EXPECT_TRUE(log->append(Vantage::kGuest, "collectors.done", {}));
    EXPECT_TRUE(log->close({{"status", 0}, {"complete", true}}));
    out.load();
    return out;
  }
  Verification check(const Record& record) { return verify(record.directory, options_).value(); }

  std::string directory_ = testing::TempDir() + "verify_test." + random_hex(8);
  std::optional<HostKey> key_, other_;
  VerifyOptions options_;
  std::string script_;
};

Lines codes(const Verification& verification) {
  Lines out;
  for (const auto& finding : verification.findings) out.push_back(finding.code);
  return out;
}

std::string told(const Verification& verification) {
  std::string out;
  for (const auto& finding : verification.findings) out += finding.code + ": " + finding.message + "\n";
  return out;
}

// The hashes made right again by somebody who has no key.
void rechain(Lines& events, size_t from) {
  for (size_t i = from; i < events.size(); ++i) {
    auto event = parse_event(events[i]).value();
    event.seq = i;
    event.prev = i == 0 ? std::string(64, '0') : sha256_hex(events[i - 1]);
    events[i] = to_line(event).value();
  }
}

void change_pid(std::string& line) {
  auto event = parse_event(line).value();
  (*event.data.as_object())["pid"] = 4242;
  line = to_line(event).value();
}

TEST_F(VerifyTest, WhatWasNotTouchedIsIntactAndComplete) {
  const auto record = make("good", *key_);
  ASSERT_EQ(record.events.size(), 30u);
  ASSERT_EQ(record.checkpoints.size(), 4u);
  const auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kIntact) << told(found);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.run, kRun);
  EXPECT_EQ(found.events, 30u);
  EXPECT_EQ(found.contents, 1u);
  EXPECT_EQ(found.checkpoints, 4u);
  EXPECT_EQ(found.signer, key_->public_key().id());
  ASSERT_TRUE(found.trusted);
  EXPECT_EQ(found.trusted->count, 30u);
}

struct Case {
  const char* name;
  std::function<void(Record&)> change;
  const char* code;             // among those found
  std::optional<uint64_t> seq;  // of the finding
  uint64_t trusted;             // events under the last checkpoint before the harm
  Integrity integrity = Integrity::kBroken;
  bool only = true;  // no other code is named
};

const std::vector<Case>& cases() {
  const auto events = [](auto change) {
    return [change](Record& r) {
      change(r.events);
      r.store();
    };
  };
  const auto checkpoints = [](auto change) {
    return [change](Record& r) {
      change(r.checkpoints);
      r.store();
    };
  };
  static const std::vector<Case> kCases = {
      {"the last three removed", events([](Lines& e) { e.resize(27); }), "evidence.truncated", 27, 21,
       Integrity::kBroken, false},
      {"the last removed", events([](Lines& e) { e.pop_back(); }), "evidence.truncated", 29, 21,
       Integrity::kBroken, false},
      {"the first removed", events([](Lines& e) { e.erase(e.begin()); }), "evidence.missing", 0, 0},
      {"the first five removed", events([](Lines& e) { e.erase(e.begin(), e.begin() + 5); }),
       "evidence.missing", 0, 0},
      {"one in the middle removed", events([](Lines& e) { e.erase(e.begin() + 14); }), "evidence.missing", 14,
       11},
      {"one before a checkpoint removed", events([](Lines& e) { e.erase(e.begin() + 10); }),
       "evidence.missing", 10, 1},
      {"two neighbours swapped", events([](Lines& e) { std::swap(e[14], e[15]); }), "evidence.out_of_order",
       15, 11},
      {"two far ones swapped", events([](Lines& e) { std::swap(e[5], e[25]); }), "evidence.out_of_order", 25,
       1},
      {"one changed", events([](Lines& e) { change_pid(e[14]); }), "evidence.changed", 14, 11},
      {"one before a checkpoint changed", events([](Lines& e) { change_pid(e[10]); }), "evidence.changed", 10,
       1},
      {"another number for one", events([](Lines& e) {
         auto event = parse_event(e[14]).value();
         event.seq = 17;
         e[14] = to_line(event).value();
       }),
       "evidence.changed", 14, 11},
      {"the begin changed", events([](Lines& e) { change_pid(e[0]); }), "evidence.changed", 0, 0},
      {"the end changed", events([](Lines& e) { change_pid(e[29]); }), "evidence.rewritten", 21, 21},
      {"one no JSON", events([](Lines& e) { e[14] = "{"; }), "evidence.bad_event", 14, 11},
      {"one with spaces", events([](Lines& e) { e[14].insert(1, " "); }), "evidence.bad_event", 14, 11},
      {"a foreign line between", events([](Lines& e) { e.insert(e.begin() + 14, "hello"); }),
       "evidence.bad_event", 14, 11},
      {"an empty line between", events([](Lines& e) { e.insert(e.begin() + 14, ""); }), "evidence.bad_event",
       14, 11},
      {"one twice", events([](Lines& e) { e.insert(e.begin() + 14, e[13]); }), "evidence.duplicate", 13, 11},
      {"an early one once more", events([](Lines& e) { e.insert(e.begin() + 14, e[3]); }),
       "evidence.duplicate", 3, 11},
      {"removed, and numbered anew", events([](Lines& e) {
         e.erase(e.begin() + 14);
         for (size_t i = 14; i < e.size(); ++i) {
           auto event = parse_event(e[i]).value();
           --event.seq;
           e[i] = to_line(event).value();
         }
       }),
       "evidence.changed", 13, 11, Integrity::kBroken, false},
      {"changed and chained anew", events([](Lines& e) {
         change_pid(e[14]);
         rechain(e, 15);
       }),
       "evidence.rewritten", 11, 11},
      {"removed and chained anew", events([](Lines& e) {
         e.erase(e.begin() + 14);
         rechain(e, 14);
       }),
       "evidence.rewritten", 11, 11, Integrity::kBroken, false},
      {"one added and chained anew", events([](Lines& e) {
         e.insert(e.begin() + 14, e[13]);
         rechain(e, 14);
       }),
       "evidence.rewritten", 11, 11, Integrity::kBroken, false},
      {"all chained anew", events([](Lines& e) {
         change_pid(e[0]);
         rechain(e, 1);
       }),
       "evidence.rewritten", 0, 0, Integrity::kBroken, false},
      {"goes on after its end", events([](Lines& e) {
         e.push_back(e[28]);
         rechain(e, 30);
       }),
       "evidence.after_end", 30, 30, Integrity::kBroken, false},
      {"cut within the last",
       [](Record& r) {
         const std::string text = r.text("events.jsonl");
         r.write_raw("events.jsonl", text.substr(0, text.size() - 20));
       },
       "evidence.truncated", 29, 21, Integrity::kBroken, false},
      {"cut within one before",
       [](Record& r) {
         const std::string text = r.text("events.jsonl");
         r.write_raw("events.jsonl", text.substr(0, text.find(r.events[14]) + 30));
       },
       "evidence.truncated", 14, 11, Integrity::kBroken, false},
      {"empty", events([](Lines& e) { e.clear(); }), "evidence.truncated", 0, 0, Integrity::kBroken, false},
      {"the last checkpoint an older one", checkpoints([](Lines& c) { c[3] = c[1]; }),
       "evidence.checkpoint_order", std::nullopt, 21, Integrity::kBroken, false},
      {"one checkpoint an older one", checkpoints([](Lines& c) { c[2] = c[1]; }), "evidence.checkpoint_order",
       std::nullopt, 11, Integrity::kBroken, false},
      {"checkpoints swapped", checkpoints([](Lines& c) { std::swap(c[1], c[2]); }),
       "evidence.checkpoint_order", std::nullopt, 1, Integrity::kBroken, false},
      {"a checkpoint removed", checkpoints([](Lines& c) { c.erase(c.begin() + 2); }),
       "evidence.checkpoint_missing", std::nullopt, 11},
      {"the first checkpoint removed", checkpoints([](Lines& c) { c.erase(c.begin()); }),
       "evidence.checkpoint_missing", std::nullopt, 0},
      {"all checkpoints removed", checkpoints([](Lines& c) { c.clear(); }), "evidence.unsigned", std::nullopt,
       0},
      {"no checkpoints' file", [](Record& r) { std::filesystem::remove(r.directory + "/checkpoints.jsonl"); },
       "evidence.unsigned", std::nullopt, 0},
      {"a checkpoint no JSON", checkpoints([](Lines& c) { c[2] = "{}"; }), "evidence.bad_checkpoint",
       std::nullopt, 11, Integrity::kBroken, false},
      {"a checkpoint with spaces", checkpoints([](Lines& c) { c[2].insert(1, " "); }),
       "evidence.bad_checkpoint", std::nullopt, 11, Integrity::kBroken, false},
      {"a checkpoint with a signature more", checkpoints([](Lines& c) {
         c[2].insert(c[2].find("\"signatures\":[") + 14, R"({"keyid":"","sig":""},)");
       }),
       "evidence.bad_checkpoint", std::nullopt, 11, Integrity::kBroken, false},
      {"a checkpoint with another's signature", checkpoints([](Lines& c) {
         const auto payload = [](const std::string& line) {
           return line.substr(0, line.find("\"payloadType\""));
         };
         c[2] = payload(c[1]) + c[2].substr(payload(c[2]).size());
       }),
       "evidence.bad_signature", std::nullopt, 11, Integrity::kBroken, false},
      {"a content changed",
       [](Record& r) {
         for (const auto& entry : std::filesystem::recursive_directory_iterator(r.directory + "/content"))
           if (entry.is_regular_file()) {
             std::filesystem::remove(entry);
             std::ofstream(entry.path()) << "harmless";
           }
       },
       "evidence.content_changed", 2, 30},
      {"a content removed", [](Record& r) { std::filesystem::remove_all(r.directory + "/content"); },
       "evidence.content_missing", 2, 30},
      // What a killed host leaves, or who cuts events and signatures back to a place: a prefix.
      {"the last checkpoint removed", checkpoints([](Lines& c) { c.pop_back(); }), "evidence.uncovered", 21,
       21, Integrity::kPrefix},
      {"cut back to a checkpoint",
       [](Record& r) {
         r.events.resize(21);
         r.checkpoints.resize(3);
         r.store();
       },
       "evidence.not_ended", std::nullopt, 21, Integrity::kPrefix},
      {"half a line after the last checkpoint",
       [](Record& r) {
         r.events.resize(25);
         r.checkpoints.resize(3);
         r.store();
         r.write_raw("events.jsonl", r.text("events.jsonl") + "{\"data\":{");
       },
       "evidence.cut", std::nullopt, 21, Integrity::kPrefix, false},
      {"killed before the first checkpoint",
       [](Record& r) {
         r.events.resize(1);
         r.checkpoints.clear();
         r.store();
       },
       "evidence.unsigned", std::nullopt, 0, Integrity::kPrefix, false},
      {"nothing written yet",
       [](Record& r) {
         r.events.clear();
         r.checkpoints.clear();
         r.store();
       },
       "evidence.unsigned", std::nullopt, 0, Integrity::kPrefix, false},
      {"half a checkpoint",
       [](Record& r) {
         r.store();
         const std::string text = r.text("checkpoints.jsonl");
         r.write_raw("checkpoints.jsonl", text.substr(0, text.size() - 1));
       },
       "evidence.cut", std::nullopt, 21, Integrity::kPrefix, false},
  };
  return kCases;
}

TEST_F(VerifyTest, inv11_EachWayToTamperIsNamed) {
  int number = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    auto record = make("case" + std::to_string(number++), *key_);
    one.change(record);
    const auto found = check(record);
    SCOPED_TRACE(told(found));
    EXPECT_EQ(found.integrity, one.integrity);
    ASSERT_THAT(codes(found), Contains(one.code));
    const auto finding = std::find_if(found.findings.begin(), found.findings.end(),
                                      [&](const auto& each) { return each.code == one.code; });
    EXPECT_EQ(finding->seq, one.seq);
    EXPECT_EQ(found.trusted ? found.trusted->count : 0, one.trusted);
    if (one.only) {
      for (const auto& code : codes(found)) EXPECT_EQ(code, one.code);
    }
  }
}

// Whatever is done to the events of a whole record, it is never intact.
TEST_F(VerifyTest, inv11_AnyEditIsSeen) {
  const auto whole = make("whole", *key_);
  std::mt19937 random(std::random_device{}());
  const auto below = [&](size_t most) { return std::uniform_int_distribution<size_t>(0, most - 1)(random); };
  for (int i = 0; i < 300; ++i) {
    auto record = whole;
    const size_t edits = 1 + below(3);
    std::string told_edits;
    for (size_t k = 0; k < edits && !record.events.empty(); ++k) {
      Lines& lines = below(4) == 0 && !record.checkpoints.empty() ? record.checkpoints : record.events;
      const size_t at = below(lines.size()), to = below(lines.size());
      const auto begin = lines.begin();
      const size_t what = below(6);
      told_edits += std::to_string(what) + " at " + std::to_string(at) + "/" + std::to_string(to) + "\n";
      if (what == 0) lines.erase(begin + static_cast<std::ptrdiff_t>(at));
      if (what == 1) std::swap(lines[at], lines[to]);
      if (what == 2) lines.insert(begin + static_cast<std::ptrdiff_t>(to), std::string(lines[at]));
      if (what == 3) lines[at] = lines[to];
      if (what == 4 && !lines[at].empty())
        lines[at][below(lines[at].size())] ^= static_cast<char>(1 + below(255));
      if (what == 5) lines[at].resize(below(lines[at].size() + 1));
    }
    if (record.events == whole.events && record.checkpoints == whole.checkpoints) continue;
    record.store();
    const auto found = check(record);
    SCOPED_TRACE(told_edits + told(found));
    ASSERT_NE(found.integrity, Integrity::kIntact);
    ASSERT_FALSE(found.findings.empty());
    // What is trusted nevertheless is what was written.
    if (found.trusted) {
      ASSERT_LE(found.trusted->count, record.events.size());
      for (size_t k = 0; k < found.trusted->count; ++k) ASSERT_EQ(record.events[k], whole.events[k]);
    }
  }
}

TEST_F(VerifyTest, inv11_BothSwappedOnesAreNamed) {
  auto record = make("swapped", *key_);
  std::swap(record.events[5], record.events[25]);
  record.store();
  const auto found = check(record);
  ASSERT_EQ(found.findings.size(), 2u) << told(found);
  EXPECT_EQ(found.findings[0].seq, 25u);
  EXPECT_EQ(found.findings[1].seq, 5u);
}

TEST_F(VerifyTest, inv11_AnotherRunsPartsAreNamed) {
  auto record = make("this", *key_);
  auto foreign = make("that", *key_, "20261129-202020-fedcba");
  auto mixed = record;
  mixed.checkpoints = foreign.checkpoints;
  mixed.store();
  EXPECT_THAT(codes(check(mixed)), Contains("evidence.other_run"));
  mixed.checkpoints = record.checkpoints;
  mixed.events = foreign.events;
  mixed.store();
  EXPECT_THAT(codes(check(mixed)), Contains("evidence.other_run"));
  // A few events of it.
  mixed.events = record.events;
  mixed.events[14] = foreign.events[14];
  mixed.store();
  EXPECT_THAT(codes(check(mixed)), Contains("evidence.changed"));
  // And all of it, good in itself, where another was asked for.
  options_.run = kRun;
  EXPECT_THAT(codes(check(foreign)), ElementsAre("evidence.other_run"));
}

TEST_F(VerifyTest, inv11_AnotherKeyIsUnknown) {
  const auto record = make("record", *other_);
  const auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kBroken);
  EXPECT_THAT(codes(found), ElementsAre("evidence.unknown_key", "evidence.unsigned"));
  EXPECT_THAT(found.findings[0].message, HasSubstr("unknown key " + other_->public_key().id()));
  EXPECT_FALSE(found.trusted);
  options_.signers.push_back(other_->public_key());
  EXPECT_EQ(check(record).integrity, Integrity::kIntact);
  options_.signers.clear();
  EXPECT_EQ(check(record).integrity, Integrity::kBroken);
}

TEST_F(VerifyTest, inv11_OneTrustedKeyDoesNotGoOnForAnother) {
  options_.signers.push_back(other_->public_key());
  auto record = make("record", *key_);
  auto last = checkpoint_of(parse_envelope(record.checkpoints[3]).value()).value();
  record.checkpoints[3] = sign_checkpoint(*other_, last);
  record.store();
  EXPECT_THAT(codes(check(record)), ElementsAre("evidence.other_key"));
}

TEST_F(VerifyTest, TimeThatGoesBackIsNoTampering) {
  Record record{.directory = directory_ + "/times"};
  std::filesystem::create_directories(record.directory);
  std::string prev(64, '0');
  const std::vector<std::string> times = {"2026-11-29T20:10:11.000000Z", "2026-11-29T19:10:11.000000Z"};
  for (uint64_t i = 0; i < 2; ++i) {
    Event event{.seq = i, .time = times[i], .mono_us = static_cast<int64_t>(i), .prev = prev};
    event.kind = i == 0 ? "record.begin" : "record.end";
    event.data = codec::JsonObject{{"format", 1}, {"run", kRun}, {"key", key_->public_key().id()}};
    record.events.push_back(to_line(event).value());
    prev = sha256_hex(record.events.back());
  }
  record.checkpoints = {
      sign_checkpoint(*key_, {.run = kRun, .number = 0, .count = 2, .head = prev, .final = true})};
  record.store();
  const auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kIntact) << told(found);
}

TEST_F(VerifyTest, AnOlderWriterIsNotUnderstoodInSilence) {
  auto record = make("record", *key_);
  auto event = parse_event(record.events[0]).value();
  (*event.data.as_object())["format"] = 2;
  record.events[0] = to_line(event).value();
  record.store();
  EXPECT_THAT(codes(check(record)), Contains("evidence.bad_begin"));
}

TEST_F(VerifyTest, inv11_AnAnchorShowsThatTheRecordWasCutBack) {
  auto record = make("record", *key_);
  std::vector<Checkpoint> anchored;
  for (const auto& line : record.checkpoints)
    anchored.push_back(checkpoint_of(parse_envelope(line).value()).value());
  options_.anchor = anchored;
  auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kIntact) << told(found);
  EXPECT_EQ(found.anchored, 4u);

  auto cut = record;
  cut.events.resize(21);
  cut.checkpoints.resize(3);
  cut.store();
  found = check(cut);
  EXPECT_EQ(found.integrity, Integrity::kBroken);
  ASSERT_THAT(codes(found), Contains("evidence.cut_back"));
  EXPECT_THAT(told(found), HasSubstr("the anchor has checkpoint 3 of 30 events"));

  // By somebody who has the key.
  cut.events = record.events;
  change_pid(cut.events[14]);
  rechain(cut.events, 15);
  for (size_t i = 2; i < 4; ++i) {
    auto checkpoint = anchored[i];
    checkpoint.head = sha256_hex(cut.events[checkpoint.count - 1]);
    cut.checkpoints.resize(i);
    cut.checkpoints.push_back(sign_checkpoint(*key_, checkpoint));
  }
  cut.store();
  found = check(cut);
  EXPECT_EQ(found.integrity, Integrity::kBroken);
  EXPECT_THAT(codes(found), Contains("evidence.rewritten"));

  record.store();
  options_.anchor = std::vector<Checkpoint>{};
  EXPECT_THAT(codes(check(record)), ElementsAre("evidence.not_anchored"));
  // The host died before it could give the last one.
  options_.anchor = std::vector<Checkpoint>(anchored.begin(), anchored.end() - 1);
  EXPECT_EQ(check(record).integrity, Integrity::kIntact);
}

TEST_F(VerifyTest, SaysWhyARecordIsNotComplete) {
  Record record{.directory = directory_ + "/lossy"};
  auto log = Log::create(record.directory, kRun, *key_, {}, {}).value();
  ASSERT_TRUE(log->append(Vantage::kGuest, "collectors",
                          {{"missing", codec::JsonArray{"stdin: the kernel has no BTF"}}}));
  ASSERT_TRUE(log->append(Vantage::kGuest, "lost", {{"what", "files"}, {"count", 12}}));
  ASSERT_TRUE(log->append(Vantage::kHost, "lost", {{"what", "files"}, {"count", 3}}));
  ASSERT_TRUE(log->close({{"status", 245}, {"complete", false}}));
  const auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kIntact) << told(found);
  EXPECT_FALSE(found.complete);
  EXPECT_THAT(found.gaps,
              ElementsAre("a collector did not work: stdin: the kernel has no BTF",
                          "at least 15 lost of: files", "the guest's collectors did not come to their end"));
}

TEST_F(VerifyTest, NothingObservedIsNotComplete) {
  Record record{.directory = directory_ + "/blind"};
  auto log = Log::create(record.directory, kRun, *key_, {}, {}).value();
  ASSERT_TRUE(log->close({{"status", 0}, {"complete", true}}));
  const auto found = check(record);
  EXPECT_EQ(found.integrity, Integrity::kIntact);
  EXPECT_THAT(found.gaps, ElementsAre(HasSubstr("never spoke")));
}

TEST_F(VerifyTest, StrangeFilesAreNotFollowed) {
  auto record = make("record", *key_);
  const std::string path = content_path(record.directory, script_);
  const std::string outside = directory_ + "/outside";
  std::filesystem::copy_file(path, outside);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(outside, path);
  EXPECT_THAT(codes(check(record)), ElementsAre("evidence.content_changed"));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(codes(check(record)), ElementsAre("evidence.content_changed"));
  const std::string events = record.directory + "/events.jsonl";
  std::filesystem::remove(events);
  ASSERT_EQ(::mkfifo(events.c_str(), 0600), 0);
  EXPECT_EQ(verify(record.directory, options_).error().code, "evidence.unreadable");
  std::filesystem::remove(events);
  EXPECT_EQ(verify(record.directory, options_).error().code, "evidence.not_found");
}

TEST_F(VerifyTest, ManyFindingsAreCounted) {
  auto record = make("record", *key_);
  Lines many;
  for (int i = 0; i < 500; ++i) many.emplace_back("no event");
  record.events.insert(record.events.begin() + 5, many.begin(), many.end());
  record.store();
  const auto found = check(record);
  EXPECT_EQ(found.findings.size(), kMostFindings);
  EXPECT_GE(found.more_findings, 400u);
}

}  // namespace
}  // namespace firestop::evidence
