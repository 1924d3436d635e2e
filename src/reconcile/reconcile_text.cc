#include "codec/utf8.h"
#include "reconcile/reconcile.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using Kind = Finding::Kind;

constexpr size_t kMostWidth = 400;
constexpr size_t kShownCode = 10;  // of one finding, for people

std::string one_line(std::string_view text) {
  std::string out = codec::printable(text, kMostWidth);
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return out;
}

const char* heading(Kind kind) {
  switch (kind) {
    case Kind::kNeverMentioned:
      return "Ran and never mentioned";
    case Kind::kNeverRan:
      return "Claimed and never ran";
    case Kind::kOtherResult:
      return "Claimed with another result";
  }
  return "?";
}

std::string text_of(const RanCode& code) {
  std::string out = code.how;
  if (!code.path.empty()) out += " " + one_line(code.path);
  if (!code.interpreter.empty()) out += " by " + one_line(code.interpreter);
  out += ", " + std::to_string(code.size) + " bytes";
  if (code.digest.empty())
    out += ", not kept" + (code.note.empty() ? std::string() : ": " + one_line(code.note));
  else
    out += ", sha256 " + code.digest;
  return out;
}

std::string text_of(const Finding& finding, const story::Story& story) {
  std::string out = "  " + one_line(finding.what);
  if (finding.times > 1) out += "  (" + std::to_string(finding.times) + " times)";
  out += "\n      " + one_line(finding.why) + "\n";
  std::string where;
  if (finding.line > 0) where += "trace line " + std::to_string(finding.line);
  if (finding.seq > 0) where += (where.empty() ? "" : ", ") + ("event " + std::to_string(finding.seq));
  if (finding.process < story.processes.size())
    where += (where.empty() ? "" : ", ") + ("pid " + std::to_string(story.processes[finding.process].pid));
  if (!where.empty()) out += "      " + where + "\n";
  if (finding.kind == Kind::kOtherResult)
    out += "      claimed " + one_line(finding.claimed) + ", recorded " + one_line(finding.recorded) + "\n";
  for (size_t i = 0; i < std::min(finding.code.size(), kShownCode); ++i)
    out += "      " + text_of(finding.code[i]) + "\n";
  const uint64_t more = finding.more_code + (finding.code.size() - std::min(finding.code.size(), kShownCode));
  if (more > 0) out += "      and " + std::to_string(more) + " more\n";
  return out;
}

Json to_json(const RanCode& code) {
  return JsonObject{{"seq", code.seq},
                    {"how", code.how},
                    {"path", evidence::json_of_bytes(code.path)},
                    {"sha256", code.digest},
                    {"size", code.size},
                    {"interpreter", evidence::json_of_bytes(code.interpreter)},
                    {"note", code.note}};
}

Json to_json(const Finding& finding, const story::Story& story) {
  JsonArray code;
  for (const RanCode& each : finding.code) code.push_back(to_json(each));
  const bool known = finding.process < story.processes.size();
  return JsonObject{{"kind", to_string(finding.kind)},
                    {"what", one_line(finding.what)},
                    {"why", finding.why},
                    {"event", finding.seq > 0 ? Json(finding.seq) : Json()},
                    {"pid", known ? Json(story.processes[finding.process].pid) : Json()},
                    {"trace_line", finding.line > 0 ? Json(finding.line) : Json()},
                    {"claimed", finding.claimed.empty() ? Json() : Json(finding.claimed)},
                    {"recorded", finding.recorded.empty() ? Json() : Json(finding.recorded)},
                    {"code", std::move(code)},
                    {"more_code", finding.more_code},
                    {"times", finding.times}};
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kNeverMentioned:
      return "never_mentioned";
    case Kind::kNeverRan:
      return "never_ran";
    case Kind::kOtherResult:
      return "other_result";
  }
  return "?";
}

Json to_json(const Account& account, const story::Story& story, const Trace& trace) {
  JsonArray findings, notes;
  for (const Finding& finding : account.findings) findings.push_back(to_json(finding, story));
  for (const auto& note : account.notes) notes.push_back(codec::printable(note, kMostWidth));
  return JsonObject{{"findings", std::move(findings)},
                    {"format", to_string(trace.format)},
                    {"entries", trace.entries},
                    {"claims", account.claims},
                    {"ran", account.ran},
                    {"not_checkable", account.unseen},
                    {"not_certain", account.unsure},
                    {"expected", account.expected},
                    {"processes", static_cast<uint64_t>(story.processes.size())},
                    {"scripts", static_cast<uint64_t>(story.scripts.size())},
                    {"notes", std::move(notes)}};
}

std::string to_text(const Account& account, const story::Story& story, const Trace& trace,
                    const std::function<std::string(std::string_view)>& paint) {
  std::string out;
  for (const Kind kind : {Kind::kNeverMentioned, Kind::kNeverRan, Kind::kOtherResult}) {
    std::string part;
    for (const Finding& finding : account.findings)
      if (finding.kind == kind) part += text_of(finding, story);
    if (!part.empty()) out += paint(heading(kind)) + "\n" + part + "\n";
  }
  if (account.findings.empty()) out += "The trace and the record agree.\n\n";
  out += std::to_string(account.claims) + " claims in " + std::to_string(trace.entries) +
         " entries of the trace (" + to_string(trace.format) + "), " + std::to_string(account.ran) +
         " of them found in the record\n";
  if (account.unseen > 0)
    out += std::to_string(account.unseen) +
           " that leave nothing behind to check them by: done by a shell itself, or outside the workspace\n";
  if (account.unsure > 0)
    out += std::to_string(account.unsure) +
           " that were refused or have no answer in the trace, and did not run\n";
  if (account.expected > 0)
    out += std::to_string(account.expected) + " processes or scripts that --expect covers\n";
  for (const auto& note : account.notes) out += "note: " + one_line(note) + "\n";
  return out;
}

}  // namespace firestop::reconcile
