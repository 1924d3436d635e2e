// The parts of make_report().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/report.h"

namespace firestop::report::parts {

// By the host's clock; 0: not known.
struct Times {
  int64_t from_us = 0, to_us = 0;
};
Times whole_time_of(const story::Story& story);  // of the record
Times times_of(
    const story::Story& story);  // of the command: from its start until its results are handed over

ReportCell plain(std::string text, Tone tone = Tone::kPlain);      // ours
ReportCell code(std::string_view text, Tone tone = Tone::kPlain);  // of others, cleaned
ReportCell number(uint64_t value, Tone tone = Tone::kPlain);
std::string plural(uint64_t count, const char* one, const char* many);
std::string process_name(const story::Story& story, size_t process);  // "curl (12)", "-"
std::string runner_name(const story::Story& story, const story::Script& script);
std::string time_of_day(int64_t us);
std::string duration(int64_t us);

struct Grants {
  ReportSection unused, used, limits;
};
Grants grants(const story::Story& story, const Times& times);

ReportSection denied(const story::Story& story, const std::string& word);
ReportSection alarms(const story::Story& story, const std::string& word);
ReportSection scripts(const story::Story& story, const std::string& word);
ReportSection network(const story::Story& story, const std::string& word);
ReportSection processes(const story::Story& story, const std::string& word);
ReportSection result(const story::Story& story);
ReportSection trust(const ReportInput& input);
TimeLine time_line(const story::Story& story, const Times& times);

// Processes alive at once, at most.
size_t peak_processes(const story::Story& story);
// "POST https://host:port/path" of a crossing, cleaned.
std::string crossing_text(const story::NetworkEvent& event);

}  // namespace firestop::report::parts
