// `firestop log verify`: is a record what its host wrote, and is all in it?
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "evidence/anchor.h"
#include "evidence/verify.h"

namespace firestop::cli {
namespace {

using evidence::Finding;
using evidence::Integrity;
using evidence::Verification;

// 1 is also what other commands say for "no"; 3: good as far as it goes.
constexpr int kBroken = 1, kUnfinished = 3;

codec::Json or_null(const std::optional<uint64_t>& number) {
  return number ? codec::Json(*number) : codec::Json();
}

codec::Json finding_json(const Finding& finding) {
  return codec::JsonObject{{"code", finding.code},
                           {"message", finding.message},
                           {"seq", or_null(finding.seq)},
                           {"last_seq", or_null(finding.last_seq)},
                           {"line", or_null(finding.line)},
                           {"checkpoint", or_null(finding.checkpoint)},
                           {"digest", finding.digest.empty() ? codec::Json() : codec::Json(finding.digest)}};
}

codec::Json verification_json(const RecordPlace& place, const Verification& found) {
  codec::JsonArray findings, gaps;
  for (const auto& finding : found.findings) findings.push_back(finding_json(finding));
  for (const auto& gap : found.gaps) gaps.emplace_back(gap);
  codec::Json trusted;
  if (found.trusted)
    trusted = codec::JsonObject{{"checkpoint", found.trusted->number},
                                {"count", found.trusted->count},
                                {"head", found.trusted->head},
                                {"time", found.trusted->time}};
  return codec::JsonObject{{"directory", place.directory},
                           {"run", found.run},
                           {"alive", place.alive},
                           {"integrity", to_string(found.integrity)},
                           {"complete", found.complete},
                           {"events", found.events},
                           {"checkpoints", found.checkpoints},
                           {"contents", found.contents},
                           {"anchored", found.anchored},
                           {"signer", found.signer.empty() ? codec::Json() : codec::Json(found.signer)},
                           {"trusted", std::move(trusted)},
                           {"findings", std::move(findings)},
                           {"more_findings", found.more_findings},
                           {"gaps", std::move(gaps)}};
}

std::string counted(uint64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string headline(const RecordPlace& place, const Verification& found) {
  switch (found.integrity) {
    case Integrity::kIntact:
      return "as its host wrote it, from begin to end";
    case Integrity::kPrefix:
      return place.alive ? "as its host wrote it so far; the run lives"
                         : "as its host wrote it as far as it goes";
    case Integrity::kBroken:
      return "not what its host wrote";
  }
  return {};
}

void print(Context& context, const RecordPlace& place, const Verification& found) {
  Terminal& terminal = context.terminal;
  const bool intact = found.integrity == Integrity::kIntact, broken = found.integrity == Integrity::kBroken;
  std::string text = terminal.paint(intact   ? Style::kGreen
                                    : broken ? Style::kRed
                                             : Style::kYellow,
                                    to_string(found.integrity), Stream::kOut) +
                     ": the record of run " + (found.run.empty() ? "?" : printable(found.run)) + " is " +
                     headline(place, found) + "\n";
  const auto line = [&](const char* label, const std::string& what) {
    text += "  " + std::string(label) + std::string(14 - std::string_view(label).size(), ' ') + what + "\n";
  };
  line("events", counted(found.events, "event", "events") + ", " +
                     counted(found.checkpoints, "checkpoint", "checkpoints") + ", " +
                     counted(found.contents, "content", "contents"));
  if (!found.signer.empty()) line("signed by", found.signer);
  if (found.anchored > 0) line("anchored", counted(found.anchored, "checkpoint", "checkpoints"));
  for (const auto& finding : found.findings) {
    text += "  " + finding.code + "\n      " + printable(finding.message) + "\n";
  }
  if (found.more_findings > 0) text += "  and " + std::to_string(found.more_findings) + " more\n";
  if (broken)
    text += found.trusted ? "  Up to checkpoint " + std::to_string(found.trusted->number) + " (" +
                                counted(found.trusted->count, "event", "events") + ", " +
                                printable(found.trusted->time) +
                                ") it is what was signed. Nothing after it can be trusted.\n"
                          : "  Nothing of it can be trusted.\n";
  text += terminal.paint(found.complete ? Style::kGreen : Style::kYellow,
                         found.complete ? "complete" : "incomplete", Stream::kOut) +
          (found.complete ? ": all collectors worked to their end, and nothing was lost\n" : ":\n");
  for (const auto& gap : found.gaps) text += "  " + printable(gap) + "\n";
  terminal.out(text);
}

int status_of(const Verification& found, const ParsedArgs& args) {
  if (found.integrity == Integrity::kBroken) return kBroken;
  if (found.integrity == Integrity::kPrefix) return kUnfinished;
  return args.has("--complete") && !found.complete ? kUnfinished : 0;
}

Result<int> verify(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const RecordPlace place, find_record(args.required("RUN"), context));
  evidence::VerifyOptions options{.run = place.run};
  TRY_ASSIGN(options.signers, trusted_signers(args));
  if (const auto where = args.value("--anchor")) {
    std::string run = place.run;
    if (run.empty()) {
      TRY_ASSIGN(run, evidence::run_of(place.directory));
    }
    TRY_ASSIGN(options.anchor, evidence::read_anchor(*where, run, options.signers));
  }
  TRY_ASSIGN(const Verification found, evidence::verify(place.directory, options));
  if (context.json)
    print_json(context, verification_json(place, found));
  else
    print(context, place, found);
  return status_of(found, args);
}

}  // namespace

CommandSpec log_verify_command() {
  return {
      .name = "log verify",
      .summary = "say whether a run's record is what its host wrote, and whether all is in it",
      .description =
          "Holds every event against the chain of digests, every checkpoint against its signature, and every "
          "stored program and script against its name. Names what was removed, changed, exchanged or cut, "
          "and "
          "from where on nothing can be trusted.\n\n"
          "Two answers. Integrity: intact, a prefix (it has no signed end: the run lives, or its host died), "
          "or broken. Completeness: whether the collectors saw all to the end.\n\n"
          "Who has the host's key can write a record anew. Against that there are anchors: give the one that "
          "the "
          "run had.",
      .positionals = {run_or_directory()},
      .options = {signers_option(),
                  {.name = "--anchor",
                   .metavar = "WHERE",
                   .help = "hold it against this anchor, too: a file, or git:REPO#REF",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--complete", .metavar = "", .help = "end with 3 if the record is not complete"},
                  json_option()},
      .examples = {{"firestop log verify fix", "the newest run that is named fix, signed by this user's key"},
                   {"firestop log verify ./received/ --signers hosts.pem", "a record of another host's"}},
      .exits = {exit_note(ExitStatus::kOk, "intact"),
                {"1", "broken: somebody changed it, or an unknown key signed it"},
                {"3", "a prefix, or with --complete: not complete"},
                exit_note(ExitStatus::kUsage, "there is no such run, or no key to trust"),
                exit_note(ExitStatus::kCannotStart, "there is no record, or it cannot be read")},
      .handler = verify,
  };
}

}  // namespace firestop::cli
