// `firestop scripts RUN`: what ran that nobody had read, and its bytes.
#include <unistd.h>

#include <algorithm>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/record_view.h"
#include "cli/report.h"
#include "cli/scripts_export.h"
#include "cli/terminal.h"
#include "codec/utf8.h"
#include "evidence/content_read.h"
#include "story/script_list.h"

namespace firestop::cli {
namespace {

using story::Script;
using story::Story;
using story::UnreadScript;

std::string exists_text(const Script& script) {
  if (!script.exists) return "?";
  return *script.exists ? "yes" : "no";
}

std::string what(const Script& script) {
  std::string text = script.path;
  if (text.empty()) text = "(" + script.how + ")";
  if (!script.interpreter.empty()) text += " by " + script.interpreter;
  if (!script.note.empty()) text += ": " + script.note;
  if (script.kept < script.size && !script.digest.empty())
    text += ": the first " + format_bytes(script.kept) + " are kept";
  return text;
}

std::string table_of(const Story& story, const std::vector<UnreadScript>& scripts, const Terminal& terminal) {
  Table table({{"N", Table::Align::kRight},
               {"TIME"},
               {"HOW"},
               {"SIZE", Table::Align::kRight},
               {"RUNS", Table::Align::kRight},
               {"EXISTS"},
               {"RAN BY"},
               {"WRITTEN BY"},
               {"WHAT"}});
  for (auto each = scripts.rbegin(); each != scripts.rend(); ++each) {
    const Script& script = story.scripts[each->last];
    table.add({{std::to_string(each->number), Style::kBold},
               {time_of_day(script.at_us), Style::kDim},
               {script.how, {}},
               {script.digest.empty() ? "-" : format_bytes(script.size), {}},
               {std::to_string(each->runs), {}},
               {exists_text(script), script.exists == false ? Style::kYellow : Style::kPlain},
               {runner_text(story, script), {}},
               {process_text(story, script.writer), {}},
               {what(script), script.digest.empty() ? Style::kRed : Style::kPlain}});
  }
  return table.render(terminal);
}

Result<const UnreadScript*> numbered(const std::vector<UnreadScript>& scripts, const std::string& number) {
  const bool digits = !number.empty() && number.size() < 10 &&
                      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  const size_t n = digits ? std::stoul(number) : 0;
  if (n == 0 || n > scripts.size())
    return fail("usage.bad_number", "there is no script " + number,
                scripts.empty() ? "the run ran none" : "they have 1 to " + std::to_string(scripts.size()));
  return &scripts[n - 1];
}

// The bytes as they are for a program; for a terminal what cannot move its cursor.
Result<int> show(const ReadRecord& record, const UnreadScript& which, Context& context) {
  const Script& script = record.story.scripts[which.last];
  if (script.digest.empty())
    return fail("evidence.no_bytes",
                "the bytes of script " + std::to_string(which.number) + " could not be had",
                script.note.empty() ? "" : "the guest says why: " + printable(script.note));
  TRY_ASSIGN(const auto bytes, evidence::read_content(record.directory, script.digest));
  if (script.kept < script.size)
    context.terminal.note("the first " + format_bytes(script.kept) + " of " + format_bytes(script.size) +
                          " are kept");
  if (context.json) {
    auto json = script_json(record.story, which);
    (*json.as_object())["bytes"] = evidence::json_of_bytes(bytes);
    print_json(context, json);
  } else if (context.terminal.settings().out_live) {
    context.terminal.out(codec::printable(bytes, 3 * evidence::kMostContentRead));
    if (!bytes.ends_with('\n')) context.terminal.out("\n");
  } else {
    context.terminal.out(bytes);
  }
  return 0;
}

Result<int> scripts(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(auto record, open_record(args.required("RUN"), context));
  if (args.has("--opened")) std::swap(record.story.scripts, record.story.opened);
  const auto all = story::unread_scripts(record.story);
  if (args.has("--show") && args.has("--export"))
    return fail("usage.conflict", "--show and --export are two things", "give one of them");
  if (const auto number = args.value("--show")) {
    TRY_ASSIGN(const UnreadScript* which, numbered(all, *number));
    return show(record, *which, context);
  }
  if (const auto directory = args.value("--export")) {
    TRY_ASSIGN(const auto exported, export_scripts(record, all, *directory));
    if (context.json) {
      print_json(context, codec::JsonObject{{"directory", *directory},
                                            {"files", exported.files},
                                            {"without_bytes", exported.without_bytes}});
      return 0;
    }
    context.terminal.out(std::to_string(exported.files) + (exported.files == 1 ? " file" : " files") +
                         " in " + printable(*directory) +
                         ", named by SHA-256; index.json says what they were\n");
    if (exported.without_bytes > 0)
      context.terminal.note(std::to_string(exported.without_bytes) + " without bytes are in index.json only");
    return 0;
  }
  if (context.json) {
    codec::JsonArray list;
    for (auto each = all.rbegin(); each != all.rend(); ++each)
      list.push_back(script_json(record.story, *each));
    print_json(context, std::move(list));
    return 0;
  }
  if (all.empty())
    context.terminal.out(record.story.working.empty() ? "nobody watched for scripts in this run\n"
                                                      : "nothing ran that is not from the image\n");
  else
    context.terminal.out(table_of(record.story, all, context.terminal));
  for (const auto& [lost, count] : record.story.lost)
    context.terminal.out("lost: " + std::to_string(count) + " of " + printable(lost) + "\n");
  for (const auto& missing : record.story.missing)
    context.terminal.out("not watched: " + printable(missing) + "\n");
  return 0;
}

}  // namespace

CommandSpec scripts_command() {
  return {
      .name = "scripts",
      .summary = "list what a run executed that nobody had read, and show its bytes",
      .description =
          "Every program and script that ran and is not from the image, newest first: how it ran (program, "
          "script, argument of an interpreter, module, command of -c or -e, stdin, typed), who ran it, who "
          "wrote it in this run, and whether it was still there, and the same, in the end ('?' where nobody "
          "knows). The same bytes of one file are one line, however often they ran.\n\n"
          "--show prints one's bytes: as they are into a file or pipe, made printable on a terminal. "
          "--export writes each as a file named by its SHA-256, and index.json. Bytes that were changed "
          "since "
          "the run are refused.\n\n"
          "--opened is about files that an interpreter opened and that do not look like code: data, most "
          "likely.\n\n"
          "With --json: an array of objects; with --show one object, and `bytes`.",
      .positionals = {run_or_directory()},
      .options = {{.name = "--show",
                   .metavar = "N",
                   .help = "print the bytes of the one with this number",
                   .kind = OptionKind::kValue},
                  {.name = "--export",
                   .metavar = "DIR",
                   .help = "write all bytes into this folder, each once",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kDirectories},
                  {.name = "--opened",
                   .help = "what interpreters opened that does not look like code, instead"},
                  json_option()},
      .examples = {{"firestop scripts fix", "what ran in the newest run that is named fix"},
                   {"firestop scripts fix --show 3 | less", "read the third"},
                   {"firestop scripts fix --export seen", "keep them all"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run or script, or more than one"),
                exit_note(ExitStatus::kCannotStart, "the record, or the bytes, cannot be read")},
      .handler = scripts,
  };
}

}  // namespace firestop::cli
