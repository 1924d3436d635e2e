#include <algorithm>

#include "base/path.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using sandbox::RunStore;

// Ids without repeats, and what could not be found.
struct Chosen {
  std::vector<std::string> ids;
  std::vector<Error> errors;
};

Result<Chosen> choose(const RunStore& store, const ParsedArgs& args) {
  Chosen chosen;
  const auto add = [&](const std::string& id) {
    if (std::find(chosen.ids.begin(), chosen.ids.end(), id) == chosen.ids.end()) chosen.ids.push_back(id);
  };
  for (const auto& word : args.values("RUN")) {
    auto found = store.find(word);
    if (found)
      add(found->record.id);
    else
      chosen.errors.push_back(std::move(found).error());
  }
  if (args.has("--ended")) {
    TRY_ASSIGN(const auto all, store.list());
    for (const auto& run : all)
      if (!run.alive) add(run.record.id);
  }
  return chosen;
}

Result<int> rm(const ParsedArgs& args, Context& context) {
  if (!args.has("RUN") && !args.has("--ended"))
    return fail("usage.missing_argument", "'firestop rm' needs RUN or --ended",
                "`firestop runs` lists the runs");
  RunStore store(state_directory());
  sweep(context, store);
  TRY_ASSIGN(Chosen chosen, choose(store, args));
  codec::JsonArray removed, errors;
  for (const auto& id : chosen.ids) {
    if (auto done = store.remove(id)) {
      removed.push_back(id);
      if (!context.json) context.terminal.out("removed " + id + "\n");
    } else {
      chosen.errors.push_back(std::move(done).error());
    }
  }
  int status = 0;
  for (const auto& error : chosen.errors) {
    const ExitStatus its = status_of(error);
    status = std::max(status, static_cast<int>(its));
    errors.push_back(error_json(error, its));
    if (!context.json) report(context, error, its);
  }
  if (context.json)
    print_json(context, codec::JsonObject{{"removed", std::move(removed)}, {"errors", std::move(errors)}});
  return status;
}

}  // namespace

CommandSpec rm_command() {
  return {
      .name = "rm",
      .summary = "remove the records of runs that ended",
      .description =
          "Removes what Firestop keeps of a run: its record, its manifest and its console. Branches and "
          "output folders that came back are yours and stay. A run that lives is refused.\n\n"
          "With --json: {removed, errors}, the ids that are gone and an error for each that is not.",
      .positionals = {{.name = "RUN",
                       .help =
                           "its id, the beginning of its id if no other begins so, or its name (the newest)",
                       .kind = PositionalKind::kAnyNumber,
                       .completes = Completes::kRuns}},
      .options = {{.name = "--ended", .metavar = "", .help = "every run that does not live any more"},
                  json_option()},
      .examples = {{"firestop rm fix", "remove the newest run that is named fix"},
                   {"firestop rm --ended", "remove all but the living"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage,
                          "there is no such run, or more than one; the others are removed"),
                exit_note(ExitStatus::kCannotStart,
                          "a run lives, or could not be removed; the others are removed")},
      .handler = rm,
  };
}

}  // namespace firestop::cli
