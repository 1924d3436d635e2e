// The report as one HTML file: no script, nothing loaded, and a policy that allows neither. Every text goes
// through escape_markup(), every name of a class and every number is ours.
#include <algorithm>
#include <cstdio>

#include "base/digest.h"
#include "codec/base64.h"
#include "codec/markup.h"
#include "report/report.h"
#include "report/report_css.h"

namespace firestop::report {
namespace {

const char* name_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "plain";
    case Tone::kDim:
      return "dim";
    case Tone::kGood:
      return "good";
    case Tone::kWarn:
      return "warn";
    case Tone::kBad:
      return "bad";
  }
  return "plain";
}

std::string element(const char* tag, const char* classes, std::string_view text) {
  return std::string("<") + tag + " class=\"" + classes + "\">" + codec::escape_markup(text) + "</" + tag +
         ">";
}

std::string inner(const ReportCell& cell) {
  return cell.code ? "<code>" + codec::escape_markup(cell.text) + "</code>" : codec::escape_markup(cell.text);
}

// Ours, with commands in backquotes.
std::string prose(std::string_view text) {
  std::string out;
  for (bool code = false; !text.empty(); code = !code) {
    const size_t end = std::min(text.find('`'), text.size());
    out += inner({std::string(text.substr(0, end)), Tone::kPlain, code});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string policy() {
  // CSP Level 3, section 2.3.1: the digest of the style element's text.
  const std::string hex = sha256_hex(kReportCss);
  std::string digest;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    digest += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return "default-src 'none'; style-src 'sha256-" + codec::encode_base64(digest) +
         "'; base-uri 'none'; form-action 'none'";
}

std::string number(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string lane_svg(const TimeLine::Lane& lane) {
  if (!lane.heights.empty()) {
    std::string path = "M0 40";
    const double step = 1000.0 / static_cast<double>(lane.heights.size());
    for (size_t i = 0; i < lane.heights.size(); ++i) {
      const std::string y = number(40 - 38 * lane.heights[i]);
      const double x = static_cast<double>(i) * step;
      path += " L" + number(x) + " " + y + " L" + number(x + step) + " " + y;
    }
    return "<svg class=\"tall\" viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
           "<path class=\"fill-plain\" d=\"" +
           path + " L1000 40 Z\"/></svg>";
  }
  std::string out = "<svg viewBox=\"0 0 1000 12\" preserveAspectRatio=\"none\" role=\"img\">";
  for (const auto& span : lane.spans)
    out += "<rect x=\"" + number(span.from) + "\" y=\"1\" width=\"" + number(span.to - span.from) +
           "\" height=\"10\" class=\"fill-" + name_of(span.tone) + "\"><title>" +
           codec::escape_markup(span.title) + "</title></rect>";
  return out + "</svg>";
}

std::string time_line_html(const TimeLine& line) {
  if (line.lanes.empty()) return "";
  std::string out = "<section id=\"time\"><h2>Time line</h2>\n<div class=\"lanes\">\n";
  for (const auto& lane : line.lanes)
    out += "<div class=\"lane\"><span title=\"" + codec::escape_markup(lane.name) + "\">" +
           codec::escape_markup(lane.name) + "</span>" + lane_svg(lane) + "</div>\n";
  out += "<div class=\"lane\"><span></span><div class=\"ticks\">";
  for (const auto& tick : line.ticks) out += "<span>" + codec::escape_markup(tick) + "</span>";
  out +=
      "</div></div>\n<div class=\"key\"><span><i class=\"plain\"></i>process</span>"
      "<span><i class=\"good\"></i>allowed</span><span><i class=\"warn\"></i>denied, or not from the "
      "image</span>"
      "<span><i class=\"bad\"></i>alarm, or did not end with 0</span></div></div>\n";
  if (!line.note.empty()) out += element("p", "more", line.note) + "\n";
  return out + "</section>\n";
}

std::string table_html(const ReportTable& table) {
  std::string out = "<table><thead><tr>";
  for (const auto& column : table.columns)
    out += std::string("<th scope=\"col\"") + (column.number ? " class=\"n\"" : "") + ">" +
           codec::escape_markup(column.title) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const auto& column = table.columns[i];
      std::string classes = column.number ? "n" : row[i].code ? "c" : "";
      if (row[i].tone != Tone::kPlain)
        classes += std::string(classes.empty() ? "" : " ") + name_of(row[i].tone);
      out += "<td data-label=\"" + codec::escape_markup(column.title) + "\"" +
             (classes.empty() ? "" : " class=\"" + classes + "\"") + ">" +
             (row[i].text.empty() ? "" : inner(row[i])) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table>\n";
  if (!table.more.empty()) out += "<p class=\"more\">" + prose(table.more) + "</p>\n";
  return out;
}

std::string head(const Report& report) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      policy() +
      "\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>" +
      codec::escape_markup(report.title) + " - Firestop</title>\n<style>" + std::string(kReportCss) +
      "</style>\n</head>\n";
  return out;
}

}  // namespace

std::string report_html(const Report& report) {
  std::string out = head(report) + "<body>\n<main>\n<header>\n" + element("p", "over", report.subtitle) +
                    "\n<h1>" + codec::escape_markup(report.title) + "</h1>\n<p class=\"verdict " +
                    name_of(report.tone) + "\">" + codec::escape_markup(report.verdict) + "</p>\n<dl>\n";
  for (const auto& [label, cell] : report.facts)
    out += "<dt>" + codec::escape_markup(label) + "</dt><dd>" + inner(cell) + "</dd>\n";
  out += "</dl>\n<div class=\"figures\">\n";
  for (const auto& figure : report.figures) {
    const std::string body = "<b class=\"" + std::string(name_of(figure.tone)) + "\">" +
                             codec::escape_markup(figure.value) + "</b><span>" +
                             codec::escape_markup(figure.label) + "</span>";
    const bool there =
        std::any_of(report.sections.begin(), report.sections.end(),
                    [&](const ReportSection& section) { return section.id == figure.section; });
    out += there ? "<a class=\"figure\" href=\"#" + codec::escape_markup(figure.section) + "\">" + body +
                       "</a>\n"
                 : "<div class=\"figure\">" + body + "</div>\n";
  }
  out += "</div>\n</header>\n" + time_line_html(report.time_line);
  for (const auto& section : report.sections) {
    out += "<section id=\"" + section.id + "\"><h2>" + codec::escape_markup(section.title) + "</h2>\n";
    if (!section.lead.empty()) out += "<p class=\"lead\">" + prose(section.lead) + "</p>\n";
    if (!section.table.rows.empty()) out += table_html(section.table);
    out += "</section>\n";
  }
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace firestop::report
