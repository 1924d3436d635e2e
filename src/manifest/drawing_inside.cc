#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/units.h"
#include "manifest/drawing_parts.h"
#include "manifest/explain_facts.h"
#include "manifest/words.h"

namespace firestop::manifest {
namespace {

constexpr double kInner = sheet::kInnerRight - sheet::kInnerLeft;
constexpr double kLabel = 88;

class Inside {
 public:
  Inside(Svg& svg, double y, const Manifest& manifest, const std::vector<Change>& changes)
      : svg_(svg), y_(y), manifest_(manifest), changes_(changes) {}

  double run() {
    rating();
    account();
    capabilities();
    caps();
    return y_;
  }

 private:
  void heading(const char* text) {
    y_ += 30;
    svg_.text(sheet::kInnerLeft, y_, kInner, text, style::kHeading);
    y_ += 7;
    svg_.line(sheet::kInnerLeft, y_, sheet::kInnerRight, y_, "rule");
    y_ += 18;
  }

  // Returns the width that it takes from the right.
  double mark_at(double right, double y, const std::string& crossing) {
    const Mark mark = manifest::mark_of(changes_, crossing);
    if (mark == Mark::kNone) return 0;
    draw_mark(svg_, right - 6, y - 4, mark);
    return 16;
  }

  // A dial of the next round time: how much of it the rating takes.
  void rating() {
    using namespace std::chrono_literals;
    const double radius = 40, x = sheet::kInnerLeft + radius + 2, y = y_ + radius + 2;
    struct Dial {
      std::chrono::milliseconds whole;
      const char* name;
    };
    constexpr Dial kDials[] = {{1min, "1 min"}, {1h, "1 h"}, {12h, "12 h"}, {24h, "1 d"}, {168h, "7 d"}};
    const Dial* dial = std::begin(kDials);
    while (dial + 1 != std::end(kDials) && manifest_.rating > dial->whole) ++dial;
    const double share = std::min(
        1.0, static_cast<double>(manifest_.rating.count()) / static_cast<double>(dial->whole.count()));
    svg_.circle(x, y, radius, "dial");
    if (share >= 0.999) {
      svg_.circle(x, y, radius - 4, "sweep");
    } else {
      const double angle = 2 * std::numbers::pi * share, r = radius - 4;
      svg_.path(x, y,
                "M0 0V" + coordinate(-r) + "A" + coordinate(r) + " " + coordinate(r) + " 0 " +
                    (share > 0.5 ? "1" : "0") + " 1 " + coordinate(r * std::sin(angle)) + " " +
                    coordinate(-r * std::cos(angle)) + "Z",
                "sweep");
    }
    for (int tick = 0; tick < 12; ++tick) {
      const double angle = std::numbers::pi * tick / 6, s = std::sin(angle), c = std::cos(angle);
      svg_.line(x + s * (radius - 6), y - c * (radius - 6), x + s * (radius - 1), y - c * (radius - 1),
                "hand");
    }
    svg_.text(x, y + 5, 2 * radius - 16, format_duration(manifest_.rating), style::kStrong, "",
              Anchor::kMiddle);
    const double left = x + radius + 20, width = sheet::kInnerRight - left;
    svg_.text(left, y_ + 14, width, "RATING", style::kHeading);
    const double taken = mark_at(sheet::kInnerRight, y_ + 34, "rating");
    svg_.text(left, y_ + 34, width - taken, "Ends after " + format_duration(manifest_.rating),
              style::kStrong);
    svg_.text(left, y_ + 53, width, "kept by the host, whatever happens inside", style::kSmall, "dim");
    const double idle = mark_at(sheet::kInnerRight, y_ + 71, "idle");
    svg_.text(left, y_ + 71, width - idle,
              manifest_.idle ? "or after " + format_duration(*manifest_.idle) + " in which nothing happens"
                             : "idle time is not capped",
              style::kSmall, "dim");
    svg_.text(left, y_ + 87, width, std::string("dial: ") + dial->name, style::kSmall, "dim");
    y_ += 2 * radius + 8;
  }

  void row(const char* label, const std::string& text, const TextStyle& how, size_t most = 2) {
    const double left = sheet::kInnerLeft + kLabel, width = sheet::kInnerRight - left;
    svg_.text(sheet::kInnerLeft, y_, kLabel - 8, label, style::kBody, "dim");
    const std::string full = harmless(text);
    const auto lines = wrap_lines(full, how.face, how.size, width, most);
    const bool cut = !lines.empty() && lines.back().ends_with("\u2026");
    if (cut) svg_.open_group("more", full);
    for (const auto& line : lines) {
      svg_.text(left, y_, width, line, how);
      y_ += 17;
    }
    if (cut) svg_.close_group();
    if (lines.empty()) y_ += 17;
    y_ += 3;
  }

  void account() {
    heading("INSIDE");
    row("account",
        manifest_.run_as + ", uid " + std::to_string(manifest_.uid_of(manifest_.run_as)) + ", no privileges",
        style::kBody);
    row("image", image_words(manifest_.image), style::kCode);
    row("command",
        manifest_.command.empty() ? "none declared: firestop run -- COMMAND"
                                  : command_words(manifest_.command),
        style::kCode, 3);
    std::vector<std::string> names = variables_set_by_firestop(manifest_);
    for (const auto& [name, value] : manifest_.environment) names.push_back(name);
    for (const auto& credential : manifest_.credentials) names.push_back(credential.env);
    std::sort(names.begin(), names.end());
    row("environment", join_words(names, " "), style::kCode, 3);
    for (const auto& credential : manifest_.credentials) {
      if (&credential - manifest_.credentials.data() == 4) {
        row("", "and " + std::to_string(manifest_.credentials.size() - 4) + " placeholders more",
            style::kBody);
        break;
      }
      row(&credential == manifest_.credentials.data() ? "placeholders" : "",
          "$" + credential.env + " for " + credential.name + ", as " + credential.inject, style::kBody, 1);
    }
    y_ -= 17;
  }

  void capabilities() {
    heading("CAPABILITIES");
    for (const auto capability : kAllCapabilities) {
      const bool granted = manifest_.capabilities.contains(capability);
      const double x = sheet::kInnerLeft + 6, y = y_ - 4;
      svg_.rect(x - 6, y - 6, 12, 12, granted ? "yes" : "thin no", 2);
      if (granted) svg_.path(x, y, "M-3.5 0L-1 2.8L3.8 -3", "thin tick");
      const double left = sheet::kInnerLeft + 22, words = left + 84;
      const double taken =
          mark_at(sheet::kInnerRight, y_, std::string("capability ") + to_string(capability));
      svg_.text(left, y_, 80, to_string(capability), style::kBody, granted ? "" : "dim struck");
      const auto lines = wrap_lines(granted ? meaning_of(capability) : "not granted", Face::kSans,
                                    style::kSmall.size, sheet::kInnerRight - words - taken, 2);
      for (const auto& line : lines) {
        svg_.text(words, y_, sheet::kInnerRight - words - taken, line, style::kSmall, "dim");
        y_ += 15;
      }
      y_ += 4;
    }
    y_ -= 19;
  }

  void caps() {
    heading("CAPS");
    auto all = caps_of(manifest_);
    std::erase_if(all, [](const Cap& cap) { return cap.field == "rating" || cap.field == "idle"; });
    const size_t rows = (all.size() + 1) / 2;
    const double column = (kInner - 28) / 2, top = y_;
    for (size_t at = 0; at < all.size(); ++at) {
      const Cap& cap = all[at];
      const double x = sheet::kInnerLeft + (at < rows ? 0 : column + 28);
      const double y = top + 18 * static_cast<double>(at < rows ? at : at - rows);
      const double right = x + column, taken = mark_at(right, y, cap.field);
      const double label = manifest::text_width(cap.label, Face::kSans, style::kSmall.size) + 6;
      svg_.text(x, y, label, cap.label, style::kSmall, "dim");
      svg_.text(right - taken, y, column - label - taken, cap.text, style::kSmall, cap.declared ? "" : "dim",
                Anchor::kEnd);
      if (at + 1 != rows && at + 1 != all.size()) svg_.line(x, y + 5, right, y + 5, "rule");
    }
    y_ = top + 18 * static_cast<double>(rows - 1);
    y_ += 21;
    svg_.text(sheet::kInnerLeft, y_, kInner, "Dim: the default, since the manifest is silent.", style::kSmall,
              "dim");
  }

  Svg& svg_;
  double y_;
  const Manifest& manifest_;
  const std::vector<Change>& changes_;
};

}  // namespace

double draw_inside(Svg& svg, double y, const Manifest& manifest, const std::vector<Change>& changes) {
  return Inside(svg, y, manifest, changes).run();
}

double draw_absent(Svg& svg, double y, const Manifest& manifest) {
  auto all = denied_by(manifest);
  std::erase_if(all, [](const Denied& denied) {  // capabilities have rows in the room
    return std::any_of(std::begin(kAllCapabilities), std::end(kAllCapabilities),
                       [&](Capability one) { return denied.what == to_string(one); });
  });
  constexpr double kGap = 24;
  constexpr size_t kColumns = 3;
  const double width = (sheet::kRight - sheet::kLeft - (kColumns - 1) * kGap) / kColumns;
  svg.text(sheet::kLeft, y, 400, "NOT IN THE ROOM", style::kHeading);
  y += 7;
  svg.line(sheet::kLeft, y, sheet::kRight, y, "rule");
  y += 19;
  for (size_t at = 0; at < all.size(); at += kColumns) {
    size_t most = 1;
    for (size_t column = 0; column < kColumns && at + column < all.size(); ++column) {
      const Denied& denied = all[at + column];
      const double x = sheet::kLeft + static_cast<double>(column) * (width + kGap), words = x + 110;
      svg.path(x + 5, y - 4, "M-4 -4L4 4M4 -4L-4 4", "thin no");
      svg.text(x + 17, y, 88, denied.what, style::kSmall);
      double line_y = y;
      const auto lines = wrap_lines(denied.meaning, Face::kSans, style::kSmall.size, x + width - words, 3);
      for (const auto& line : lines) {
        svg.text(words, line_y, x + width - words, line, style::kSmall, "dim");
        line_y += 15;
      }
      most = std::max(most, lines.size());
    }
    y += 15 * static_cast<double>(most) + 6;
  }
  return y - 21;
}

}  // namespace firestop::manifest
