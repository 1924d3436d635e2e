// `firestop network RUN`: what crossed, and what tried to.
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/record_view.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "egress/crossing_json.h"

namespace firestop::cli {
namespace {

using egress::Crossing;

// A crossing, and who made it where that is known.
struct Made {
  Crossing crossing;
  std::string process;         // "curl (12)", for people; "-" where it is not known
  codec::Json process_json{};  // or null
};

std::string what(const Crossing& crossing) {
  const std::string place =
      crossing.host + (crossing.port > 0 ? ":" + std::to_string(crossing.port) : std::string());
  switch (crossing.kind) {
    case Crossing::Kind::kName:
      return crossing.host;
    case Crossing::Kind::kRequest:
    case Crossing::Kind::kAlarm:
      if (!crossing.method.empty())
        return crossing.method + " " + crossing.scheme + "://" + place + crossing.path;
      return place;
    case Crossing::Kind::kConnection:
    case Crossing::Kind::kDatagram:
      break;
  }
  return crossing.scheme + " " + place;
}

Style style_of(const Crossing& crossing) {
  if (crossing.kind == Crossing::Kind::kAlarm) return Style::kRed;
  if (crossing.verdict == "allowed") return Style::kGreen;
  return crossing.verdict == "denied" ? Style::kYellow : Style::kRed;
}

// Of a record; what is no crossing is left out.
std::vector<Made> crossings_of(const story::Story& story) {
  std::vector<Made> out;
  for (const auto& event : story.network) {
    codec::Json json = event.data;
    if (codec::JsonObject* data = json.as_object()) (*data)["kind"] = event.kind;
    if (auto crossing = egress::crossing_of(json))
      out.push_back(
          {std::move(*crossing), process_text(story, event.process), process_json(story, event.process)});
  }
  return out;
}

struct Told {
  std::vector<Made> crossings;
  bool network_used = true;
  uint64_t lost = 0;
};

Result<Told> crossings(const std::string& word, Context& context) {
  TRY_ASSIGN(const auto record, open_record(word, context));
  Told told;
  told.crossings = crossings_of(record.story);
  const codec::Json* rules = record.story.plan.find("egress");
  told.network_used = rules && rules->as_array() && !rules->as_array()->empty();
  if (const auto lost = record.story.lost.find("network"); lost != record.story.lost.end())
    told.lost = lost->second;
  return told;
}

codec::Json json_of(const Told& told) {
  codec::JsonArray list;
  for (const auto& [crossing, name, process] : told.crossings) {
    codec::Json json = egress::to_json(crossing);
    if (codec::JsonObject* data = json.as_object(); data && !process.is_null()) (*data)["process"] = process;
    list.push_back(std::move(json));
  }
  return list;
}

Result<int> network(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const Told told, crossings(args.required("RUN"), context));
  if (context.json) {
    print_json(context, json_of(told));
    return 0;
  }
  if (told.crossings.empty()) {
    context.terminal.out(told.network_used ? "nothing tried to cross\n" : "the run had no network\n");
    return 0;
  }
  Table table({{"TIME"},
               {"KIND"},
               {"VERDICT"},
               {"STATUS", Table::Align::kRight},
               {"RULE"},
               {"PROCESS"},
               {"WHAT"},
               {"DETAIL"}});
  for (const auto& [crossing, process, json] : told.crossings)
    table.add({{time_of_day(crossing.started_us), Style::kDim},
               {egress::to_string(crossing.kind), {}},
               {crossing.verdict + (crossing.code.empty() ? "" : " " + crossing.code), style_of(crossing)},
               {crossing.status > 0 ? std::to_string(crossing.status) : "-", {}},
               {crossing.rule.empty() ? "-" : crossing.rule, {}},
               {process, {}},
               {what(crossing) + (crossing.credential.empty() ? "" : " with " + crossing.credential), {}},
               {printable(crossing.detail), Style::kDim}});
  context.terminal.out(table.render(context.terminal));
  if (told.lost > 0) context.terminal.out("and " + std::to_string(told.lost) + " that could not be kept\n");
  return 0;
}

}  // namespace

CommandSpec network_command() {
  return {
      .name = "network",
      .summary = "list what crossed a run's network, and what tried to",
      .description =
          "Every name that was asked for, connection, request and datagram of a run, in order: whether it "
          "was allowed, by which rule, if not, why (docs/egress.md has the codes), and which process of the "
          "guest it was, where the collectors saw it. Credentials appear by name only.\n\n"
          "With --json: an array of objects, each with `process`.",
      .positionals = {run_or_directory()},
      .options = {json_option()},
      .examples = {{"firestop network fix", "the newest run that is named fix"},
                   {"firestop network fix --json | jq '.[] | select(.verdict != \"allowed\")'",
                    "what was stopped, for a program"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "the runs cannot be read")},
      .handler = network,
  };
}

}  // namespace firestop::cli
