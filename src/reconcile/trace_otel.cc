// OTLP JSON (opentelemetry-proto, "JSON Protobuf Encoding"): spans and log records that have the attributes
// of the semantic conventions for generative AI's tool calls: gen_ai.tool.name, gen_ai.tool.call.id,
// gen_ai.tool.call.arguments, gen_ai.tool.call.result; or process.command_line, process.command_args and
// process.exit.code of a command.
#include <charconv>

#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using Answered = ClaimBook::Answered;

constexpr int kMostDepth = 8;  // of values in values

// AnyValue to a plain value.
Json plain(const Json& value, int depth) {
  if (const Json* text = value.find("stringValue")) return *text;
  if (const Json* truth = value.find("boolValue")) return *truth;
  if (const Json* number = value.find("doubleValue")) return *number;
  if (const Json* number = value.find("intValue")) {  // int64 is a string in this encoding
    int64_t parsed = 0;
    const std::string* text = number->as_string();
    if (!text) return *number;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), parsed);
    return error == std::errc() ? Json(parsed) : Json();
  }
  if (depth >= kMostDepth) return {};
  if (const JsonArray* values = member(member(value, "arrayValue"), "values").as_array()) {
    JsonArray out;
    for (const Json& each : *values) out.push_back(plain(each, depth + 1));
    return out;
  }
  if (const JsonArray* values = member(member(value, "kvlistValue"), "values").as_array()) {
    JsonObject out;
    for (const Json& each : *values) out[each.string_or("key", "")] = plain(member(each, "value"), depth + 1);
    return out;
  }
  return {};
}

JsonObject attributes_of(const Json& record) {
  JsonObject out;
  if (const JsonArray* list = member(record, "attributes").as_array())
    for (const Json& each : *list) out[each.string_or("key", "")] = plain(member(each, "value"), 0);
  return out;
}

class Otel final : public TraceReader {
 public:
  using TraceReader::TraceReader;

  bool take(const Json& entry) override {
    struct Signal {
      const char *resources, *scopes, *records;
    };
    constexpr Signal kSignals[] = {{"resourceSpans", "scopeSpans", "spans"},
                                   {"resourceLogs", "scopeLogs", "logRecords"}};
    bool known = false;
    for (const auto& [resources, scopes, records] : kSignals) {
      const JsonArray* all = member(entry, resources).as_array();
      known |= all != nullptr;
      for (const Json& resource : all ? *all : JsonArray())
        if (const JsonArray* inner = member(resource, scopes).as_array())
          for (const Json& scope : *inner)
            if (const JsonArray* list = member(scope, records).as_array())
              for (const Json& record : *list) one(record);
    }
    return known;
  }

 private:
  void one(const Json& record) {
    const Json attributes = attributes_of(record);
    const std::string tool = attributes.string_or("gen_ai.tool.name", "");
    std::string id = attributes.string_or("gen_ai.tool.call.id", record.string_or("spanId", ""));
    std::optional<int> exit;
    if (const int64_t* code = member(attributes, "process.exit.code").as_int();
        code && *code >= -255 && *code <= 255)
      exit = static_cast<int>(*code);
    if (const Json* arguments = attributes.find("gen_ai.tool.call.arguments"); arguments && !tool.empty()) {
      if (seen_.contains(id) && !id.empty()) return;  // a span and a log record of one call
      seen_[id] = true;
      book().call(id, tool, *arguments, {}, Answered::kYes);
      if (!exit) exit = exit_of_answer(member(attributes, "gen_ai.tool.call.result"));
      book().answer(id, {exit, true});
      return;
    }
    Claim claim{.kind = Claim::Kind::kCommand, .tool = tool.empty() ? "process" : tool};
    claim.exit = exit;
    claim.cwd = attributes.string_or("process.working_directory", "");
    if (const JsonArray* words = member(attributes, "process.command_args").as_array()) {
      for (const Json& word : *words)
        if (word.as_string()) claim.argv.push_back(*word.as_string());
    } else {
      claim.command = attributes.string_or("process.command_line", "");
    }
    if (!claim.command.empty() || !claim.argv.empty()) book().add(std::move(claim), {});
  }

  std::map<std::string, bool> seen_;
};

}  // namespace

std::unique_ptr<TraceReader> otel_reader(Trace& trace) {
  return std::make_unique<Otel>(trace);
}

}  // namespace firestop::reconcile
