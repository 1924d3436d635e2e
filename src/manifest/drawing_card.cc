#include "manifest/drawing_parts.h"

namespace firestop::manifest {
namespace {

std::string classes(const char* base, Mark mark) {
  std::string out = base;
  if (mark != Mark::kNone) out += std::string(" ") + effect_class(mark);
  return out;
}

const char* icon_of(Seal seal) {
  switch (seal) {
    case Seal::kCopy:  // two sheets
      return "M-5.5 -6H2V2.5H-5.5ZM2 -2.5H5.5V6H-2V2.5";
    case Seal::kReadOnly:  // a padlock
      return "M-5 -1H5V6H-5ZM-3 -1V-3.5A3 3 0 0 1 3 -3.5V-1";
    case Seal::kChecked:
      return "M-5.5 0.5L-1.5 4.5L5.5 -4.5";
    case Seal::kCapped:  // a vessel with a level
      return "M-5.5 -6V6H5.5V-6M-5.5 -1H5.5";
    case Seal::kFiltered:  // a funnel
      return "M-6.5 -5.5H6.5L1.8 0.5V6.5L-1.8 4.5V0.5Z";
  }
  return "";
}

}  // namespace

CardSize card_size(double width, size_t crossings) {
  if (crossings <= 20) return {width, 66, 14, false};
  return {width, 48, 8, true};
}

std::vector<std::string> card_lines(double width, const Crossing& crossing) {
  return wrap_lines(harmless(crossing.what), style::kBody.face, style::kBody.size, width - 28,
                    crossing.lines);
}

void draw_seal_icon(Svg& svg, double x, double y, Seal seal) {
  svg.path(x, y, icon_of(seal), "icon");
}

void draw_seal(Svg& svg, double x, double y, Seal seal, Mark mark) {
  svg.rect(x - 13, y - 13, 26, 26, "seal", 5);
  if (mark == Mark::kGone)
    svg.path(x, y, "M-6 -6L6 6M6 -6L-6 6", "icon");
  else
    draw_seal_icon(svg, x, y, seal);
}

void draw_mark(Svg& svg, double x, double y, Mark mark) {
  const std::string kind = classes("mark", mark);
  const std::string_view effect = effect_class(mark);
  if (effect == "opens") svg.path(x, y, "M0 -5L5.5 4.5H-5.5Z", kind.c_str());
  if (effect == "closes") svg.path(x, y, "M0 5L5.5 -4.5H-5.5Z", kind.c_str());
  if (effect == "changes") svg.circle(x, y, 4, kind.c_str());
}

void draw_card(Svg& svg, double x, double y, const CardSize& size, const Crossing& crossing) {
  const Mark mark = crossing.mark;
  const double text_left = x + 14, text_width = size.width - 28;
  svg.rect(x, y, size.width, size.height, classes("card", mark).c_str(), 4);
  double name_width = text_width;
  if (mark != Mark::kNone) {
    const std::string label = label_of(mark);
    const double width = manifest::text_width(label, style::kTag.face, style::kTag.size, style::kTag.spacing);
    svg.text(x + size.width - 12, y + 17, width, label, style::kTag, effect_class(mark), Anchor::kEnd);
    draw_mark(svg, x + size.width - 12 - width - 10, y + 13.5, mark);
    name_width -= width + 28;
  }
  const char* struck = mark == Mark::kGone ? "struck" : "";
  svg.text(text_left, y + (size.compact ? 20 : 22), name_width, crossing.name, style::kName, struck);
  if (size.compact) {
    const std::string both = crossing.what + (crossing.seal_words.empty() ? "" : "; " + crossing.seal_words);
    svg.text(text_left, y + 37, text_width, both, style::kSmall, "dim");
    return;
  }
  const auto lines = card_lines(size.width, crossing);
  double line_y = y + 39;
  const bool cut = !lines.empty() && lines.back().ends_with("\u2026");
  if (cut) svg.open_group("more", crossing.what);
  for (const auto& line : lines) {
    svg.text(text_left, line_y, text_width, line, style::kBody, struck);
    line_y += kCardLine;
  }
  if (cut) svg.close_group();
  svg.text(text_left, y + size.height - 10, text_width, crossing.seal_words, style::kSmall, "dim");
}

}  // namespace firestop::manifest
