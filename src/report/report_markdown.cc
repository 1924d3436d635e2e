// The report as GitHub's Markdown, for an issue or a pull request. Nothing of others may become markup, a
// link, a mention, or end its cell: what could is written as a character reference.
#include <algorithm>
#include <cstdio>

#include "report/report.h"

namespace firestop::report {
namespace {

bool is_harmless(char c) {
  const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return word || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view(" ,;'()%+=?/").find(c) != std::string_view::npos;
}

// A dot or a colon is harmless where it cannot make a link: before a blank or at the end.
std::string escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool ends = i + 1 == text.size() || text[i + 1] == ' ';
    const bool number = c == '.' && i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9' &&
                        i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    const bool inside = c == '-' && i > 0 && text[i - 1] != ' ';
    if (is_harmless(c) || ((c == '.' || c == ':') && ends) || number || inside ||
        (c == ':' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9')) {
      out += c;
      continue;
    }
    char reference[16];
    (void)std::snprintf(reference, sizeof reference, "&#%d;",
                        static_cast<int>(static_cast<unsigned char>(c)));
    out += reference;
  }
  return out;
}

// In backquotes where nothing in it could end them, or the cell.
std::string cell_text(const ReportCell& cell) {
  const auto literal = [](char c) { return c != '`' && c != '|' && c != '\\' && c != '\n'; };
  if (cell.code && !cell.text.empty() && cell.text.front() != ' ' && cell.text.back() != ' ' &&
      std::all_of(cell.text.begin(), cell.text.end(), literal))
    return "`" + cell.text + "`";
  const std::string text = cell.text == "-" ? cell.text : escaped(cell.text);
  return cell.tone == Tone::kBad && !text.empty() ? "**" + text + "**" : text;
}

// Ours, in which a command stands in backquotes: those stay, what is between them too.
std::string prose(std::string_view text) {
  std::string out;
  for (bool code = false; !text.empty(); code = !code) {
    const size_t end = std::min(text.find('`'), text.size());
    const ReportCell part{std::string(text.substr(0, end)), Tone::kPlain, code};
    out += cell_text(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string table_text(const ReportTable& table) {
  std::string out = "|", rule = "|";
  for (const auto& column : table.columns) {
    out += " " + column.title + " |";
    rule += column.number ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const auto& cell : row) out += " " + cell_text(cell) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace

std::string report_markdown(const Report& report) {
  std::string out = "# " + escaped(report.title) + "\n\n**" + escaped(report.verdict) + "**\n\n";
  for (const auto& figure : report.figures) out += "- " + figure.value + " " + figure.label + "\n";
  out += "\n| | |\n| --- | --- |\n";
  for (const auto& [label, cell] : report.facts) out += "| " + label + " | " + cell_text(cell) + " |\n";
  for (const auto& section : report.sections) {
    out += "\n## " + section.title + "\n\n";
    if (!section.lead.empty()) out += prose(section.lead) + "\n";
    if (section.table.rows.empty()) continue;
    if (!section.lead.empty()) out += "\n";
    out += table_text(section.table);
    if (!section.table.more.empty()) out += "\n" + prose(section.table.more) + "\n";
  }
  return out;
}

}  // namespace firestop::report
