#include "report/report.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/units.h"
#include "codec/utf8.h"
#include "report/report_parts.h"
#include "story/record_events.h"
#include "story/script_list.h"

namespace firestop::report {
namespace parts {
Times whole_time_of(const story::Story& story) {
  return {story::microseconds_of(story.first_time), story::microseconds_of(story.last_time)};
}

Times times_of(const story::Story& story) {
  Times times = whole_time_of(story);
  for (const auto& event : story.host) {
    if (event.kind != "run.state") continue;
    const std::string state = event.data.string_or("state", "");
    if (state == "started") times.from_us = story::microseconds_of(event.time);
    if (state == "handing_over") times.to_us = story::microseconds_of(event.time);
  }
  times.to_us = std::max(times.to_us, times.from_us + 1);
  return times;
}

ReportCell plain(std::string text, Tone tone) {
  return {std::move(text), tone, false};
}

ReportCell code(std::string_view text, Tone tone) {
  return {text.empty() ? "-" : clean(text), tone, !text.empty()};
}

ReportCell number(uint64_t value, Tone tone) {
  return {std::to_string(value), tone, false};
}

std::string plural(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

namespace {

std::string with_pid(const story::Story& story, size_t process, const std::string& name) {
  if (process >= story.processes.size()) return "-";
  const std::string pid = std::to_string(story.processes[process].pid);
  return name == "pid " + pid ? name : clean(name, 24) + " (" + pid + ")";
}

}  // namespace

std::string process_name(const story::Story& story, size_t process) {
  return with_pid(story, process, name_of(story, process));
}

std::string runner_name(const story::Story& story, const story::Script& script) {
  return with_pid(story, script.process, story::name_of_runner(story, script));
}

std::string time_of_day(int64_t us) {
  const std::time_t seconds = us / 1000000;
  std::tm utc{};
  if (us <= 0 || !::gmtime_r(&seconds, &utc)) return "-";
  char text[32];
  (void)std::strftime(text, sizeof text, "%H:%M:%S", &utc);
  return text;
}

std::string duration(int64_t us) {
  return format_duration(std::chrono::milliseconds(std::max<int64_t>(0, us) / 1000));
}

}  // namespace parts

namespace {

using namespace parts;

std::string joined(const codec::Json* list) {
  std::string out;
  if (const codec::JsonArray* array = list ? list->as_array() : nullptr)
    for (const auto& one : *array) {
      out += (out.empty() ? "" : " ") + evidence::bytes_of(one);
      if (out.size() > kMostReportText) break;
    }
  return out;
}

void add_facts(Report& report, const story::Story& story, const Times& command) {
  const Times times = whole_time_of(story);
  const auto fact = [&report](const char* label, const std::string& text, bool fixed) {
    if (!text.empty()) report.facts.emplace_back(label, fixed ? code(text) : plain(clean(text)));
  };
  const std::string signer = story.plan.string_or("signer", "");
  fact("Run", story.begin.string_or("run", ""), true);
  fact("Command", joined(story.plan.find("command")), true);
  fact("Manifest", story.begin.string_or("manifest_digest", ""), true);
  const std::string key = story.plan.string_or("signer_key", "");
  fact("Signed by", signer.empty() ? "nobody" : signer + (key.empty() ? "" : ", " + key), false);
  fact("Image", story.plan.string_or("image", "") + " " + story.plan.string_or("image_digest", ""), true);
  const std::string accelerator = story.plan.string_or("accelerator", "");
  fact("Machine", accelerator == "tcg" ? "emulated (tcg)" : accelerator, false);
  if (times.from_us > 0) {
    const std::string day = story.first_time.substr(0, 10);
    fact("Time",
         day + " " + time_of_day(times.from_us) + " to " + time_of_day(times.to_us) + " UTC, " +
             duration(times.to_us - times.from_us) + "; the command " +
             duration(command.to_us - command.from_us),
         false);
  }
}

size_t denials(const story::Story& story) {
  uint64_t count = 0;
  for (const auto& event : story.network) count += event.data.string_or("verdict", "") == "denied" ? 1 : 0;
  for (const auto& refusal : story.refusals) count += refusal.count;
  return count;
}

void add_figures(Report& report, const ReportInput& input, const Grants& granted,
                 const ReportSection& alarmed) {
  const story::Story& story = input.story;
  const auto figure = [&report](uint64_t value, const char* one, const char* many, Tone tone,
                                const char* section) {
    report.figures.push_back(
        {std::to_string(value), value == 1 ? one : many, value > 0 ? tone : Tone::kDim, section});
  };
  figure(alarmed.table.rows.size(), "alarm", "alarms", Tone::kBad, "alarms");
  figure(denials(story), "attempt denied", "attempts denied", Tone::kWarn, "denied");
  figure(story::unread_scripts(story).size(), "script nobody had read", "scripts nobody had read",
         Tone::kWarn, "scripts");
  figure(granted.unused.table.rows.size(), "grant never used", "grants never used", Tone::kWarn, "unused");
  figure(story.processes.size(), "process", "processes", Tone::kPlain, "processes");
  figure(story.network.size(), "crossing", "crossings", Tone::kPlain, "network");
}

void judge(Report& report, const ReportInput& input) {
  const story::Story& story = input.story;
  if (story.end.is_null()) {
    report.verdict = "The record has no end: the run still lives, or its host died.";
    report.tone = Tone::kWarn;
    return;
  }
  const int64_t status = story.end.int_or("status", 0);
  const std::string reason = story.end.string_or("reason", "");
  report.verdict = reason.empty() ? "The command ended with status " + std::to_string(status) + "."
                                  : "Firestop ended the run with status " + std::to_string(status) + ": " +
                                        clean(reason, 80) + ".";
  report.tone = !reason.empty() ? Tone::kBad : status == 0 ? Tone::kGood : Tone::kWarn;
}

}  // namespace

std::string clean(std::string_view text, size_t most) {
  std::string out = codec::printable(text, most);
  const bool cut = codec::printable(text, most + 4).size() > out.size();
  for (char& c : out)
    if (c == '\n' || c == '\t') c = ' ';
  return cut ? out + "..." : out;
}

Report make_report(const ReportInput& input) {
  const story::Story& story = input.story;
  const Times times = times_of(story);
  Report report;
  const std::string name = story.begin.string_or("name", "");
  report.title = name.empty() ? "Report of a run" : clean(name, 64);
  report.subtitle = "Firestop: report of a run";
  judge(report, input);
  add_facts(report, story, times);
  Grants granted = grants(story, times);
  ReportSection alarmed = alarms(story, input.word);
  add_figures(report, input, granted, alarmed);
  report.time_line = time_line(story, times);
  if (!alarmed.table.rows.empty()) report.sections.push_back(std::move(alarmed));
  report.sections.push_back(result(story));
  report.sections.push_back(scripts(story, input.word));
  report.sections.push_back(denied(story, input.word));
  report.sections.push_back(std::move(granted.unused));
  report.sections.push_back(std::move(granted.used));
  report.sections.push_back(std::move(granted.limits));
  report.sections.push_back(network(story, input.word));
  report.sections.push_back(processes(story, input.word));
  report.sections.push_back(trust(input));
  return report;
}

}  // namespace firestop::report
