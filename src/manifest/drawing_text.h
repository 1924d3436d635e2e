// Text that is laid out before anybody knows which font will show it. Widths are those of DejaVu Sans, the
// widest of the fonts that "system-ui" stands for, and of DejaVu Sans Mono: other fonts leave some room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::manifest {

enum class Face { kSans, kBold, kMono };

// `spacing` is added after each character. In the unit of `size`.
double text_width(std::string_view text, Face face, double size, double spacing = 0);

// On one line, and nothing in it that moves other text or is not there for the eye: control, format and
// stacked combining characters, and scripts whose widths are not known, stand as "\u{202E}".
// At most `most` bytes of `text` are read; if there are more, it ends with an ellipsis.
std::string harmless(std::string_view text, size_t most = 1024);

// The beginning of a harmless text that fits into `width`, with an ellipsis if there is more.
std::string elide(std::string_view text, Face face, double size, double width, double spacing = 0);
// Lines of a harmless text, broken at blanks where there are some; the last of `most` lines is elided.
std::vector<std::string> wrap_lines(std::string_view text, Face face, double size, double width, size_t most);

}  // namespace firestop::manifest
