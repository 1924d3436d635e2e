#include <tuple>

#include "manifest/openai_entries.h"

namespace firestop::manifest {
namespace {

constexpr const char* kExpected = "expected octal permissions in quotes, such as \"0644\" or \"0755\"";

std::string octal(unsigned bits) {
  return {'0', static_cast<char>('0' + (bits >> 6 & 7u)), static_cast<char>('0' + (bits >> 3 & 7u)),
          static_cast<char>('0' + (bits & 7u))};
}

// 400 is 0620 to the SDK, while whoever wrote it most likely meant 0400: digits of which each class may read
// or do nothing, and none may more than the one before.
bool looks_octal(const std::string& digits) {
  unsigned above = 7;
  for (const char c : digits) {
    if (c < '0' || c > '7') return false;
    const auto bits = static_cast<unsigned>(c - '0');
    if ((bits & ~above) != 0 || (bits != 0 && bits < 4)) return false;
    above = bits;
  }
  return digits != "511";
}

void from_number(Reader& reader, YamlNode& node, const Place& place) {
  const std::string digits = node.text;
  unsigned bits = 0;
  for (const char c : digits) bits = bits * 10 + static_cast<unsigned>(c - '0');
  if (bits > 0777) {
    reader.fault(place, "the number " + digits + " is more than the nine permission bits", kExpected);
  } else if (looks_octal(digits)) {
    reader.fault(
        place,
        "the number " + digits + " is " + octal(bits) + " when read as a number, and looks like 0" + digits,
        "write \"0" + digits + "\" or \"" + octal(bits) + "\"");
  } else {
    node = text_node(octal(bits), node.where);
    return;
  }
  node = YamlNode{};
}

void from_letters(Reader& reader, YamlNode& node, const Place& place, IsFolder folder) {
  std::string_view letters = node.text;
  if (letters.size() == 10) {
    if (letters[0] == 'd' && folder == IsFolder::kNo) {
      reader.fault(place, "is " + describe(node) + ", which is about a folder, on a file", kExpected);
      node = YamlNode{};
      return;
    }
    letters.remove_prefix(1);
  }
  unsigned bits = 0;
  bool special = false;
  for (size_t i = 0; i < 9; ++i) {
    const char c = letters[i];
    if (c == '-') continue;
    if (c == "rwx"[i % 3]) {
      bits |= 1u << (8 - i);
    } else if (i % 3 == 2 && std::string_view("sStT").find(c) != std::string_view::npos) {
      special = true;
    } else {
      reader.fault(place, "is " + describe(node), kExpected);
      node = YamlNode{};
      return;
    }
  }
  if (special) {
    reader.fault(place, node.text + " sets the setuid, setgid or sticky bit",
                 "expected the nine permission bits only");
    node = YamlNode{};
    return;
  }
  node = text_node(octal(bits), node.where);
}

void from_mapping(Reader& reader, YamlNode& node, const Place& place, IsFolder folder) {
  static constexpr std::string_view kKeys[] = {"owner", "group", "other", "directory", "sticky"};
  const Fields fields(reader, place, kKeys, "permissions");
  // The SDK's own defaults for what is left out.
  unsigned bits = 0;
  bool good = true;
  for (const auto& [key, shift, fallback] :
       {std::tuple{"owner", 6, 7u}, {"group", 3, 0u}, {"other", 0, 0u}}) {
    unsigned value = fallback;
    if (const auto member = fields.get(key)) {
      const auto number = reader.integer(*member, 0, 7);
      good = good && number.has_value();
      value = static_cast<unsigned>(number.value_or(0));
    }
    bits |= value << shift;
  }
  if (const auto directory = fields.get("directory")) {
    const auto is = reader.boolean(*directory);
    if (is.value_or(false) && folder == IsFolder::kNo)
      reader.fault(*directory, "is true for an entry that is a file", "expected false");
  }
  if (const auto sticky = fields.get("sticky"); sticky && reader.boolean(*sticky).value_or(false))
    reader.fault(*sticky, "sets the sticky bit", "expected the nine permission bits only");
  node = good ? text_node(octal(bits), place.where()) : YamlNode{};
}

bool all_of(std::string_view text, std::string_view set) {
  return text.find_first_not_of(set) == std::string_view::npos;
}

}  // namespace

void translate_openai_permissions(Reader& reader, YamlNode& node, const std::string& field, IsFolder folder) {
  const Place place{&node, field};
  if (is_mapping(node)) {
    from_mapping(reader, node, place, folder);
    return;
  }
  if (node.kind != YamlNode::Kind::kScalar) return;
  const auto type = codec::type_of(node);
  const std::string& text = node.text;
  if (type == codec::ScalarType::kInteger && text.size() <= 5 && text[0] != '0' && all_of(text, "0123456789"))
    from_number(reader, node, place);
  else if (type == codec::ScalarType::kText && (text.size() == 9 || text.size() == 10) &&
           all_of(text, "rwxsStTd-") && (text.size() == 9 || text[0] == 'd' || text[0] == '-'))
    from_letters(reader, node, place, folder);
}

}  // namespace firestop::manifest
