// The parts of the drawing. Each is drawn from a given place downwards and says where it ends.
#pragma once

#include <string>
#include <vector>

#include "manifest/drawing.h"
#include "manifest/drawing_model.h"
#include "manifest/drawing_svg.h"

namespace firestop::manifest {

// The sheet, in units of the drawing.
namespace sheet {
inline constexpr double kWidth = 1200, kLeft = 36, kRight = 1164;
inline constexpr double kCard = 290, kWall = 14;
inline constexpr double kRoomLeft = 386, kRoomRight = 814;  // the walls' outer faces
inline constexpr double kInnerLeft = 426, kInnerRight = 774;
inline constexpr double kOutLeft = kRight - kCard;
}  // namespace sheet

struct CardSize {
  double width, height, gap;
  bool compact;  // two lines instead of three
};
CardSize card_size(double width, size_t crossings);

inline constexpr double kCardLine = 16;  // what a second line adds to a card's height
// What a crossing is, as the lines of a card that is not compact.
std::vector<std::string> card_lines(double width, const Crossing& crossing);

void draw_card(Svg& svg, double x, double y, const CardSize& size, const Crossing& crossing);
// The collar in the wall, around its middle.
void draw_seal(Svg& svg, double x, double y, Seal seal, Mark mark);
void draw_seal_icon(Svg& svg, double x, double y, Seal seal);
void draw_mark(Svg& svg, double x, double y, Mark mark);

// What is inside the room: rating, account, command, capabilities, caps.
double draw_inside(Svg& svg, double y, const Manifest& manifest, const std::vector<Change>& changes);

// What is in no such room, below it.
double draw_absent(Svg& svg, double y, const Manifest& manifest);
double draw_changes(Svg& svg, double y, const std::vector<Change>& changes);
double draw_legend_and_title(Svg& svg, double y, const Manifest& manifest, const TitleBlock& block,
                             bool diff);

}  // namespace firestop::manifest
