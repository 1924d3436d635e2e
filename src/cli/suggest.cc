// `firestop suggest RUN...`: the smallest manifest for what runs used.
#include "report/suggest.h"

#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

constexpr uint64_t kMostManifest = 1u << 20;

Result<int> suggest(const ParsedArgs& args, Context& context) {
  std::vector<story::Story> stories;
  std::string manifest = args.value_or("--manifest", "");
  const std::string named = manifest.empty() ? "firestop.yaml" : manifest;
  for (const auto& run : args.values("RUN")) {
    TRY_ASSIGN(const auto place, find_record(run, context));
    TRY_ASSIGN(auto story, story::read_story(place.directory));
    const auto digest = [](const story::Story& each) { return each.begin.string_or("manifest_digest", ""); };
    if (!stories.empty() && digest(stories.front()) != digest(story))
      return fail("usage.manifests", printable(run) + " had another manifest than the first run",
                  "give runs of one manifest");
    stories.push_back(std::move(story));
    if (manifest.empty()) manifest = join_path(parent_path(place.directory), "manifest.yaml");
  }
  const auto text = read_file(manifest, kMostManifest);
  if (!text)
    return fail("manifest.unreadable", "the manifest of the run cannot be read: " + text.error().message,
                "--manifest FILE names it where only the record is at hand");
  TRY_ASSIGN(const auto suggestion, report::suggest(stories, *text, named));
  if (context.json)
    print_json(context, report::to_json(suggestion));
  else
    context.terminal.out(report::to_text(suggestion, [&context](std::string_view words) {
      return context.terminal.paint(Style::kBold, words, Stream::kOut);
    }));
  return 0;
}

}  // namespace

CommandSpec suggest_command() {
  auto runs = run_or_directory();
  runs.kind = PositionalKind::kOneOrMore;
  return {
      .name = "suggest",
      .summary = "print the smallest manifest for what runs used, and what they lacked",
      .description =
          "Reads the records of runs that had one manifest and prints, as a unified diff, what could be "
          "taken "
          "away from it without anything having been denied that they used: rules, methods, paths, "
          "credentials, "
          "capabilities, caps; with the reason for each. Below are the escape hatches: which verb needed "
          "which "
          "crossing that was denied, how often. docs/suggest.md has the rules.\n\n"
          "Nothing is changed. The diff can be given to patch(1); the result has to be signed again.\n\n"
          "With --json: an object with diff, manifest (the whole text), steps, escape_hatches and notes.",
      .positionals = {runs},
      .options = {{.name = "--manifest",
                   .metavar = "FILE",
                   .help = "the manifest that the runs had (default: the copy that lies with the first)",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  json_option()},
      .examples = {{"firestop suggest fix", "what the newest run that is named fix did not need"},
                   {"firestop suggest fix | patch firestop.yaml", "take it over"},
                   {"firestop suggest 20261129-10 20261129-11 --json | jq .escape_hatches",
                    "what two runs were denied"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or the runs had several manifests"),
                exit_note(ExitStatus::kCannotStart, "a record cannot be read")},
      .handler = suggest,
  };
}

}  // namespace firestop::cli
