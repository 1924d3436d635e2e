#include "manifest/drawing_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "codec/utf8.h"

namespace firestop::manifest {
namespace {

// Thousandths of the size, U+0020 to U+007E.
constexpr uint16_t kSans[] = {318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
                              636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
                              1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
                              603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
                              500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
                              635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};
constexpr uint16_t kBold[] = {
    348, 456,  521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415,  380, 365, 696, 696,  696,
    696, 696,  696, 696, 696, 696,  696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830,  683,
    683, 821,  837, 372, 372, 775,  637, 995, 837, 850, 733, 850, 770, 720,  682, 812, 774, 1103, 771,
    724, 725,  457, 365, 457, 838,  500, 500, 675, 716, 593, 716, 678, 435,  716, 712, 343, 343,  665,
    343, 1042, 712, 687, 716, 716,  493, 595, 478, 712, 652, 924, 645, 652,  582, 712, 365, 712,  838};
static_assert(std::size(kSans) == 95 && std::size(kBold) == 95);
constexpr double kMono = 0.603;

struct Block {
  char32_t first, last;
  double width;  // of its widest letter, in any face
};
// What is shown as it is: letters that stand one beside the other.
constexpr Block kShown[] = {
    {0x00A1, 0x00AC, 1.1},   {0x00AE, 0x02AF, 1.6},   {0x0370, 0x0373, 1.1},   {0x0376, 0x0377, 1.1},
    {0x037B, 0x037F, 1.1},   {0x0384, 0x0482, 1.45},  {0x048A, 0x0587, 1.45},  {0x05D0, 0x05EA, 1.1},
    {0x0620, 0x064A, 1.4},   {0x1E00, 0x1FFE, 1.6},   {0x2010, 0x2015, 1.1},   {0x2018, 0x2022, 1.1},
    {0x2026, 0x2026, 1.1},   {0x20AC, 0x20AC, 1.1},   {0x2190, 0x2193, 1.1},   {0x2212, 0x2212, 1.1},
    {0x3001, 0x301F, 1.3},   {0x3041, 0x3096, 1.3},   {0x30A1, 0x30FF, 1.3},   {0x3400, 0x4DBF, 1.3},
    {0x4E00, 0x9FFF, 1.3},   {0xAC00, 0xD7A3, 1.3},   {0xF900, 0xFAFF, 1.3},   {0xFF01, 0xFFDC, 1.3},
    {0xFFFD, 0xFFFD, 1.3},   {0x1F300, 0x1F3FA, 1.5}, {0x1F400, 0x1F64F, 1.5}, {0x1F680, 0x1F6C5, 1.5},
    {0x1F900, 0x1F9AF, 1.5}, {0x20000, 0x2FA1F, 1.3}};
constexpr bool is_combining(char32_t c) {
  return c >= 0x300 && c <= 0x36F;
}

const Block* block_of(char32_t c) {
  const auto* found = std::find_if(std::begin(kShown), std::end(kShown),
                                   [&](const Block& block) { return c >= block.first && c <= block.last; });
  return found == std::end(kShown) ? nullptr : found;
}

double width_of(char32_t c, Face face) {
  if (c >= 0x20 && c < 0x7F)
    return face == Face::kMono ? kMono : (face == Face::kBold ? kBold : kSans)[c - 0x20] / 1000.0;
  if (is_combining(c)) return 0;
  const Block* block = block_of(c);
  return block ? block->width : 1.6;
}

struct Character {
  char32_t code = 0xFFFD;
  size_t bytes = 1;
};
Character next(std::string_view text) {
  Character out;
  const size_t bytes = codec::decode_utf8(text, out.code);
  if (bytes == 0) return {};
  out.bytes = bytes;
  return out;
}

}  // namespace

double text_width(std::string_view text, Face face, double size, double spacing) {
  double out = 0;
  while (!text.empty()) {
    const Character c = next(text);
    out += width_of(c.code, face) * size + (is_combining(c.code) ? 0 : spacing);
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string harmless(std::string_view text, size_t most) {
  const bool more = text.size() > most;
  std::string_view rest = text.substr(0, most);
  std::string out;
  bool combined = true;  // nothing that a combining character could stand on
  while (!rest.empty()) {
    const Character c = next(rest);
    if (c.code == 0xFFFD && more && rest.size() < 4) break;  // cut in the middle
    rest.remove_prefix(c.bytes);
    if (c.code == '\n' || c.code == '\t' || c.code == '\r') {
      out += ' ';
      combined = true;
    } else if ((c.code >= 0x20 && c.code < 0x7F) || block_of(c.code)) {
      codec::append_utf8(out, c.code);
      combined = c.code == ' ';
    } else if (is_combining(c.code) && !combined) {
      codec::append_utf8(out, c.code);
      combined = true;
    } else {
      char escaped[24];
      std::snprintf(escaped, sizeof escaped, "\\u{%04X}", static_cast<unsigned>(c.code));
      out += escaped;
      combined = true;
    }
  }
  return more ? out + "\u2026" : out;
}

std::string elide(std::string_view text, Face face, double size, double width, double spacing) {
  if (text_width(text, face, size, spacing) <= width) return std::string(text);
  const std::string_view dots = "\u2026";
  const double room = width - text_width(dots, face, size, spacing);
  size_t end = 0;
  for (double used = 0; end < text.size();) {
    const Character c = next(text.substr(end));
    used += width_of(c.code, face) * size + spacing;
    if (used > room) break;
    end += c.bytes;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  return std::string(text.substr(0, end)) + std::string(dots);
}

std::vector<std::string> wrap_lines(std::string_view text, Face face, double size, double width,
                                    size_t most) {
  std::vector<std::string> out;
  while (!text.empty() && out.size() + 1 < most && text_width(text, face, size) > width) {
    size_t end = 0, blank = 0;
    for (double used = 0; end < text.size();) {
      const Character c = next(text.substr(end));
      used += width_of(c.code, face) * size;
      if (used > width) break;
      end += c.bytes;
      if (c.code == ' ') blank = end;
    }
    if (end < text.size() && text[end] == ' ') blank = end;
    size_t cut = blank > 0 ? blank : std::max<size_t>(end, 1);
    std::string_view line = text.substr(0, cut);
    while (line.ends_with(' ')) line.remove_suffix(1);
    out.emplace_back(line);
    text.remove_prefix(cut);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  if (!text.empty()) out.push_back(elide(text, face, size, width));
  return out;
}

}  // namespace firestop::manifest
