#include "exports/ocsf.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "codec/utf8.h"

namespace firestop::exports {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr size_t kMostText = 4096;
constexpr int kInformational = 1, kMedium = 3, kHigh = 4;
constexpr int kSuccess = 1, kFailure = 2;
constexpr int kVirtual = 6;      // device.type_id
constexpr int kRegularFile = 1;  // file.type_id
constexpr int kSha256 = 3;       // fingerprint.algorithm_id

struct Class {
  int uid = 0;
  const char* name;
};
constexpr Class kBase{0, "Base Event"}, kFile{1001, "File System Activity"},
    kProcess{1007, "Process Activity"}, kNetwork{4001, "Network Activity"}, kHttp{4002, "HTTP Activity"},
    kDns{4003, "DNS Activity"};

struct Activity {
  Class type = kBase;
  int id = 99;
  const char* name = "Other";
};

std::string text_of(const Json& data, const char* key) {
  const Json* value = data.find(key);
  return value ? codec::printable(evidence::bytes_of(*value), kMostText) : std::string();
}

std::string name_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.empty() ? (path.empty() ? "unknown" : path) : name;
}

Json file_of(const std::string& path, const Json& data) {
  JsonObject out{{"name", name_of(path)}, {"type_id", kRegularFile}, {"type", "Regular File"}};
  if (!path.empty()) out["path"] = path;
  if (const int64_t size = data.int_or("size", -1); size >= 0) out["size"] = size;
  if (const auto digest = data.string_or("digest", ""); !digest.empty())
    out["hashes"] =
        JsonArray{JsonObject{{"algorithm_id", kSha256}, {"algorithm", "SHA-256"}, {"value", digest}}};
  return out;
}

Json process_of(const evidence::Event& event, const story::RecordContext& context) {
  const int64_t pid = event.data.int_or("pid", 0);
  JsonObject out{{"pid", pid}};
  const story::KnownProcess* known = context.process(event);
  if (!known) return out;
  const std::string path = codec::printable(known->file, kMostText);
  out["name"] = name_of(path);
  if (!path.empty()) out["file"] = file_of(path, {});
  if (!known->command_line.empty()) out["cmd_line"] = codec::printable(known->command_line, kMostText);
  if (known->parent > 0) out["parent_process"] = JsonObject{{"pid", known->parent}};
  return out;
}

Json actor_of(const evidence::Event& event, const story::RecordContext& context) {
  if (event.data.int_or("pid", 0) > 0) return JsonObject{{"process", process_of(event, context)}};
  return JsonObject{{"app_name", "firestop"}};
}

Activity activity_of(const evidence::Event& event) {
  const std::string& kind = event.kind;
  if (kind == "process.exec" || kind == "process.fork") return {kProcess, 1, "Launch"};
  if (kind == "process.exit") return {kProcess, 2, "Terminate"};
  if (kind == "file.write") return {kFile, 3, "Update"};
  if (kind == "file.delete") return {kFile, 4, "Delete"};
  if (kind == "file.rename") return {kFile, 5, "Rename"};
  if (kind == "file.in" || kind == "file.link") return {kFile, 1, "Create"};
  if (kind == "file.out") return {kFile, 2, "Read"};
  if (kind == "code") return {kFile, 14, "Open"};
  if (kind == "file.final") return {kFile, 99, "Other"};
  if (kind == "network.name") return {kDns, 1, "Query"};
  if (!kind.starts_with("network.") && kind != "socket") return {};
  if (event.data.find("method")) {
    constexpr std::array<Activity, 9> kMethods = {{{kHttp, 2, "Delete"},
                                                   {kHttp, 3, "Get"},
                                                   {kHttp, 4, "Head"},
                                                   {kHttp, 5, "Options"},
                                                   {kHttp, 6, "Post"},
                                                   {kHttp, 7, "Put"},
                                                   {kHttp, 8, "Trace"},
                                                   {kHttp, 1, "Connect"},
                                                   {kHttp, 9, "Patch"}}};
    std::string method = event.data.string_or("method", "");
    for (size_t i = 1; i < method.size(); ++i)
      if (method[i] >= 'A' && method[i] <= 'Z') method[i] = static_cast<char>(method[i] - 'A' + 'a');
    for (const Activity& each : kMethods)
      if (method == each.name) return each;
    return {kHttp, 99, "Other"};
  }
  if (kind == "network.datagram") return {kNetwork, 6, "Traffic"};
  const std::string verdict = event.data.string_or("verdict", "allowed");
  if (verdict == "denied") return {kNetwork, 5, "Refuse"};
  if (verdict == "failed") return {kNetwork, 4, "Fail"};
  return {kNetwork, 1, "Open"};
}

void add_exit(const evidence::Event& event, JsonObject& out) {
  const auto status = static_cast<int>(std::clamp<int64_t>(event.data.int_or("status", 0), 0, 0xffff));
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  out["exit_code"] = code;
  out["status_id"] = code == 0 ? kSuccess : kFailure;
}

void add_process(const evidence::Event& event, const story::RecordContext& context, JsonObject& out) {
  Json process = process_of(event, context);
  if (event.kind == "process.exec") {
    (*process.as_object())["file"] = file_of(text_of(event.data, "file"), event.data);
    if (const auto directory = text_of(event.data, "cwd"); !directory.empty())
      (*process.as_object())["working_directory"] = directory;
    (*process.as_object())["user"] = JsonObject{{"uid", std::to_string(event.data.int_or("uid", 0))}};
  }
  // Who launched it is its parent; who ended is itself.
  if (const int64_t parent = event.data.int_or("parent", 0); parent > 0) {
    JsonObject launcher{{"pid", parent}};
    if (const auto known = context.processes.find(static_cast<uint32_t>(parent));
        known != context.processes.end())
      launcher["name"] = name_of(codec::printable(known->second.file, kMostText));
    out["actor"] = JsonObject{{"process", std::move(launcher)}};
  }
  out["process"] = std::move(process);
  if (event.kind == "process.exit") add_exit(event, out);
}

void add_file(const evidence::Event& event, JsonObject& out) {
  const std::string path = text_of(event.data, "path");
  const std::string how = event.data.string_or("how", "");
  Json file = file_of(path, event.data);
  if (path.empty() && !how.empty()) (*file.as_object())["name"] = "(" + how + ")";
  out["file"] = std::move(file);
  if (const auto to = text_of(event.data, "to"); !to.empty()) out["file_result"] = file_of(to, {});
  if (!how.empty())
    out["message"] =
        "ran as code that is not from the image: " + how + " by " + text_of(event.data, "interpreter");
}

void add_verdict(const evidence::Event& event, JsonObject& out) {
  const std::string verdict = event.data.string_or("verdict", "");
  const bool denied = verdict == "denied";
  if (verdict.empty()) return;
  out["action_id"] = denied ? 2 : 1;
  out["disposition_id"] = denied ? 2 : 1;
  out["status_id"] = verdict == "allowed" ? kSuccess : kFailure;
  if (denied) out["severity_id"] = kMedium;
  if (const auto code = text_of(event.data, "code"); !code.empty()) out["status_code"] = code;
  if (const auto detail = text_of(event.data, "detail"); !detail.empty()) out["status_detail"] = detail;
  if (const auto rule = text_of(event.data, "rule"); !rule.empty())
    out["firewall_rule"] = JsonObject{{"uid", rule}, {"name", rule}};
}

void add_endpoints(const evidence::Event& event, JsonObject& out) {
  const Json& data = event.data;
  JsonObject to;
  if (const auto host = text_of(data, "host"); !host.empty()) to["hostname"] = host;
  if (const auto address = text_of(data, "address"); !address.empty()) to["ip"] = address;
  if (to.empty()) to["name"] = "unknown";
  if (const int64_t port = data.int_or("port", 0); port > 0) to["port"] = port;
  out["dst_endpoint"] = std::move(to);
  JsonObject from{{"name", "guest"}};
  if (const int64_t port = data.int_or("source_port", 0); port > 0) from["port"] = port;
  out["src_endpoint"] = std::move(from);
  const int64_t sent = data.int_or("bytes_out", 0), got = data.int_or("bytes_in", 0);
  if (sent > 0 || got > 0) out["traffic"] = JsonObject{{"bytes_out", sent}, {"bytes_in", got}};
  if (const int64_t took = data.int_or("took_us", 0); took > 0) out["duration"] = took / 1000;
}

void add_network(const evidence::Event& event, const Activity& activity, JsonObject& out) {
  const Json& data = event.data;
  add_endpoints(event, out);
  add_verdict(event, out);
  if (event.kind == "network.alarm") out["severity_id"] = kHigh;
  const std::string host = text_of(data, "host");
  if (activity.type.uid == kDns.uid) out["query"] = JsonObject{{"hostname", host.empty() ? "unknown" : host}};
  if (activity.type.uid != kHttp.uid) return;
  const std::string scheme = text_of(data, "scheme"), path = text_of(data, "path");
  JsonObject url{
      {"hostname", host}, {"path", path}, {"scheme", scheme}, {"url_string", scheme + "://" + host + path}};
  if (const int64_t port = data.int_or("port", 0); port > 0) url["port"] = port;
  out["http_request"] = JsonObject{{"http_method", text_of(data, "method")}, {"url", std::move(url)}};
  // What never got one has none: status 0 would be a lie.
  if (const int64_t status = data.int_or("status", 0); status > 0)
    out["http_response"] = JsonObject{{"code", status}};
}

Json metadata_of(const evidence::Event& event, const story::RecordContext& context) {
  JsonObject product{{"name", "Firestop"}, {"vendor_name", "Firestop"}};
  if (!context.version.empty()) product["version"] = context.version;
  return JsonObject{{"version", kOcsfVersion},
                    {"product", std::move(product)},
                    {"uid", context.run + ":" + std::to_string(event.seq)},
                    {"sequence", event.seq},
                    {"correlation_uid", context.run},
                    {"event_code", event.kind},
                    {"log_name", "firestop record"},
                    {"original_time", event.time},
                    {"profiles", JsonArray{"host", "security_control"}}};
}

}  // namespace

Json to_ocsf(const evidence::Event& event, const story::RecordContext& context) {
  const Activity activity = activity_of(event);
  const int uid = activity.type.uid;
  JsonObject out{
      {"activity_id", activity.id},
      {"activity_name", activity.name},
      {"class_uid", uid},
      {"class_name", activity.type.name},
      {"category_uid", uid / 1000},
      {"type_uid", uid * 100 + activity.id},
      {"time", story::microseconds_of(event.time) / 1000},
      {"severity_id", event.kind == "alarm" ? kHigh : kInformational},
      {"metadata", metadata_of(event, context)},
      {"device", JsonObject{{"type_id", kVirtual},
                            {"type", "Virtual"},
                            {"uid", context.run.empty() ? "unknown" : context.run},
                            {"name", context.name.empty() ? "unknown" : context.name}}},
      {"actor", actor_of(event, context)},
      {"unmapped", JsonObject{{"vantage", event.vantage == evidence::Vantage::kHost ? "host" : "guest"},
                              {"kind", event.kind},
                              {"data", event.data}}}};
  if (uid == kProcess.uid) add_process(event, context, out);
  if (uid == kFile.uid) add_file(event, out);
  if (uid >= kNetwork.uid) add_network(event, activity, out);
  return out;
}

Result<void> export_ocsf(const std::string& directory,
                         const std::function<Result<void>(const std::string&)>& sink) {
  return story::for_each_event(directory,
                               [&sink](const evidence::Event& event, const story::RecordContext& context) {
                                 return sink(codec::write_json(to_ocsf(event, context)) + "\n");
                               });
}

}  // namespace firestop::exports
