#include "manifest/drawing_svg.h"

#include <cmath>

#include "codec/markup.h"

namespace firestop::manifest {
namespace {

constexpr std::string_view kShapes = R"(
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;
 white-space:pre;direction:ltr;unicode-bidi:bidi-override}
.name,.code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace}
.title{font-size:26px;font-weight:700}.lead{font-size:13px}.strong{font-size:14px;font-weight:700}
.heading{font-size:10.5px;font-weight:700;letter-spacing:1.2px}.name{font-size:13px;font-weight:600}
.body{font-size:12px}.small{font-size:11px}.code{font-size:12px}
.tag{font-size:9.5px;font-weight:700;letter-spacing:.6px}
.struck{text-decoration:line-through}
.thin,.rule,.pipe,.icon,.hand,.frame{fill:none}
.rule,.frame,.card,.thin{stroke-width:1}.frame2{fill:none;stroke-width:2.5}.pipe{stroke-width:2}
.icon{stroke-width:1.6;stroke-linecap:round;stroke-linejoin:round}.hand{stroke-width:2;stroke-linecap:round}
.poche{fill:url(#hatch)}.plan{fill:url(#floor)}
.seal{stroke-width:1.6}.blank{stroke-dasharray:4 3}
.card.opens{stroke-width:2.5}.card.closes{stroke-width:2;stroke-dasharray:7 4}.card.changes{stroke-width:1.6}
)";

// Selectors and what they are painted with, in light and in dark.
struct Paint {
  const char *selector, *property, *light, *dark;
};
constexpr Paint kPaints[] = {
    {".sheet", "fill", "#f7f5f0", "#14171c"},
    {".floor", "fill", "#fffefb", "#1b2027"},
    {".grid", "stroke", "#efece4", "#222831"},
    {".wall", "fill", "#343a43", "#a9b2bd"},
    {".hatch", "stroke", "#59616d", "#828c99"},
    {"text", "fill", "#1d2229", "#e8e6e1"},
    {".dim", "fill", "#5a626d", "#a3acb8"},
    {".heading", "fill", "#5a626d", "#a3acb8"},
    {".frame,.frame2", "stroke", "#343a43", "#6d7682"},
    {".rule", "stroke", "#d3cec2", "#39414c"},
    {".card", "fill", "#fffefb", "#1f252d"},
    {".card", "stroke", "#b9b3a5", "#47515e"},
    {".pipe", "stroke", "#6b7380", "#8b95a3"},
    {".tip", "fill", "#6b7380", "#8b95a3"},
    {".seal", "fill", "#fdeee4", "#3a2518"},
    {".seal,.icon,.hand", "stroke", "#a9431a", "#ff9e6d"},
    {".accent", "fill", "#a9431a", "#ff9e6d"},
    {".sweep", "fill", "#f4d2bf", "#5a3420"},
    {".dial", "fill", "#fffefb", "#1f252d"},
    {".dial", "stroke", "#a9431a", "#ff9e6d"},
    {".proxy", "fill", "#343a43", "#a9b2bd"},
    {".onwall", "fill", "#ffffff", "#14171c"},
    {".yes", "fill", "#a9431a", "#ff9e6d"},
    {".no", "stroke", "#7a828d", "#8b95a3"},
    {".tick", "stroke", "#fffefb", "#1b2027"},
    {".card.opens", "stroke", "#b00f2f", "#ff7b93"},
    {".card.closes", "stroke", "#0f6b3a", "#6fdc9c"},
    {".card.changes", "stroke", "#2456a6", "#8ab8ff"},
    {".card.opens", "fill", "#fff1f2", "#331a20"},
    {".card.closes", "fill", "#effaf3", "#15281d"},
    {"text.opens,.mark.opens", "fill", "#b00f2f", "#ff7b93"},
    {"text.closes,.mark.closes", "fill", "#0f6b3a", "#6fdc9c"},
    {"text.changes,.mark.changes", "fill", "#2456a6", "#8ab8ff"},
};

std::string colours(bool dark) {
  std::string out;
  for (const auto& paint : kPaints)
    out +=
        std::string(paint.selector) + "{" + paint.property + ":" + (dark ? paint.dark : paint.light) + "}\n";
  return out;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + coordinate(value) + "\"";
}
std::string class_of(std::string_view classes) {
  return " class=\"" + std::string(classes) + "\"";
}

}  // namespace

std::string coordinate(double value) {
  const auto hundredths = static_cast<long>(std::lround(value * 100));
  const long whole = std::labs(hundredths) / 100, part = std::labs(hundredths) % 100;
  std::string out = (hundredths < 0 ? "-" : "") + std::to_string(whole);
  if (part == 0) return out;
  out += part < 10 ? ".0" : ".";
  out += std::to_string(part);
  if (out.back() == '0') out.pop_back();
  return out;
}

void Svg::text(double x, double y, double width, std::string_view text, const TextStyle& style,
               const char* more, Anchor anchor) {
  const std::string full = harmless(text);
  const std::string shown = elide(full, style.face, style.size, width, style.spacing);
  std::string classes = style.name;
  if (*more != '\0') classes += std::string(" ") + more;
  body_ += "<text" + attribute("x", x) + attribute("y", y) + class_of(classes) + attribute("data-w", width);
  if (anchor == Anchor::kMiddle) body_ += " text-anchor=\"middle\"";
  if (anchor == Anchor::kEnd) body_ += " text-anchor=\"end\"";
  body_ += ">";
  if (shown != full) body_ += "<title>" + codec::escape_markup(full) + "</title>";
  body_ += codec::escape_markup(shown) + "</text>\n";
}

void Svg::rect(double x, double y, double width, double height, const char* classes, double radius) {
  body_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + class_of(classes);
  if (radius > 0) body_ += attribute("rx", radius);
  body_ += "/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const char* classes) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
           class_of(classes) + "/>\n";
}

void Svg::path(double x, double y, std::string_view d, const char* classes) {
  body_ += "<path transform=\"translate(" + coordinate(x) + " " + coordinate(y) + ")\" d=\"" +
           std::string(d) + "\"" + class_of(classes) + "/>\n";
}

void Svg::circle(double x, double y, double radius, const char* classes) {
  body_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + class_of(classes) +
           "/>\n";
}

void Svg::open_group(const char* classes, std::string_view title) {
  body_ += "<g" + class_of(classes) + ">\n";
  if (!title.empty()) body_ += "<title>" + codec::escape_markup(harmless(title)) + "</title>\n";
}

void Svg::close_group() {
  body_ += "</g>\n";
}

std::string Svg::finish(int width, int height, std::string_view title, std::string_view description) const {
  const std::string w = std::to_string(width), h = std::to_string(height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " +
         w + " " + h + "\" width=\"" + w + "\" height=\"" + h + "\">\n<title>" +
         codec::escape_markup(harmless(title)) + "</title>\n<desc>" +
         codec::escape_markup(harmless(description)) + "</desc>\n<style>" + std::string(kShapes) +
         colours(false) + "@media (prefers-color-scheme:dark){\n" + colours(true) + "}\n</style>\n" +
         "<defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"hatch\" "
         "stroke-width=\"2\"/></pattern>"
         "<pattern id=\"floor\" width=\"24\" height=\"24\" patternUnits=\"userSpaceOnUse\">"
         "<path d=\"M24 0H0V24\" class=\"grid thin\"/></pattern></defs>\n" +
         body_ + "</svg>\n";
}

}  // namespace firestop::manifest
