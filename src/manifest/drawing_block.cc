#include <algorithm>

#include "base/units.h"
#include "manifest/drawing_parts.h"
#include "manifest/explain_facts.h"

namespace firestop::manifest {
namespace {

constexpr size_t kMostChanges = 60;

struct Meaning {
  Seal seal;
  const char* words;
};
constexpr Meaning kSeals[] = {{Seal::kCopy, "copied in: a change inside stays inside"},
                              {Seal::kReadOnly, "read-only"},
                              {Seal::kChecked, "each object checked before it lands"},
                              {Seal::kCapped, "capped, and read as hostile"},
                              {Seal::kFiltered, "asked of the rules, by the proxy"}};
struct MarkMeaning {
  Mark mark;
  const char* words;
};
constexpr MarkMeaning kMarks[] = {{Mark::kNew, "opens: new, or wider than before"},
                                  {Mark::kGone, "closes: gone, or narrower"},
                                  {Mark::kChanged, "changes, and does neither"}};

void cell(Svg& svg, double x, double y, double width, const char* label, const std::string& text,
          const TextStyle& how) {
  svg.text(x + 10, y + 15, width - 20, label, style::kTag, "dim");
  svg.text(x + 10, y + 33, width - 20, text, how);
}

}  // namespace

double draw_changes(Svg& svg, double y, const std::vector<Change>& changes) {
  const double words = 372, values = 690;
  svg.text(sheet::kLeft, y, 400, "CHANGES", style::kHeading);
  y += 8;
  svg.line(sheet::kLeft, y, sheet::kRight, y, "frame");
  y += 20;
  if (changes.empty()) {
    svg.text(sheet::kLeft, y, 600, "Nothing opens, nothing closes: what is enforced is the same.",
             style::kBody);
    return y + 12;
  }
  for (size_t at = 0; at < changes.size(); ++at) {
    if (at + 1 == kMostChanges && changes.size() > kMostChanges) {
      svg.text(sheet::kLeft + 20, y, 600,
               "and " + std::to_string(changes.size() - at) + " more: firestop explain --diff", style::kBody);
      y += 22;
      break;
    }
    const Change& change = changes[at];
    const Mark mark = change.effect == Effect::kOpens    ? Mark::kWider
                      : change.effect == Effect::kCloses ? Mark::kNarrower
                                                         : Mark::kChanged;
    draw_mark(svg, sheet::kLeft + 6, y - 4, mark);
    svg.text(sheet::kLeft + 22, y, words - sheet::kLeft - 38, change.field, style::kCode);
    svg.text(words, y, values - words - 16, change.words, style::kBody);
    std::string both = change.before;
    if (!change.after.empty()) both += (both.empty() ? "" : " \u2192 ") + change.after;
    if (change.after.empty() && !both.empty()) both = "was " + both;
    svg.text(values, y, sheet::kRight - values, both, style::kSmall, "dim");
    svg.line(sheet::kLeft, y + 7, sheet::kRight, y + 7, "rule");
    y += 22;
  }
  return y - 10;
}

double draw_legend_and_title(Svg& svg, double y, const Manifest& manifest, const TitleBlock& block,
                             bool diff) {
  const double height = 138, left = 560, right = sheet::kRight, row = height / 3;
  double at = y + 12;
  svg.text(sheet::kLeft, at, 300, "SEALS", style::kHeading);
  at += 22;
  for (const auto& [seal, words] : kSeals) {
    draw_seal_icon(svg, sheet::kLeft + 8, at - 4, seal);
    svg.text(sheet::kLeft + 26, at, 250, words, style::kSmall);
    at += 23;
  }
  if (diff) {
    at = y + 12;
    svg.text(326, at, 200, "MARKS", style::kHeading);
    at += 22;
    for (const auto& [mark, words] : kMarks) {
      draw_mark(svg, 332, at - 4, mark);
      svg.text(346, at, 200, words, style::kSmall);
      at += 23;
    }
  }
  svg.rect(left, y, right - left, height, "frame");
  svg.line(left, y + row, right, y + row, "rule");
  svg.line(left, y + 2 * row, right, y + 2 * row, "rule");
  const double half = left + 380;
  svg.line(half, y, half, y + row, "rule");
  cell(svg, left, y, half - left, "DRAWING OF", manifest.name, style::kName);
  cell(svg, half, y, right - half, "FORMAT", "firestop: 1", style::kCode);
  cell(svg, left, y + row, right - left, "SHA-256 OF THE CANONICAL FORM", block.digest, style::kCode);
  const double third = left + 230, two = left + 400;
  svg.line(third, y + 2 * row, third, y + height, "rule");
  svg.line(two, y + 2 * row, two, y + height, "rule");
  cell(svg, left, y + 2 * row, third - left, "FILE", manifest.file, style::kCode);
  cell(svg, third, y + 2 * row, two - third, "LOCK", block.lock, style::kCode);
  cell(svg, two, y + 2 * row, right - two, "SIGNATURE", block.signature, style::kCode);
  return y + height;
}

}  // namespace firestop::manifest
