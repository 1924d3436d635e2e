#include "manifest/drawing.h"

#include <algorithm>

#include "manifest/drawing_parts.h"

namespace firestop::manifest {
namespace {

constexpr size_t kMostOnASide = 60, kMostAbove = 60;

class Draughtsman {
 public:
  Draughtsman(const Manifest& manifest, const Manifest* before, const std::vector<Change>& changes,
              const TitleBlock& block)
      : manifest_(manifest),
        before_(before),
        changes_(changes),
        block_(block),
        crossings_(crossings_of(manifest, before, changes)) {
    group_beyond(crossings_.in, kMostOnASide);
    group_beyond(crossings_.out, kMostOnASide);
    group_beyond(crossings_.talk, kMostAbove);
  }

  std::string draw() {
    draw_header();
    draw_above();
    draw_room();
    y_ = draw_absent(front_, y_ + 44, manifest_);
    if (before_) y_ = draw_changes(front_, y_ + 44, changes_);
    y_ = draw_legend_and_title(front_, y_ + 36, manifest_, block_, before_ != nullptr);
    const double height = y_ + 36;
    Svg out;
    out.rect(0, 0, sheet::kWidth, height, "sheet");
    out.rect(12, 12, sheet::kWidth - 24, height - 24, "frame2");
    out.append(back_);
    out.append(front_);
    return out.finish(static_cast<int>(sheet::kWidth), static_cast<int>(height),
                      "Compartment " + manifest_.name,
                      "What comes in, what goes out, who may be talked to, and the seal on each.");
  }

 private:
  void draw_header() {
    double y = 48;
    front_.text(sheet::kLeft, y, 600, before_ ? "COMPARTMENT PLAN, REVISED" : "COMPARTMENT PLAN",
                style::kHeading);
    if (before_) draw_summary(y);
    y += 34;
    front_.text(sheet::kLeft, y, sheet::kRight - sheet::kLeft, manifest_.name, style::kTitle);
    if (!manifest_.description.empty()) {
      y += 8;
      const std::string full = harmless(manifest_.description);
      for (const auto& line : wrap_lines(full, Face::kSans, style::kLead.size, 900, 2))
        front_.text(sheet::kLeft, y += 18, 900, line, style::kLead, "dim");
    }
    y_ = y + 18;
    front_.line(sheet::kLeft, y_, sheet::kRight, y_, "frame");
  }

  void draw_summary(double y) {
    double right = sheet::kRight;
    for (const Mark mark : {Mark::kChanged, Mark::kNarrower, Mark::kWider}) {
      const auto many = std::count_if(changes_.begin(), changes_.end(), [&](const Change& change) {
        return std::string_view(to_string(change.effect)) == effect_class(mark);
      });
      const std::string text = std::string(effect_class(mark)) + " " + std::to_string(many);
      const double width = text_width(text, style::kStrong.face, style::kStrong.size);
      front_.text(right, y, width, text, style::kStrong, effect_class(mark), Anchor::kEnd);
      draw_mark(front_, right - width - 12, y - 5, mark);
      right -= width + 40;
    }
  }

  // Who may be talked to: rules hang on risers that end at the proxy, and one pipe goes through the wall.
  void draw_above() {
    const auto& rules = crossings_.talk;
    y_ += 30;
    front_.text(sheet::kLeft, y_, 500, "MAY BE TALKED TO", style::kHeading);
    y_ += 16;
    if (rules.empty()) {
      const double width = 2 * 180;
      front_.rect(600 - width / 2, y_, width, 58, "card blank", 4);
      front_.text(600, y_ + 24, width - 24, "No network device", style::kStrong, "", Anchor::kMiddle);
      front_.text(600, y_ + 43, width - 24, "no route, and no name resolves", style::kSmall, "dim",
                  Anchor::kMiddle);
      y_ += 58 + 26;
      return;
    }
    const size_t columns = std::min<size_t>(rules.size(), 3);
    const double gap = 24, width = (sheet::kRight - sheet::kLeft - 2 * gap) / 3;
    const double left = 600 - (static_cast<double>(columns) * (width + gap) - gap) / 2;
    std::vector<std::pair<double, double>> risers;  // x, and where they begin
    for (size_t first = 0; first < rules.size(); first += columns) {
      CardSize size = card_size(width, 1);  // never compact: which credential is always said
      const size_t end = std::min(first + columns, rules.size());
      size_t lines = 1;
      for (size_t at = first; at < end; ++at) lines = std::max(lines, card_lines(width, rules[at]).size());
      size.height += kCardLine * static_cast<double>(lines - 1);
      for (size_t at = first; at < end; ++at) {
        const double x = left + static_cast<double>(at - first) * (width + gap);
        draw_card(front_, x, y_, size, rules[at]);
        risers.emplace_back(x + width / 2, y_ + size.height);
      }
      y_ += size.height + size.gap;
    }
    const double bar = y_ + 8;
    for (const auto& [x, y] : risers) back_.line(x, y, x, bar, "pipe");
    y_ = bar;
    front_.rect(sheet::kLeft, y_, sheet::kRight - sheet::kLeft, 30, "proxy", 3);
    const bool cut_off = manifest_.egress.empty();  // all that is drawn here is gone
    front_.text(600, y_ + 19.5, 1000,
                cut_off
                    ? "No network device any more: nothing can be talked to."
                    : "Firestop's proxy: the only way out. Names are resolved and credentials put in by it, "
                      "after a rule said yes.",
                style::kBody, "onwall", Anchor::kMiddle);
    y_ += 30;
    if (!cut_off) front_.path(600, y_, "M0 0L-4.5 9H4.5Z", "tip");
    back_.line(600, y_ + (cut_off ? 0 : 6), 600, y_ + 52, cut_off ? "pipe blank" : "pipe");
    y_ += 52;
  }

  void draw_room() {
    const double top = y_;
    const auto column = [](const std::vector<Crossing>& crossings) {
      const CardSize size = card_size(sheet::kCard, crossings.size());
      return static_cast<double>(crossings.size()) * (size.height + size.gap) - size.gap;
    };
    front_.text(sheet::kLeft, top + 8, sheet::kCard, "COMES IN", style::kHeading);
    front_.text(sheet::kOutLeft, top + 8, sheet::kCard, "GOES OUT", style::kHeading);
    const double inside = draw_inside(front_, top + sheet::kWall + 30, manifest_, changes_);
    const double doors = top + 24;
    const double bottom =
        std::max({inside + 28, doors + column(crossings_.in) + 10, doors + column(crossings_.out) + 10});
    draw_walls(top, bottom + sheet::kWall);
    if (!crossings_.talk.empty())
      draw_seal(front_, 600, top + sheet::kWall / 2, Seal::kFiltered, network_mark());
    draw_doors(crossings_.in, sheet::kLeft, doors, Side::kIn);
    draw_doors(crossings_.out, sheet::kOutLeft, doors, Side::kOut);
    if (crossings_.in.empty())
      front_.text(sheet::kLeft, doors + 20, sheet::kCard, "Nothing comes in.", style::kBody, "dim");
    y_ = bottom + sheet::kWall;
  }

  Mark network_mark() const { return manifest_.egress.empty() ? Mark::kGone : mark_of(changes_, "network"); }

  void draw_walls(double top, double bottom) {
    const double width = sheet::kRoomRight - sheet::kRoomLeft;
    back_.rect(sheet::kRoomLeft, top, width, bottom - top, "wall");
    back_.rect(sheet::kRoomLeft, top, width, bottom - top, "poche");
    const double inner = sheet::kWall;
    back_.rect(sheet::kRoomLeft + inner, top + inner, width - 2 * inner, bottom - top - 2 * inner, "floor");
    back_.rect(sheet::kRoomLeft + inner, top + inner, width - 2 * inner, bottom - top - 2 * inner, "plan");
  }

  enum class Side { kIn, kOut };
  void draw_doors(const std::vector<Crossing>& crossings, double x, double y, Side side) {
    const CardSize size = card_size(sheet::kCard, crossings.size());
    for (const auto& crossing : crossings) {
      const double middle = y + size.height / 2;
      draw_card(front_, x, y, size, crossing);
      const double wall =
          side == Side::kIn ? sheet::kRoomLeft + sheet::kWall / 2 : sheet::kRoomRight - sheet::kWall / 2;
      const double from = side == Side::kIn ? x + size.width : wall + 13;
      const double to = side == Side::kIn ? wall - 13 : x;
      const bool gone = crossing.mark == Mark::kGone;
      front_.line(from, middle, to - (gone ? 0 : 6), middle, gone ? "pipe blank" : "pipe");
      if (!gone) front_.path(to, middle, "M0 0L-9 -4.5V4.5Z", "tip");
      draw_seal(front_, wall, middle, crossing.seal, crossing.mark);
      y += size.height + size.gap;
    }
  }

  const Manifest& manifest_;
  const Manifest* before_;
  const std::vector<Change>& changes_;
  const TitleBlock& block_;
  Crossings crossings_;
  Svg back_, front_;
  double y_ = 0;
};

}  // namespace

std::string draw_svg(const Manifest& manifest, const TitleBlock& block) {
  const std::vector<Change> none;
  return Draughtsman(manifest, nullptr, none, block).draw();
}

std::string draw_diff_svg(const Manifest& before, const Manifest& manifest,
                          const std::vector<Change>& changes, const TitleBlock& block) {
  return Draughtsman(manifest, &before, changes, block).draw();
}

}  // namespace firestop::manifest
