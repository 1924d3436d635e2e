// `firestop network RUN`: what crossed, and what tried to.
#include "sandbox/network.h"

#include <cstdio>
#include <ctime>

#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "codec/json.h"
#include "egress/crossing_json.h"

namespace firestop::cli {
namespace {

using egress::Crossing;
using sandbox::RunStore;

std::string time_of_day(int64_t us) {
  const std::time_t seconds = us / 1000000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32], whole[40];
  (void)std::strftime(text, sizeof text, "%H:%M:%S", &utc);
  (void)std::snprintf(whole, sizeof whole, "%s.%03d", text, static_cast<int>(us / 1000 % 1000));
  return us > 0 ? whole : "-";
}

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

// The lines of network.jsonl; one that was half written at a crash is left out.
Result<std::vector<Crossing>> crossings_of(const std::string& path) {
  std::vector<Crossing> out;
  auto text = read_file(path, 2 * sandbox::kMostNetworkLog);
  if (!text && text.error().sys_errno == ENOENT) return out;
  if (!text) return tl::unexpected(text.error());
  for (size_t from = 0; from < text->size();) {
    const size_t end = std::min(text->find('\n', from), text->size());
    if (const auto json = codec::parse_json(std::string_view(*text).substr(from, end - from)))
      if (auto crossing = egress::crossing_of(*json)) out.push_back(std::move(*crossing));
    from = end + 1;
  }
  return out;
}

Result<int> network(const ParsedArgs& args, Context& context) {
  RunStore store(state_directory());
  sweep(context, store);
  TRY_ASSIGN(const auto run, store.find(args.required("RUN")));
  TRY_ASSIGN(const auto crossings,
             crossings_of(join_path(store.directory_of(run.record.id), sandbox::kNetworkLog)));
  if (context.json) {
    codec::JsonArray list;
    for (const auto& crossing : crossings) list.push_back(egress::to_json(crossing));
    print_json(context, std::move(list));
    return 0;
  }
  if (crossings.empty()) {
    context.terminal.out(run.record.network.used ? "nothing tried to cross\n" : "the run had no network\n");
    return 0;
  }
  Table table(
      {{"TIME"}, {"KIND"}, {"VERDICT"}, {"STATUS", Table::Align::kRight}, {"RULE"}, {"WHAT"}, {"DETAIL"}});
  for (const auto& crossing : crossings)
    table.add({{time_of_day(crossing.started_us), Style::kDim},
               {egress::to_string(crossing.kind), {}},
               {crossing.verdict + (crossing.code.empty() ? "" : " " + crossing.code), style_of(crossing)},
               {crossing.status > 0 ? std::to_string(crossing.status) : "-", {}},
               {crossing.rule.empty() ? "-" : crossing.rule, {}},
               {what(crossing) + (crossing.credential.empty() ? "" : " with " + crossing.credential), {}},
               {printable(crossing.detail), Style::kDim}});
  context.terminal.out(table.render(context.terminal));
  if (run.record.network.lost > 0)
    context.terminal.out("and " + std::to_string(run.record.network.lost) + " that could not be kept\n");
  return 0;
}

}  // namespace

CommandSpec network_command() {
  return {
      .name = "network",
      .summary = "list what crossed a run's network, and what tried to",
      .description =
          "Every name that was asked for, connection, request and datagram of a run, in order: whether it "
          "was "
          "allowed, by which rule, and if not, why (docs/egress.md has the codes). Credentials appear by "
          "name only.\n\n"
          "With --json: an array of objects, as in the run's network.jsonl.",
      .positionals = {{.name = "RUN",
                       .help =
                           "its id, the beginning of its id if no other begins so, or its name (the newest)",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kRuns}},
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
