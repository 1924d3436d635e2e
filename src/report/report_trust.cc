// How far the record can be trusted: whether it was changed, and whether all is in it.
#include "report/report_parts.h"

namespace firestop::report::parts {
namespace {

std::vector<std::string> gaps_of(const story::Story& story) {
  std::vector<std::string> gaps;
  if (!story.note.empty()) gaps.push_back(story.note);
  if (story.end.is_null()) gaps.emplace_back("the record has no end");
  if (story.working.empty() && story.missing.empty())
    gaps.emplace_back("the guest's collectors never spoke");
  else if (!story.collectors_done)
    gaps.emplace_back("the guest's collectors did not come to their end");
  for (const auto& missing : story.missing) gaps.push_back("a collector did not work: " + missing);
  for (const auto& [what, count] : story.lost)
    gaps.push_back("at least " + std::to_string(count) + " lost of: " + what);
  return gaps;
}

void add_integrity(ReportTable& table, const ReportInput& input) {
  if (!input.verification) {
    table.rows.push_back(
        {plain("Integrity"), plain("not checked", Tone::kWarn), plain(clean(input.why_unverified))});
    return;
  }
  const evidence::Verification& verification = *input.verification;
  const bool intact = verification.integrity == evidence::Integrity::kIntact;
  const Tone tone = intact                                                   ? Tone::kGood
                    : verification.integrity == evidence::Integrity::kPrefix ? Tone::kWarn
                                                                             : Tone::kBad;
  table.rows.push_back({plain("Integrity"), plain(std::string(to_string(verification.integrity)), tone),
                        plain(plural(verification.events, "event", "events") + ", " +
                              plural(verification.checkpoints, "signed checkpoint", "signed checkpoints"))});
  if (!verification.signer.empty())
    table.rows.push_back({plain("Signed by"), plain("this key"), code(verification.signer)});
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < verification.findings.size() && i < kShown; ++i)
    table.rows.push_back({plain("Finding"), code(verification.findings[i].code, Tone::kBad),
                          plain(clean(verification.findings[i].message))});
}

}  // namespace

ReportSection trust(const ReportInput& input) {
  ReportSection out{"trust", "Can this record be trusted?", "", Tone::kPlain, {}};
  out.lead =
      "Integrity is whether it is as the host signed it; completeness is whether all is in it. What the "
      "guest's "
      "collectors say is a claim from the moment on at which somebody takes the guest's kernel over.";
  out.table.columns = {{"Question"}, {"Answer"}, {"Why"}};
  add_integrity(out.table, input);
  const auto gaps = gaps_of(input.story);
  out.table.rows.push_back(
      {plain("Completeness"),
       gaps.empty() ? plain("complete", Tone::kGood) : plain("not complete", Tone::kWarn),
       plain(gaps.empty() ? "all collectors worked, told all they saw, and nothing was lost"
                          : plural(gaps.size(), "gap", "gaps"))});
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < gaps.size() && i < kShown; ++i)
    out.table.rows.push_back({plain("Gap"), plain("", Tone::kWarn), plain(clean(gaps[i]))});
  return out;
}

}  // namespace firestop::report::parts
