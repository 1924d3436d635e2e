#include "exports/otlp.h"

#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "codec/utf8.h"

namespace firestop::exports {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using std::chrono::milliseconds;

constexpr size_t kMostText = 4096;
constexpr int kInfo = 9, kWarn = 13, kError = 17;  // SeverityNumber

Json text_value(std::string_view text) {
  return JsonObject{{"stringValue", codec::printable(text, kMostText)}};
}

// int64 is a string in this encoding.
Json number_value(int64_t number) {
  return JsonObject{{"intValue", std::to_string(number)}};
}

Json attribute(const char* key, Json value) {
  return JsonObject{{"key", key}, {"value", std::move(value)}};
}

int severity_of(const evidence::Event& event) {
  if (event.kind == "alarm" || event.kind == "network.alarm") return kError;
  const bool stopped = event.kind == "cap.hit" || event.kind == "denied" || event.kind == "lost" ||
                       event.data.string_or("verdict", "") == "denied";
  return stopped ? kWarn : kInfo;
}

// By the semantic conventions where these have a name for it.
void add_attributes(const evidence::Event& event, const story::RecordContext& context, JsonArray& out) {
  struct Name {
    const char *kind, *member, *attribute;
  };
  constexpr Name kTexts[] = {{"", "path", "file.path"},
                             {"", "cwd", "process.working_directory"},
                             {"network.", "host", "server.address"},
                             {"network.", "address", "network.peer.address"},
                             {"network.", "method", "http.request.method"},
                             {"network.", "path", "url.path"},
                             {"network.", "scheme", "url.scheme"},
                             {"", "verdict", "firestop.verdict"},
                             {"", "code", "firestop.code"},
                             {"", "rule", "firestop.rule"},
                             {"", "how", "firestop.how"},
                             {"", "digest", "firestop.sha256"},
                             {"", "credential", "firestop.credential"}};
  for (const auto& [kind, member, name] : kTexts) {
    const Json* value = event.data.find(member);
    const bool crossing = event.kind.starts_with("network.");
    if (!value || (*kind && !crossing) || (crossing && std::string_view(name) == "file.path")) continue;
    if (const auto text = evidence::bytes_of(*value); !text.empty())
      out.push_back(attribute(name, text_value(text)));
  }
  constexpr Name kNumbers[] = {{"", "pid", "process.pid"},
                               {"", "parent", "process.parent_pid"},
                               {"network.", "port", "server.port"},
                               {"network.", "status", "http.response.status_code"}};
  for (const auto& [kind, member, name] : kNumbers)
    if (const Json* value = event.data.find(member); value && value->as_int())
      if (!*kind || event.kind.starts_with(kind))
        out.push_back(attribute(name, number_value(*value->as_int())));
  if (const story::KnownProcess* process = context.process(event)) {
    if (!process->file.empty())
      out.push_back(attribute("process.executable.path", text_value(process->file)));
    if (!process->command_line.empty())
      out.push_back(attribute("process.command_line", text_value(process->command_line)));
  }
  if (event.kind == "process.exit") {
    const auto status = static_cast<int>(std::clamp<int64_t>(event.data.int_or("status", 0), 0, 0xffff));
    out.push_back(attribute("process.exit.code", number_value(WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                                                  : WEXITSTATUS(status))));
  }
}

class Sender {
 public:
  explicit Sender(const OtlpTransport& transport) : transport_(transport) {}

  Result<void> take(const evidence::Event& event, const story::RecordContext& context) {
    Json record = otlp_record(event, context);
    const size_t size = codec::write_json(record).size();
    if (!records_.empty() && (records_.size() >= kMostBatchEvents || bytes_ + size > kMostBatchBytes))
      TRY(flush(context));
    bytes_ += size;
    records_.push_back(std::move(record));
    last_ = {context.run, context.name, context.manifest_digest, context.version, {}};
    return {};
  }

  Result<OtlpResult> finish() {
    if (!records_.empty()) TRY(flush(last_));
    return result_;
  }

 private:
  Result<void> flush(const story::RecordContext& context) {
    const uint64_t count = records_.size();
    const std::string body = codec::write_json(otlp_request(std::exchange(records_, {}), context));
    bytes_ = 0;
    milliseconds wait{1000};
    for (int attempt = 1;; ++attempt) {
      const auto answer = transport_.post(body);
      if (answer && answer->status / 100 == 2) return taken(count, answer->body);
      // 4xx but 429 will be the same answer again (OTLP specification, "Failures").
      const bool again = !answer || answer->status == 429 || answer->status == 502 || answer->status == 503 ||
                         answer->status == 504;
      const std::string what = answer ? "answered " + std::to_string(answer->status) : answer.error().message;
      if (!again) return fail("otlp.refused", "the receiver " + what + so_far());
      if (attempt >= kMostAttempts)
        return fail("otlp.unreachable",
                    what + ", in " + std::to_string(kMostAttempts) + " attempts" + so_far());
      ++result_.retries;
      const auto asked = answer ? answer->retry_after : std::nullopt;
      const milliseconds pause = asked ? milliseconds(*asked) : wait;
      transport_.sleep(std::clamp<milliseconds>(pause, milliseconds(0), kMostWait));
      wait = std::min<milliseconds>(wait * 2, kMostWait);
    }
  }

  std::string so_far() const { return "; " + std::to_string(result_.sent) + " events were sent before"; }

  // An answer of 200 may say that some were not taken.
  Result<void> taken(uint64_t count, const std::string& body) {
    ++result_.batches;
    uint64_t rejected = 0;
    if (const auto json = codec::parse_json(body))
      if (const Json* partial = json->find("partialSuccess")) {
        const Json* number = partial->find("rejectedLogRecords");
        if (number && number->as_int())
          rejected = static_cast<uint64_t>(std::max<int64_t>(0, *number->as_int()));
        if (const std::string* text = number ? number->as_string() : nullptr)
          (void)std::from_chars(text->data(), text->data() + text->size(), rejected);
        if (rejected > 0) result_.rejection = codec::printable(partial->string_or("errorMessage", ""), 200);
      }
    rejected = std::min(rejected, count);
    result_.rejected += rejected;
    result_.sent += count - rejected;
    return {};
  }

  const OtlpTransport& transport_;
  OtlpResult result_;
  JsonArray records_;
  size_t bytes_ = 0;
  story::RecordContext last_;
};

}  // namespace

Json otlp_record(const evidence::Event& event, const story::RecordContext& context) {
  const int severity = severity_of(event);
  const std::string nanoseconds = std::to_string(story::microseconds_of(event.time)) + "000";
  JsonArray attributes;
  attributes.push_back(attribute("firestop.seq", number_value(static_cast<int64_t>(event.seq))));
  attributes.push_back(attribute("firestop.vantage",
                                 text_value(event.vantage == evidence::Vantage::kHost ? "host" : "guest")));
  add_attributes(event, context, attributes);
  return JsonObject{{"timeUnixNano", nanoseconds},
                    {"observedTimeUnixNano", nanoseconds},
                    {"severityNumber", severity},
                    {"severityText", severity == kInfo   ? "INFO"
                                     : severity == kWarn ? "WARN"
                                                         : "ERROR"},
                    {"eventName", "firestop." + event.kind},
                    // Whole, as the record has it; only its attributes are shortened.
                    {"body", JsonObject{{"stringValue", codec::write_json(event.data)}}},
                    {"attributes", std::move(attributes)}};
}

Json otlp_request(JsonArray records, const story::RecordContext& context) {
  JsonArray resource{attribute("service.name", text_value("firestop")),
                     attribute("service.instance.id", text_value(context.run)),
                     attribute("firestop.run", text_value(context.run)),
                     attribute("firestop.name", text_value(context.name)),
                     attribute("firestop.manifest.sha256", text_value(context.manifest_digest))};
  if (!context.version.empty()) resource.push_back(attribute("service.version", text_value(context.version)));
  return JsonObject{
      {"resourceLogs",
       JsonArray{
           JsonObject{{"resource", JsonObject{{"attributes", std::move(resource)}}},
                      {"scopeLogs", JsonArray{JsonObject{{"scope", JsonObject{{"name", "firestop.record"}}},
                                                         {"logRecords", std::move(records)}}}}}}}};
}

Result<OtlpResult> export_otlp(const std::string& directory, const OtlpTransport& transport) {
  Sender sender(transport);
  TRY(story::for_each_event(directory,
                            [&sender](const evidence::Event& event, const story::RecordContext& context) {
                              return sender.take(event, context);
                            }));
  return sender.finish();
}

Result<std::string> otlp_address(const std::string& endpoint) {
  const size_t scheme = endpoint.starts_with("https://") ? 8 : endpoint.starts_with("http://") ? 7 : 0;
  if (scheme == 0 || endpoint.size() == scheme || endpoint.find_first_of(" \r\n\t#") != std::string::npos)
    return fail("usage.otlp", "'" + codec::printable(endpoint, 200) + "' is no address of an OTLP receiver",
                "give one such as http://127.0.0.1:4318");
  const size_t path = endpoint.find('/', scheme);
  if (path == std::string::npos) return endpoint + "/v1/logs";
  if (path + 1 == endpoint.size()) return endpoint + "v1/logs";
  return endpoint;
}

}  // namespace firestop::exports
