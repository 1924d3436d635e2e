// YAML 1.2 and JSON that people wrote, as a tree with positions. Strict: what two readers could take for two
// different things is a fault. yaml-cpp's event parser stands behind a filter and below our own layer.
//
// Refused: bytes that are not UTF-8, control characters but \n \t \r\n (also U+0080..U+009F, U+2028, U+2029),
// characters that change the direction of text (a reviewer would read something else than the parser), a
// byte order mark except as the first character, more than the limits below, directives, anchors, aliases,
// tags, merge keys, keys that are not text, duplicate keys, tabs in indentation, a second document.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace firestop::codec {

struct YamlLimits {
  size_t bytes = 1u << 20;
  size_t depth = 32;     // of sequences and mappings in each other
  size_t nodes = 20000;  // scalars, sequences and mappings, keys not counted
  size_t faults = 100;   // then reading stops
};

struct YamlMember;

struct YamlNode {
  enum class Kind {
    kInvalid,  // a fault says why; whoever reads the tree passes over it in silence
    kNull,     // ~, null, or nothing at all; then `where` is the key's position
    kScalar,
    kSequence,
    kMapping
  };
  enum class Style { kPlain, kQuoted };  // of a scalar; block scalars count as quoted

  Kind kind = Kind::kInvalid;
  Style style = Style::kPlain;
  Position where;
  std::string text;                 // scalar: its content, escapes undone
  std::vector<YamlNode> items;      // sequence
  std::vector<YamlMember> members;  // mapping, in document order; no key twice

  // The member with this key, or nullptr.
  const YamlMember* find(std::string_view key) const;
};

struct YamlMember {
  std::string key;
  Position where;  // of the key
  YamlNode value;
};

// What a scalar means by the core schema of YAML 1.2.2 (section 10.3.2). Quoted scalars are text; so are
// yes, no, on and off. Numbers: decimal, 0o17, 0x1F, floats, .inf, .nan.
enum class ScalarType { kText, kNull, kBool, kInteger, kFloat };
ScalarType type_of(const YamlNode& scalar);

struct YamlDocument {
  YamlNode root;                   // kInvalid if the text could not be read to its end
  std::vector<Diagnostic> faults;  // by position; `file` is empty
};

YamlDocument parse_yaml(std::string_view text, const YamlLimits& limits = {});

// How a field path goes on: child("workspace.entries", "notes.md") is workspace.entries["notes.md"]. Long or
// odd keys are shortened and escaped.
std::string child_path(std::string_view path, std::string_view key);
std::string item_path(std::string_view path, size_t index);
// 'text' in quotes for a message: one line, at most 60 characters, escapes for what cannot be printed.
std::string in_quotes(std::string_view text);

}  // namespace firestop::codec
