// `firestop report RUN`: one page for who has to judge a run.
#include "base/file.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/record_view.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "evidence/verify.h"
#include "report/report.h"

namespace firestop::cli {
namespace {

Result<evidence::Verification> verified(const ParsedArgs& args, const std::string& directory) {
  evidence::VerifyOptions options;
  TRY_ASSIGN(options.signers, trusted_signers(args));
  return evidence::verify(directory, options);
}

Result<int> report_of_run(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const auto record, open_record(args.required("RUN"), context));
  const auto verification = verified(args, record.directory);
  if (!verification && args.has("--signers")) return tl::unexpected(verification.error());
  const auto page = report::make_report({.story = record.story,
                                         .word = record.word,
                                         .verification = verification ? &*verification : nullptr,
                                         .why_unverified = verification ? ""
                                                           : verification.error().code == "usage.signers"
                                                               ? "no key is trusted; --signers names some"
                                                               : verification.error().message});
  const std::string format = args.value_or("--format", "text");
  const std::string text = format == "html"       ? report::report_html(page)
                           : format == "markdown" ? report::report_markdown(page)
                                                  : report::report_text(page);
  if (const auto file = args.value("--out")) {
    TRY(write_file_atomic(*file, text, 0644));
    context.terminal.note("wrote " + *file);
  } else {
    context.terminal.out(text);
  }
  return 0;
}

}  // namespace

CommandSpec report_command() {
  return {
      .name = "report",
      .summary = "write one page about a run, for who has to judge it",
      .description =
          "What was granted, what of it was used and what never was; what was tried and denied; what ran "
          "that "
          "nobody had read; what came back, alarms, limits; and whether the record can be trusted. The HTML "
          "is "
          "one file without a script, which loads nothing.\n\n"
          "The record's signatures are checked with this host's key, or with those of --signers.",
      .positionals = {run_or_directory()},
      .options = {{.name = "--format",
                   .metavar = "FORMAT",
                   .help = "of the page (default text)",
                   .kind = OptionKind::kValue,
                   .values = {"text", "markdown", "html"},
                   .completes = Completes::kWords},
                  {.name = "--out",
                   .metavar = "FILE",
                   .help = "write it there instead of stdout",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  signers_option()},
      .examples = {{"firestop report fix", "the newest run that is named fix"},
                   {"firestop report fix --format html --out fix.html", "to be looked at in a browser"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "there is no such run, or more than one"),
                exit_note(ExitStatus::kCannotStart, "it has no record, or one that cannot be read")},
      .handler = report_of_run,
  };
}

}  // namespace firestop::cli
