#include "cli/report.h"

#include <chrono>

#include "cli/terminal.h"

namespace firestop::cli {
namespace {

// A text of several lines, each printable, those after the first indented.
std::string lines(std::string_view text, std::string_view indent) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos || end + 1 == text.size()) return out;
    out += "\n" + std::string(indent);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

ExitStatus status_of(const Error& error) {
  if (error.code.starts_with("signature.")) return ExitStatus::kSignature;
  for (const std::string_view prefix :
       {"usage.", "manifest.", "init.", "run.not_found", "run.ambiguous", "memory.not_found", "trace.unknown",
        "image.bad_name", "image.unknown"})
    if (error.code.starts_with(prefix)) return ExitStatus::kUsage;
  return ExitStatus::kCannotStart;
}

codec::Json error_json(const Error& error, ExitStatus status) {
  return codec::JsonObject{{"code", error.code},
                           {"message", error.message},
                           {"hint", error.hint},
                           {"status", static_cast<int>(status)}};
}

int report(Context& context, const Error& error, ExitStatus status) {
  Terminal& terminal = context.terminal;
  if (context.json && context.json_lines) {
    terminal.err(codec::write_json(codec::JsonObject{{"event", "ended"},
                                                     {"status", static_cast<int>(status)},
                                                     {"error", error_json(error, status)},
                                                     {"notes", codec::JsonArray{}}}) +
                 "\n");
  } else if (context.json) {
    print_json(context, codec::JsonObject{{"error", error_json(error, status)}});
  } else {
    std::string text =
        terminal.paint(Style::kRed, "firestop:", Stream::kErr) + " " + lines(error.message, "  ") + "\n";
    if (!error.hint.empty())
      text += "  " + terminal.paint(Style::kDim, lines(error.hint, "  "), Stream::kErr) + "\n";
    terminal.err(text);
  }
  return static_cast<int>(status);
}

int report(Context& context, const Error& error) {
  return report(context, error, status_of(error));
}

void print_json(Context& context, const codec::Json& json) {
  context.terminal.out(codec::write_json_pretty(json));
}

codec::Json diagnostics_json(const std::vector<Diagnostic>& faults) {
  codec::JsonArray all;
  for (const auto& fault : faults)
    all.push_back(codec::JsonObject{{"file", fault.file},
                                    {"line", static_cast<uint64_t>(fault.where.line)},
                                    {"column", static_cast<uint64_t>(fault.where.column)},
                                    {"field", fault.field},
                                    {"wrong", fault.wrong},
                                    {"expected", fault.expected}});
  return all;
}

void print_faults(Context& context, const std::vector<Diagnostic>& faults, std::string_view text) {
  context.terminal.err(render(faults, text));
  if (faults.empty()) return;
  context.terminal.note(printable(faults.front().file) + " has " + std::to_string(faults.size()) +
                        (faults.size() == 1 ? " fault" : " faults"));
}

void sweep(Context& context, sandbox::RunStore& store) {
  const auto swept = store.sweep();
  if (!swept) return context.terminal.note("cannot look for dead runs: " + swept.error().message);
  if (swept->empty()) return;
  std::string ids;
  for (const auto& id : *swept) ids += (ids.empty() ? "" : ", ") + id;
  context.terminal.note("cleaned up after " + std::to_string(swept->size()) +
                        (swept->size() == 1 ? " run" : " runs") +
                        " whose firestop process was killed: " + ids);
}

std::string age_of(int64_t then_ms, int64_t now) {
  if (then_ms <= 0) return "-";
  const int64_t seconds = std::max<int64_t>(0, (now - then_ms) / 1000);
  if (seconds < 120) return std::to_string(seconds) + "s";
  if (seconds < 2 * 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 2 * 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace firestop::cli
