// The report for a terminal or a mail: plain lines.
#include <algorithm>

#include "report/report.h"

namespace firestop::report {
namespace {

constexpr size_t kMostColumn = 52, kWidth = 100;

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text, size_t most) {
  if (columns_of(text) <= most) return text;
  std::string out;
  size_t seen = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++seen > most - 3) break;
    out += c;
  }
  return out + "...";
}

std::string filled(std::string_view text, size_t indent) {
  std::string out(indent, ' ');
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + columns_of(word) > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ', ++column;
    out += word;
    column += columns_of(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\n";
}

std::string table_text(const ReportTable& table) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& column : table.columns) rows[0].push_back(column.title);
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      rows.back().push_back(shortened(row[i].text, i + 1 == row.size() ? kMostReportText + 8 : kMostColumn));
  }
  std::vector<size_t> widths(table.columns.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  std::string out;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns_of(row[i]), ' ');
      line += table.columns[i].number ? padding + row[i] : row[i] + padding;
      if (i + 1 < row.size()) line += "  ";
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string report_text(const Report& report) {
  std::string out = report.title + "\n" + report.verdict + "\n\n";
  for (const auto& [label, cell] : report.facts)
    out += label + std::string(label.size() < 11 ? 11 - label.size() : 1, ' ') + cell.text + "\n";
  out += "\n";
  std::string figures;
  for (const auto& figure : report.figures)
    figures += (figures.empty() ? "" : ", ") + figure.value + " " + figure.label;
  out += filled(figures, 0);
  for (const auto& section : report.sections) {
    out += "\n" + section.title + "\n";
    if (!section.lead.empty()) out += filled(section.lead, 2);
    if (section.table.rows.empty()) continue;
    if (!section.lead.empty()) out += "\n";
    out += table_text(section.table);
    if (!section.table.more.empty()) out += "  " + section.table.more + "\n";
  }
  return out;
}

}  // namespace firestop::report
