// `firestop attest verify`: what a run's attestation says, and whether it is true of its record.
#include "evidence/attest.h"

#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/record_place.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "evidence/dsse.h"
#include "evidence/verify.h"

namespace firestop::cli {
namespace {

constexpr int kRefused = 1;

struct Place {
  std::string file, record;  // record: the directory to hold it against; empty if there is none
  std::string run;
};

Result<Place> find_attestation(const std::string& named, Context& context) {
  const bool file = named.find('/') != std::string::npos || named.ends_with(".json");
  if (file && !exists(join_path(named, "."))) {
    const std::string beside = parent_path(named);
    return Place{.file = named, .record = exists(join_path(beside, "events.jsonl")) ? beside : "", .run = ""};
  }
  TRY_ASSIGN(const RecordPlace place, find_record(named, context));
  return Place{.file = join_path(place.directory, evidence::kAttestation),
               .record = place.directory,
               .run = place.run};
}

// Whether the record is intact and stands for what is attested.
Result<void> check_record(const Place& place, const evidence::Attested& attested,
                          const std::vector<evidence::PublicKey>& signers) {
  if (!place.run.empty() && attested.run != place.run)
    return fail("evidence.other_run", "it is about run " + attested.run + ", and not about " + place.run);
  TRY_ASSIGN(const auto found,
             evidence::verify(place.record, {.signers = signers, .run = attested.run, .anchor = {}}));
  if (found.integrity != evidence::Integrity::kIntact)
    return fail("evidence.not_intact",
                "its record is not intact" +
                    (found.findings.empty() ? std::string() : ": " + found.findings.front().message),
                "`firestop log verify` says more");
  return evidence::compare_attestation(attested, place.record);
}

std::string subject_text(const codec::Json& subject) {
  std::string out = printable(subject.string_or("name", "?"));
  const codec::Json* digests = subject.find("digest");
  if (digests && digests->as_object())
    for (const auto& [algorithm, value] : *digests->as_object())
      out += "  " + printable(algorithm) + ":" + printable(value.as_string() ? *value.as_string() : "?");
  return out;
}

void print(Context& context, const evidence::Attested& attested, const Place& place) {
  Terminal& terminal = context.terminal;
  std::string text = terminal.paint(Style::kGreen, "attested", Stream::kOut) + ": run " +
                     printable(attested.run) + ", by key " + attested.signer + "\n";
  const codec::Json& predicate = *attested.statement.find("predicate");
  for (const auto& [name, value] : *predicate.as_object()) {
    if (name == "run" || value.is_null()) continue;
    const std::string label = printable(name);
    text += "  " + label + std::string(label.size() < 14 ? 14 - label.size() : 1, ' ') +
            printable(value.as_string() ? *value.as_string() : codec::write_json(value)) + "\n";
  }
  text += "Subjects:\n";
  if (const codec::Json* subjects = attested.statement.find("subject"); subjects && subjects->as_array())
    for (const auto& subject : *subjects->as_array()) text += "  " + subject_text(subject) + "\n";
  text += place.record.empty() ? "The record is not beside it: the signature was checked, and nothing else.\n"
                               : "The record beside it is intact and says the same.\n";
  terminal.out(text);
}

bool is_no(const Error& error) {
  for (const std::string_view code :
       {"evidence.bad_envelope", "evidence.unknown_key", "evidence.bad_signature", "evidence.bad_attestation",
        "evidence.other_statement", "evidence.other_run", "evidence.not_intact"})
    if (error.code == code) return true;
  return false;
}

Result<evidence::Attested> check(const Place& place, const std::vector<evidence::PublicKey>& signers) {
  TRY_ASSIGN(const std::string text, read_file(place.file, evidence::kMostEnvelope));
  TRY_ASSIGN(auto attested, evidence::read_attestation(text, signers));
  if (!place.record.empty()) TRY(check_record(place, attested, signers));
  return attested;
}

Result<int> verify(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const Place place, find_attestation(args.required("WHAT"), context));
  TRY_ASSIGN(const auto signers, trusted_signers(args));
  const auto attested = check(place, signers);
  if (!attested) {
    if (!is_no(attested.error())) return tl::unexpected(attested.error());
    return report(context, attested.error(), static_cast<ExitStatus>(kRefused));
  }
  if (context.json)
    print_json(context, codec::JsonObject{{"run", attested->run},
                                          {"signer", attested->signer},
                                          {"record_checked", !place.record.empty()},
                                          {"statement", attested->statement}});
  else
    print(context, *attested, place);
  return 0;
}

}  // namespace

CommandSpec attest_group() {
  return {
      .name = "attest",
      .summary = "check what is attested of runs",
      .description =
          "At its end every run gets an attestation: an in-toto statement, signed with the host's key, that "
          "names what came out by digest, and under which manifest, in which image and with which record.",
      .exits = {exit_note(ExitStatus::kUsage)}};
}

CommandSpec attest_verify_command() {
  return {
      .name = "attest verify",
      .summary = "say whether a run's attestation is signed by a trusted key and true of its record",
      .description =
          "Checks the signature, and if the record is there (of a run, or beside the file) that it is intact "
          "and "
          "says what is attested. Then prints the statement.\n\n"
          "WHAT is a run, or the path of an attestation, with a slash in it or .json at its end.",
      .positionals = {{.name = "WHAT",
                       .help = "a run, or a file",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kRuns}},
      .options = {signers_option(), json_option()},
      .examples =
          {{"firestop attest verify fix", "of the newest run that is named fix"},
           {"firestop attest verify ./attestation.json --signers hosts.pem --json | jq .statement.subject",
            "what another host attests came out"}},
      .exits = {exit_note(ExitStatus::kOk, "it is signed and true"),
                {"1", "it is not: an unknown key, a wrong signature, a record that says something else"},
                exit_note(ExitStatus::kUsage, "there is no such run, or no key to trust"),
                exit_note(ExitStatus::kCannotStart, "there is no attestation, or it cannot be read")},
      .handler = verify,
  };
}

}  // namespace firestop::cli
