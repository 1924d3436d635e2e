// The OpenAI Agents SDK's traces, as its exporters write them: objects "trace" and "trace.span", one a line
// or in the "data" of a batch. A call is a span whose span_data has the type "function", with input and
// output; "response" spans with the model's items are read too, where an exporter keeps them.
#include "reconcile/trace_reader.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;
using Answered = ClaimBook::Answered;

class OpenAiAgents final : public TraceReader {
 public:
  using TraceReader::TraceReader;

  bool take(const Json& entry) override {
    if (const JsonArray* batch = member(entry, "data").as_array()) {
      bool known = false;
      for (const Json& each : *batch) known |= one(each);
      return known;
    }
    return one(entry);
  }

 private:
  bool one(const Json& object) {
    const std::string kind = object.string_or("object", "");
    if (kind == "trace") return true;
    const Json& data = member(object, "span_data");
    if (kind != "trace.span" || !data.as_object()) return false;
    if (data.string_or("type", "") != "function") return true;
    const std::string id = object.string_or("id", "");
    const Json& output = member(data, "output");
    book().call(id, data.string_or("name", ""), member(data, "input"), {}, Answered::kNo);
    // A span is written when its call has ended; one with an error may have ended before it began.
    book().answer(id, {exit_of_answer(output), !member(object, "error").as_object()});
    return true;
  }
};

}  // namespace

std::unique_ptr<TraceReader> openai_agents_reader(Trace& trace) {
  return std::make_unique<OpenAiAgents>(trace);
}

}  // namespace firestop::reconcile
