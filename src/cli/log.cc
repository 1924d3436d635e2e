// `firestop log RUN`: a record's events, also while it is written; `log path`: where it lies.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/log_export.h"
#include "cli/record_place.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "codec/utf8.h"
#include "evidence/event.h"
#include "sandbox/run_store.h"
#include "story/follow.h"

namespace firestop::cli {
namespace {

using evidence::Event;

constexpr size_t kMostWords = 300;  // bytes of an event's data that people are shown; --json has all
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 200'000'000};

struct Filter {
  std::vector<std::string> kinds;
  std::vector<int64_t> pids;

  bool wants(const Event& event) const {
    const auto of_kind = [&](const std::string& kind) {
      return event.kind == kind || (event.kind.starts_with(kind) && event.kind[kind.size()] == '.');
    };
    if (!kinds.empty() && std::none_of(kinds.begin(), kinds.end(), of_kind)) return false;
    if (pids.empty()) return true;
    return std::find(pids.begin(), pids.end(), event.data.int_or("pid", -1)) != pids.end();
  }
};

Result<Filter> filter_of(const ParsedArgs& args) {
  Filter out{.kinds = args.values("--kind"), .pids = {}};
  for (const auto& text : args.values("--pid")) {
    int64_t pid = 0;
    for (const char c : text)
      pid = c >= '0' && c <= '9' && pid < INT32_MAX ? pid * 10 + (c - '0') : INT64_MAX;
    if (text.empty() || pid > INT32_MAX)
      return fail("usage.pid", "'" + printable(text) + "' is no process id");
    out.pids.push_back(pid);
  }
  return out;
}

std::string value_text(const codec::Json& value) {
  if (value.as_string() || value.find("base64")) return evidence::bytes_of(value);
  return codec::write_json(value);
}

// "pid=7 parent=1 argv=[...]", of a program its command line.
std::string words_of(const Event& event) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : " ") + words; };
  const codec::Json* argv = event.kind == "process.exec" ? event.data.find("argv") : nullptr;
  for (const auto& [name, value] : *event.data.as_object())
    if (&value != argv && !value.is_null() && name != "at_us") add(name + "=" + value_text(value));
  if (const codec::JsonArray* list = argv ? argv->as_array() : nullptr) {
    add(":");
    for (const auto& word : *list) add(value_text(word));
  }
  return printable(codec::printable(out, kMostWords));
}

void print_event(Context& context, const Event& event) {
  Terminal& terminal = context.terminal;
  const bool host = event.vantage == evidence::Vantage::kHost;
  std::string kind = event.kind;
  kind.resize(std::max<size_t>(kind.size(), 18), ' ');
  terminal.out(terminal.paint(Style::kDim, event.time.substr(11, 12), Stream::kOut) + "  " +
               (host ? "host   " : "guest  ") + terminal.paint(Style::kBold, kind, Stream::kOut) + "  " +
               words_of(event) + "\n");
}

// Prints what there is; true when that was the record's end.
Result<bool> print_available(story::Follower& follower, const Filter& filter, Context& context) {
  for (;;) {
    TRY_ASSIGN(const auto line, follower.next());
    if (!line) return false;
    const auto event = evidence::parse_event(*line);
    if (!event) return wrap(event.error(), "line " + std::to_string(follower.number()) + " of the record");
    if (filter.wants(*event)) {
      if (context.json)
        context.terminal.out(std::string(*line) + "\n");
      else
        print_event(context, *event);
    }
    if (event->kind == "record.end") return true;
  }
}

Result<int> log(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const Filter filter, filter_of(args));
  TRY_ASSIGN(RecordPlace place, find_record(args.required("RUN"), context));
  if (wants_export(args)) return export_record(args, place.directory, context);
  TRY_ASSIGN(auto follower, story::Follower::open(place.directory));
  for (;;) {
    // Asked before the record is read: what its last owner wrote is there by then.
    const bool grows = args.has("--follow") && (place.run.empty() || place.alive);
    TRY_ASSIGN(const bool ended, print_available(follower, filter, context));
    if (ended || !grows) return 0;
    TRY(context.terminal.flush());
    (void)::nanosleep(&kPause, nullptr);
    if (!place.run.empty()) {
      TRY_ASSIGN(const auto run, sandbox::RunStore(state_directory()).find(place.run));
      place.alive = run.alive;
    }
  }
}

Result<int> path(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const RecordPlace place, find_record(args.required("RUN"), context));
  if (!exists(join_path(place.directory, "events.jsonl")))
    return fail("evidence.not_found", "there is no record in " + printable(place.directory),
                "a run of an earlier Firestop has none");
  if (context.json)
    print_json(context, codec::JsonObject{{"directory", place.directory}});
  else
    context.terminal.out(place.directory + "\n");
  return 0;
}

}  // namespace

CommandSpec log_command() {
  CommandSpec spec{
      .name = "log",
      .summary = "show the record of a run, also while it runs",
      .description =
          "Prints the events of a run's record in their order: when, who saw it (the host, or the collectors "
          "in "
          "the guest), what kind, and what. docs/evidence.md has the kinds and their data.\n\n"
          "Nothing is verified here: `firestop log verify` does that. A run whose name is that of a command "
          "is named behind --.",
      .positionals = {run_or_directory()},
      .options = {{.name = "--follow",
                   .metavar = "",
                   .help = "go on with what is written, until the record ends"},
                  {.name = "--kind",
                   .metavar = "KIND",
                   .help = "only events of this kind, such as code, or of all below it, such as network",
                   .kind = OptionKind::kRepeatable},
                  {.name = "--pid",
                   .metavar = "PID",
                   .help = "only events of this process of the guest",
                   .kind = OptionKind::kRepeatable},
                  {.name = "--json",
                   .metavar = "",
                   .help = "print the events as the record has them, one JSON object a line"}},
      .examples = {{"firestop log fix --follow", "watch the newest run that is named fix"},
                   {"firestop log fix --kind network --kind alarm", "what crossed"},
                   {"firestop log fix --json | jq -r 'select(.kind == \"code\") | .data.path'",
                    "which code ran that is not from the image"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "there is no record, or it cannot be read")},
      .handler = log,
  };
  const auto exports = export_options();
  spec.options.insert(spec.options.end() - 1, exports.begin(), exports.end());
  spec.examples.push_back(
      {"firestop log fix --format ocsf >> events.ocsf.jsonl", "for a collector of events"});
  spec.examples.push_back({"firestop log fix --otlp http://127.0.0.1:4318", "to an OpenTelemetry receiver"});
  return spec;
}

CommandSpec log_path_command() {
  return {
      .name = "log path",
      .summary = "print the directory that a run's record lies in",
      .description = "Prints one line: the directory with events.jsonl, checkpoints.jsonl and content/.",
      .positionals = {run_or_directory()},
      .options = {json_option()},
      .examples = {{"jq . \"$(firestop log path fix)/events.jsonl\"", "the events, for a program"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "there is no record")},
      .handler = path,
  };
}

}  // namespace firestop::cli
