// Writes an SVG 1.1 document that needs nothing else: no script, no font, no address; its colours follow the
// reader's light or dark scheme. Everything of a manifest goes through here as text and is escaped.
#pragma once

#include <string>
#include <string_view>

#include "manifest/drawing_text.h"

namespace firestop::manifest {

struct TextStyle {
  const char* name;  // its class
  Face face;
  double size;
  double spacing = 0;
};
namespace style {
inline constexpr TextStyle kTitle{"title", Face::kBold, 26};
inline constexpr TextStyle kLead{"lead", Face::kSans, 13};
inline constexpr TextStyle kHeading{"heading", Face::kBold, 10.5, 1.2};
inline constexpr TextStyle kStrong{"strong", Face::kBold, 14};
inline constexpr TextStyle kName{"name", Face::kMono, 13};
inline constexpr TextStyle kBody{"body", Face::kSans, 12};
inline constexpr TextStyle kSmall{"small", Face::kSans, 11};
inline constexpr TextStyle kCode{"code", Face::kMono, 12};
inline constexpr TextStyle kTag{"tag", Face::kBold, 9.5, 0.6};
}  // namespace style

enum class Anchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  // A harmless text, elided to `width`; what is left out can be read as its title. `more` are further
  // classes.
  void text(double x, double y, double width, std::string_view text, const TextStyle& style,
            const char* more = "", Anchor anchor = Anchor::kStart);
  void rect(double x, double y, double width, double height, const char* classes, double radius = 0);
  void line(double x1, double y1, double x2, double y2, const char* classes);
  // `d` is drawn with its origin at x, y.
  void path(double x, double y, std::string_view d, const char* classes);
  void circle(double x, double y, double radius, const char* classes);
  void open_group(const char* classes, std::string_view title = {});
  void close_group();
  void append(const Svg& other) { body_ += other.body_; }

  // The document.
  std::string finish(int width, int height, std::string_view title, std::string_view description) const;

 private:
  std::string body_;
};

std::string coordinate(double value);  // at most two digits behind the point

}  // namespace firestop::manifest
