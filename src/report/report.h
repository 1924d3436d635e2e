// One page about a run, for who has to judge it: what was granted, what of it was used and what never, what
// was tried and denied, what ran that nobody had read, what came back, and how far the record can be trusted.
// First a document of plain values, then one of three forms. All that a guest chose is made printable and cut
// when it becomes a value here (clean()); each form escapes everything, again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/verify.h"
#include "story/story.h"

namespace firestop::report {

enum class Tone { kPlain, kDim, kGood, kWarn, kBad };

struct ReportCell {
  std::string text;
  Tone tone = Tone::kPlain;
  bool code = false;  // a name, a path, a command: set in a fixed width
};

struct ReportTable {
  struct Column {
    std::string title;
    bool number = false;  // aligned right
  };
  std::vector<Column> columns;
  std::vector<std::vector<ReportCell>> rows;
  std::string more;  // what was left out, and where it is; empty: nothing
};

struct ReportSection {
  std::string id, title;
  std::string lead;  // a sentence or two before the table
  Tone tone = Tone::kPlain;
  ReportTable table;
};

struct ReportFigure {  // one large number at the top
  std::string value, label;
  Tone tone = Tone::kPlain;
  std::string section;  // that tells of it
};

// What happened when, as parts of the run's time in thousandths.
struct TimeLine {
  struct Span {
    double from = 0, to = 0;
    Tone tone = Tone::kPlain;
    std::string title;
  };
  struct Lane {
    std::string name;
    std::vector<Span> spans;
    std::vector<double> heights;  // instead of spans: a curve, each 0 to 1
  };
  std::vector<Lane> lanes;
  std::vector<std::string> ticks;  // evenly spread, the first at the beginning, the last at the end
  std::string note;                // what is summarised
};

struct Report {
  std::string title, subtitle;
  std::string verdict;  // one sentence
  Tone tone = Tone::kPlain;
  std::vector<std::pair<std::string, ReportCell>> facts;
  std::vector<ReportFigure> figures;
  std::vector<ReportSection> sections;
  TimeLine time_line;
};

// `verification` null: it could not be had, `why_unverified` says why. `word`: how the commands in the text
// name the run.
struct ReportInput {
  const story::Story& story;
  std::string word;
  const evidence::Verification* verification = nullptr;
  std::string why_unverified;
};
Report make_report(const ReportInput& input);

std::string report_text(const Report& report);
std::string report_markdown(const Report& report);  // GitHub's
std::string report_html(const Report& report);      // one file, nothing loaded, no script

inline constexpr size_t kMostReportText = 240;  // bytes of anything that is not ours
inline constexpr size_t kMostReportRows = 40;   // of a table

// Text of others as a line: printable, no newlines, cut with "...".
std::string clean(std::string_view text, size_t most = kMostReportText);

}  // namespace firestop::report
