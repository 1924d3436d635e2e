// Records as others read them: OCSF, held against its classes' requirements, and OTLP against a receiver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "exports/ocsf.h"
#include "exports/otlp.h"
#include "story/testing/record_maker.h"

namespace firestop::exports {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using story::testing::RecordMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One event of each kind of docs/evidence.md.
void make_all(RecordMaker& record) {
  record.host("record.begin", {{"format", 1},
                               {"run", "r-1"},
                               {"name", "fix"},
                               {"version", "0.4"},
                               {"manifest_digest", std::string(64, 'a')},
                               {"key", "k"}});
  record.host("run.plan", {{"command", JsonArray{"agent"}}}).host("run.cap", {{"name", "memory"}});
  record.host("run.state", {{"state", "started"}}).host("file.in", {{"path", "repo"}, {"type", "git_repo"}});
  record.guest("collectors", {{"working", JsonArray{"processes"}}});
  record.fork(7, 1).exec(7, 1, {"/usr/bin/make", "-j", "a b"},
                         {{"digest", std::string(64, 'b')}, {"size", 12}});
  record.code(7, "argument", "/workspace/x.sh", "echo", {{"interpreter", "/bin/sh"}});
  record.code(7, "stdin", "", "echo", {{"interpreter", "/bin/sh"}});
  record.change(7, "write", "/workspace/a").change(7, "rename", "/workspace/a", "/workspace/b");
  record.change(7, "delete", "/workspace/b").final("c", "x");
  record.guest(
      "socket",
      {{"pid", 7}, {"protocol", "tcp"}, {"source_port", 5}, {"address", "198.18.0.1"}, {"port", 443}});
  record.network("name", {{"verdict", "denied"}, {"code", "egress.no_rule"}, {"host", "x.example.com"}});
  record.network("connection",
                 {{"verdict", "failed"}, {"code", "egress.unreachable"}, {"host", "y"}, {"port", 1}});
  record.network("request", {{"verdict", "allowed"},
                             {"rule", "egress[0]"},
                             {"scheme", "https"},
                             {"host", "a.example.com"},
                             {"port", 443},
                             {"method", "GET"},
                             {"path", "/v1"},
                             {"status", 200},
                             {"pid", 7},
                             {"bytes_in", 10},
                             {"bytes_out", 5},
                             {"took_us", 2000},
                             {"source_port", 5}});
  record.network("request", {{"verdict", "denied"},
                             {"code", "egress.method"},
                             {"scheme", "https"},
                             {"host", "a.example.com"},
                             {"method", "PROPFIND"},
                             {"path", "/"}});
  record.network("datagram", {{"verdict", "denied"}, {"address", "1.1.1.1"}, {"port", 443}});
  record.network("alarm", {{"verdict", "denied"}, {"credential", "model"}, {"host", "z"}});
  record.host("cap.hit", {{"cap", "output"}}).host("alarm", {{"credential", "model"}, {"action", "deny"}});
  record.guest("denied", {{"what", "exec"}}).guest("lost", {{"what", "code"}, {"count", 1}});
  record.exit(7, 2 << 8).guest("collectors.done", {}).host("file.out", {{"path", "out"}, {"size", 4}});
  record.host("record.end", {{"status", 0}});
  record.write();
}

// What schema.ocsf.io requires, of version 1.6.0: the base event's attributes and those of each class; of two
// in one text, "a|b", at least one. Of objects, by the attribute that holds them.
const std::vector<std::string> kEvery = {"activity_id", "category_uid", "class_uid", "metadata",
                                         "severity_id", "time",         "type_uid"};
const std::map<int64_t, std::vector<std::string>> kOfClass = {
    {0, {}},
    {1001, {"actor", "device", "file"}},
    {1007, {"actor", "device", "process"}},
    {4001, {"dst_endpoint|src_endpoint"}},
    {4002, {"dst_endpoint|src_endpoint", "http_request|http_response"}},
    {4003, {"dst_endpoint|src_endpoint", "query"}},
};
const std::map<std::string, std::vector<std::string>> kOfObject = {
    {"metadata", {"product", "version"}},
    {"product", {"name|uid"}},
    {"device", {"type_id"}},
    {"actor", {"process|user|app_name|app_uid"}},
    {"process", {"pid|uid"}},
    {"parent_process", {"pid|uid"}},
    {"file", {"name", "type_id"}},
    {"file_result", {"name", "type_id"}},
    {"user", {"name|uid"}},
    {"dst_endpoint", {"ip|uid|name|hostname"}},
    {"src_endpoint", {"ip|uid|name|hostname"}},
    {"query", {"hostname"}},
    {"url", {"url_string|path"}},
    {"http_response", {"code"}},
    {"hashes", {"algorithm_id", "value"}},
};
const std::map<int64_t, std::set<int64_t>> kActivities = {
    {0, {0, 99}},
    {1001, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 99}},
    {1007, {1, 2, 3, 4, 5, 99}},
    {4001, {1, 2, 3, 4, 5, 6, 7, 99}},
    {4002, {1, 2, 3, 4, 5, 6, 7, 8, 9, 99}},
    {4003, {1, 2, 6, 99}},
};

void expect_members(const Json& object, const std::vector<std::string>& required, const std::string& where) {
  for (const std::string& each : required) {
    bool found = false;
    for (size_t at = 0; at <= each.size();) {
      const size_t end = std::min(each.find('|', at), each.size());
      found |= object.find(each.substr(at, end - at)) != nullptr;
      at = end + 1;
    }
    EXPECT_TRUE(found) << where << " has no " << each << ": " << codec::write_json(object);
  }
}

void expect_objects(const Json& value, const std::string& name) {
  if (name == "unmapped") return;  // of the record, not of the schema
  if (const JsonArray* array = value.as_array())
    for (const Json& each : *array) expect_objects(each, name);
  const JsonObject* object = value.as_object();
  if (!object) return;
  if (const auto required = kOfObject.find(name); required != kOfObject.end())
    expect_members(value, required->second, name);
  for (const auto& [key, inner] : *object) expect_objects(inner, key);
}

TEST(Ocsf, EveryEventHasWhatItsClassRequires) {
  RecordMaker record;
  make_all(record);
  std::map<int64_t, int> classes;
  uint64_t lines = 0;
  const auto done = export_ocsf(record.directory(), [&](const std::string& line) -> Result<void> {
    const auto event = codec::parse_json(line);
    EXPECT_TRUE(event && line.ends_with('\n')) << line;
    if (!event) return {};
    const int64_t uid = event->int_or("class_uid", -1), activity = event->int_or("activity_id", -1);
    ++classes[uid];
    ++lines;
    expect_members(*event, kEvery, "event");
    EXPECT_TRUE(kOfClass.contains(uid)) << uid;
    if (kOfClass.contains(uid)) expect_members(*event, kOfClass.at(uid), "class " + std::to_string(uid));
    expect_objects(*event, "");
    EXPECT_EQ(event->int_or("category_uid", -1), uid / 1000);
    EXPECT_EQ(event->int_or("type_uid", -1), uid * 100 + activity);
    EXPECT_TRUE(kActivities.at(uid).contains(activity)) << uid << " " << activity;
    EXPECT_GT(event->int_or("time", 0), 1700000000000);
    EXPECT_EQ(event->find("metadata")->string_or("version", ""), "1.6.0");
    return {};
  });
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(lines, 29u);
  const std::map<int64_t, int> expected = {{0, 11}, {1001, 8}, {1007, 3}, {4001, 4}, {4002, 2}, {4003, 1}};
  EXPECT_EQ(classes, expected);
}

TEST(Ocsf, WhatIsSaidOfARequestAndOfAnExit) {
  RecordMaker record;
  make_all(record);
  std::vector<Json> requests, exits;
  ASSERT_TRUE(export_ocsf(record.directory(), [&](const std::string& line) -> Result<void> {
    auto event = codec::parse_json(line);
    if (event->int_or("type_uid", 0) == 400203 || event->int_or("class_uid", 0) == 4002)
      requests.push_back(*event);
    if (event->int_or("type_uid", 0) == 100702) exits.push_back(*event);
    return {};
  }));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].int_or("type_uid", 0), 400203);
  EXPECT_EQ(requests[0].int_or("disposition_id", 0), 1);
  EXPECT_EQ(requests[0].find("http_response")->int_or("code", 0), 200);
  EXPECT_EQ(requests[0].find("http_request")->find("url")->string_or("url_string", ""),
            "https://a.example.com/v1");
  EXPECT_EQ(requests[0].find("actor")->find("process")->string_or("cmd_line", ""), "/usr/bin/make -j 'a b'");
  EXPECT_EQ(requests[1].int_or("disposition_id", 0), 2);
  EXPECT_EQ(requests[1].find("http_response"), nullptr);
  EXPECT_EQ(requests[1].string_or("status_code", ""), "egress.method");
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].int_or("exit_code", 0), 2);
  EXPECT_EQ(exits[0].int_or("status_id", 0), 2);
}

TEST(Ocsf, ARecordThatIsNoneIsAnError) {
  RecordMaker record;
  record.line("{}").write();
  const auto sink = [](const std::string&) -> Result<void> { return {}; };
  EXPECT_EQ(export_ocsf(record.directory(), sink).error().code, "evidence.bad_event");
  EXPECT_EQ(export_ocsf("/nowhere", sink).error().code, "evidence.not_found");
}

class Otlp : public ::testing::Test {
 protected:
  Result<OtlpResult> run() {
    return export_otlp(record_.directory(),
                       {[this](const std::string& json) -> Result<OtlpAnswer> {
                          posts_.push_back(json);
                          if (answers_.empty()) return OtlpAnswer{200, "{}", {}};
                          auto answer = answers_.front();
                          answers_.erase(answers_.begin());
                          return answer;
                        },
                        [this](std::chrono::milliseconds wait) { waits_.push_back(wait.count()); }});
  }

  RecordMaker record_;
  std::vector<std::string> posts_;
  std::vector<int64_t> waits_;
  std::vector<Result<OtlpAnswer>> answers_;
};

TEST_F(Otlp, EveryEventIsARecordWithItsResource) {
  make_all(record_);
  const auto result = run();
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->sent, 29u);
  ASSERT_EQ(posts_.size(), 1u);
  const auto request = codec::parse_json(posts_[0]);
  ASSERT_TRUE(request);
  const Json& logs = request->find("resourceLogs")->as_array()->at(0);
  EXPECT_THAT(codec::write_json(*logs.find("resource")),
              HasSubstr(R"({"key":"service.name","value":{"stringValue":"firestop"}})"));
  EXPECT_THAT(codec::write_json(*logs.find("resource")),
              HasSubstr(R"({"key":"firestop.run","value":{"stringValue":"r-1"}})"));
  const JsonArray& records = *logs.find("scopeLogs")->as_array()->at(0).find("logRecords")->as_array();
  ASSERT_EQ(records.size(), 29u);
  for (const Json& each : records) {
    // uint64 is a string of digits in this encoding.
    const std::string time = each.string_or("timeUnixNano", "");
    EXPECT_TRUE(time.size() == 19 && time.find_first_not_of("0123456789") == std::string::npos) << time;
    EXPECT_TRUE(codec::parse_json(each.find("body")->string_or("stringValue", "")));
  }
  EXPECT_EQ(records[7].string_or("eventName", ""), "firestop.process.exec");
  EXPECT_THAT(codec::write_json(records[7]), HasSubstr(R"({"key":"process.pid","value":{"intValue":"7"}})"));
}

TEST_F(Otlp, LargeRecordsGoInBatches) {
  record_.host("record.begin", {{"run", "r"}});
  for (size_t i = 0; i < 2 * kMostBatchEvents; ++i) record_.host("run.state", {{"state", "x"}});
  for (int i = 0; i < 20; ++i) record_.host("alarm", {{"credential", std::string(120000, 'x')}});
  record_.write();
  const auto result = run();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->sent, 1 + 2 * kMostBatchEvents + 20);
  EXPECT_GE(posts_.size(), 5u);
  for (const auto& post : posts_) EXPECT_LT(post.size(), 2 * kMostBatchBytes);
}

TEST_F(Otlp, TriesAgainWhereThatMayHelp) {
  make_all(record_);
  answers_ = {fail("post.failed", "no connection"), OtlpAnswer{503, "", {}},
              OtlpAnswer{429, "", std::chrono::seconds(7)}, OtlpAnswer{429, "", std::chrono::hours(5)},
              OtlpAnswer{200, "", {}}};
  const auto result = run();
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->retries, 4u);
  EXPECT_THAT(waits_, ElementsAre(1000, 2000, 7000, 30000));
  EXPECT_EQ(posts_[0], posts_[4]);
}

TEST_F(Otlp, GivesUpAndSaysSo) {
  make_all(record_);
  for (int i = 0; i < kMostAttempts; ++i) answers_.emplace_back(OtlpAnswer{503, "", {}});
  EXPECT_EQ(run().error().code, "otlp.unreachable");
  EXPECT_EQ(posts_.size(), static_cast<size_t>(kMostAttempts));
  answers_ = {OtlpAnswer{400, "no", {}}};
  const auto refused = run();
  EXPECT_EQ(refused.error().code, "otlp.refused");
  EXPECT_THAT(refused.error().message, HasSubstr("answered 400; 0 events were sent before"));
}

TEST_F(Otlp, WhatTheReceiverDidNotTakeIsCounted) {
  make_all(record_);
  answers_ = {
      OtlpAnswer{200, R"({"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}})", {}}};
  const auto result = run();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->sent, 26u);
  EXPECT_EQ(result->rejected, 3u);
  EXPECT_EQ(result->rejection, "too old");
}

TEST(OtlpAddress, HasThePathOfLogs) {
  EXPECT_EQ(otlp_address("http://127.0.0.1:4318").value(), "http://127.0.0.1:4318/v1/logs");
  EXPECT_EQ(otlp_address("https://example.com/").value(), "https://example.com/v1/logs");
  EXPECT_EQ(otlp_address("https://example.com/otlp/v1/logs").value(), "https://example.com/otlp/v1/logs");
  for (const char* bad : {"", "127.0.0.1:4318", "ftp://x", "http://", "http://a b", "http://a\r\nX: y"})
    EXPECT_EQ(otlp_address(bad).error().code, "usage.otlp") << bad;
}

}  // namespace
}  // namespace firestop::exports
