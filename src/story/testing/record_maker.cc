#include "story/testing/record_maker.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::story::testing {
namespace {

using codec::Json;
using codec::JsonObject;

std::string time_text(int64_t ms) {
  const std::time_t seconds = kStartUs / 1000000 + ms / 1000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40], whole[64];
  (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  (void)std::snprintf(whole, sizeof whole, "%s.%03d000Z", text, static_cast<int>(ms % 1000));
  return whole;
}

}  // namespace

RecordMaker::RecordMaker() : prev_(64, '0') {
  const char* base = std::getenv("TMPDIR");
  directory_ = join_path(base && *base ? base : "/tmp", "firestop-record-XXXXXX");
  if (!::mkdtemp(directory_.data())) ADD_FAILURE() << "mkdtemp " << directory_;
}

RecordMaker::~RecordMaker() {
  (void)remove_tree(directory_);
}

RecordMaker& RecordMaker::event(evidence::Vantage vantage, const std::string& kind, JsonObject data) {
  const Json made = JsonObject{{"data", std::move(data)},
                               {"kind", kind},
                               {"mono_us", ms_ * 1000},
                               {"prev", prev_},
                               {"seq", seq_++},
                               {"time", time_text(ms_)},
                               {"vantage", vantage == evidence::Vantage::kHost ? "host" : "guest"}};
  auto text = codec::write_canonical_json(made);
  if (!text) ADD_FAILURE() << text.error().to_string();
  return line(text ? *text : "{}");
}

RecordMaker& RecordMaker::line(const std::string& raw) {
  prev_ = sha256_hex(raw);
  lines_ += raw + "\n";
  return *this;
}

RecordMaker& RecordMaker::tail(const std::string& raw) {
  lines_ += raw;
  return *this;
}

RecordMaker& RecordMaker::at(int64_t ms) {
  ms_ = ms;
  return *this;
}

RecordMaker& RecordMaker::fork(uint32_t pid, uint32_t parent) {
  return guest("process.fork", {{"pid", pid}, {"parent", parent}, {"at_us", kStartUs + ms_ * 1000}});
}

RecordMaker& RecordMaker::exec(uint32_t pid, uint32_t parent, const std::vector<std::string>& argv,
                               JsonObject more) {
  codec::JsonArray words;
  for (const auto& word : argv) words.push_back(evidence::json_of_bytes(word));
  JsonObject data{{"pid", pid},
                  {"parent", parent},
                  {"at_us", kStartUs + ms_ * 1000},
                  {"uid", 1000},
                  {"gid", 1000},
                  {"file", evidence::json_of_bytes(argv.empty() ? "/bin/true" : argv[0])},
                  {"image", true},
                  {"argv", words},
                  {"argc", static_cast<int64_t>(argv.size())},
                  {"cwd", "/workspace"}};
  for (auto& [key, value] : more) data.insert_or_assign(key, std::move(value));
  return guest("process.exec", std::move(data));
}

RecordMaker& RecordMaker::exit(uint32_t pid, int status, int64_t cpu_us) {
  return guest("process.exit", {{"pid", pid},
                                {"at_us", kStartUs + ms_ * 1000},
                                {"status", status},
                                {"user_us", cpu_us},
                                {"system_us", cpu_us / 4},
                                {"max_rss_kib", 4096}});
}

RecordMaker& RecordMaker::code(uint32_t pid, const std::string& how, const std::string& path,
                               std::string_view bytes, JsonObject more) {
  const auto size = static_cast<int64_t>(bytes.size());
  JsonObject data{{"pid", pid},   {"at_us", kStartUs + ms_ * 1000},
                  {"how", how},   {"digest", content(bytes)},
                  {"size", size}, {"kept", size}};
  if (!path.empty()) data["path"] = evidence::json_of_bytes(path);
  for (auto& [key, value] : more) data.insert_or_assign(key, std::move(value));
  return guest("code", std::move(data));
}

RecordMaker& RecordMaker::change(uint32_t pid, const std::string& what, const std::string& path,
                                 const std::string& to) {
  JsonObject data{{"pid", pid}, {"at_us", kStartUs + ms_ * 1000}, {"path", evidence::json_of_bytes(path)}};
  if (!to.empty()) data["to"] = evidence::json_of_bytes(to);
  return guest("file." + what, std::move(data));
}

RecordMaker& RecordMaker::final(const std::string& path, std::string_view bytes) {
  return guest("file.final", {{"path", evidence::json_of_bytes(path)},
                              {"size", static_cast<int64_t>(bytes.size())},
                              {"digest", sha256_hex(bytes)}});
}

RecordMaker& RecordMaker::network(const std::string& kind, JsonObject data) {
  data.try_emplace("kind", kind);
  data.try_emplace("started_us", kStartUs + ms_ * 1000);
  return host("network." + kind, std::move(data));
}

std::string RecordMaker::content(std::string_view bytes) {
  const std::string digest = sha256_hex(bytes);
  const std::string folder = join_path(join_path(directory_, "content"), digest.substr(0, 2));
  if (const std::string path = join_path(folder, digest); !exists(path)) {
    EXPECT_TRUE(make_directories(folder));
    EXPECT_TRUE(write_file_atomic(path, bytes));
  }
  return digest;
}

void RecordMaker::write() {
  EXPECT_TRUE(write_file_atomic(join_path(directory_, "events.jsonl"), lines_));
}

Story RecordMaker::story() {
  write();
  auto story = read_story(directory_);
  if (!story) ADD_FAILURE() << story.error().to_string();
  return story ? std::move(*story) : Story{};
}

}  // namespace firestop::story::testing
