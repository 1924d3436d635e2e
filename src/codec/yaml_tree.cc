#include "codec/yaml_tree.h"

#include <algorithm>

#include "codec/utf8.h"

namespace firestop::codec {
namespace {

bool all_in(std::string_view text, std::string_view set) {
  return !text.empty() && text.find_first_not_of(set) == std::string_view::npos;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::string_view kDigits = "0123456789";

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (one_of(text, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) return true;
  const auto digits = [&] {
    const size_t n = std::min(text.find_first_not_of(kDigits), text.size());
    text.remove_prefix(n);
    return n;
  };
  const size_t whole = digits();
  size_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = digits();
  }
  if (whole + fraction == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  return text.empty();
}

const char* describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMapping:
      return "a mapping";
    case YamlNode::Kind::kNull:
      return "null";
    default:
      break;
  }
  switch (type_of(node)) {
    case ScalarType::kBool:
      return "true or false";
    case ScalarType::kInteger:
    case ScalarType::kFloat:
      return "a number";
    case ScalarType::kNull:
      return "null";
    case ScalarType::kText:
      break;
  }
  return "text";
}

}  // namespace

const YamlMember* YamlNode::find(std::string_view key) const {
  for (const auto& member : members)
    if (member.key == key) return &member;
  return nullptr;
}

ScalarType type_of(const YamlNode& scalar) {
  if (scalar.style == YamlNode::Style::kQuoted) return ScalarType::kText;
  const std::string_view text = scalar.text;
  if (text.empty() || one_of(text, {"~", "null", "Null", "NULL"})) return ScalarType::kNull;
  if (one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return ScalarType::kBool;
  if (text.starts_with("0o") && all_in(text.substr(2), "01234567")) return ScalarType::kInteger;
  if (text.starts_with("0x") && all_in(text.substr(2), "0123456789abcdefABCDEF")) return ScalarType::kInteger;
  const bool sign = text.front() == '-' || text.front() == '+';
  if (all_in(text.substr(sign ? 1 : 0), kDigits)) return ScalarType::kInteger;
  return is_float(text) ? ScalarType::kFloat : ScalarType::kText;
}

Position TreeBuilder::last_key() const {
  return open_.empty() || open_.back().key_next ? Position{} : open_.back().key_where;
}

std::string TreeBuilder::path() const {
  std::string out;
  for (const auto& open : open_) {
    if (open.node.kind == YamlNode::Kind::kSequence)
      out = item_path(out, open.node.items.size());
    else if (!open.key_next)
      out = child_path(out, open.key);
  }
  return out;
}

bool TreeBuilder::fault(Position where, std::string wrong, std::string expected) {
  faults_.push_back({"", where, path(), std::move(wrong), std::move(expected)});
  return faults_.size() < limits_.faults;
}

bool TreeBuilder::count(Position where) {
  if (++nodes_ <= limits_.nodes) return true;
  fault(where, "the document has too many values", "expected at most " + std::to_string(limits_.nodes));
  return false;
}

bool TreeBuilder::leaf(YamlNode node) {
  return count(node.where) && add(std::move(node));
}

bool TreeBuilder::begin(YamlNode::Kind kind, Position where, Layout layout) {
  if (!count(where)) return false;
  if (open_.size() == limits_.depth) {
    fault(where, "lists and mappings are nested too deeply",
          "expected at most " + std::to_string(limits_.depth) + " levels");
    return false;
  }
  Open open;
  open.node.kind = kind;
  open.node.where = where;
  open.layout = layout;
  open.key_next = kind == YamlNode::Kind::kMapping;
  open_.push_back(std::move(open));
  return true;
}

bool TreeBuilder::end() {
  YamlNode node = std::move(open_.back().node);
  open_.pop_back();
  return add(std::move(node));
}

bool TreeBuilder::take_key(YamlNode node) {
  Open& open = open_.back();
  open.key_where = node.where;
  open.key = node.kind == YamlNode::Kind::kScalar ? std::move(node.text) : "?";
  open.keep = false;
  if (node.kind == YamlNode::Kind::kInvalid) {
    open.key_next = false;
    return true;
  }
  bool more = true;
  YamlNode key = std::move(node);
  key.text = open.key;
  if (key.kind != YamlNode::Kind::kScalar || type_of(key) != ScalarType::kText) {
    const bool scalar = key.kind == YamlNode::Kind::kScalar;
    more = fault(key.where, std::string("a key that is ") + describe(key),
                 scalar ? "expected text; write \"" + key.text + "\" in quotes" : "expected text");
  } else if (key.text == "<<" && key.style == YamlNode::Style::kPlain) {
    more = fault(key.where, "a merge key '<<'", "expected the fields themselves");
  } else if (const auto [first, fresh] = open.seen.emplace(key.text, key.where); !fresh) {
    more = fault(key.where, "duplicate key " + in_quotes(key.text),
                 "expected each key once; the first is at line " + std::to_string(first->second.line));
  } else {
    open.keep = true;
  }
  open.key_next = false;
  return more;
}

bool TreeBuilder::add(YamlNode node) {
  if (open_.empty()) {
    root_ = std::move(node);
    done_ = true;
    return true;
  }
  Open& open = open_.back();
  if (open.node.kind == YamlNode::Kind::kSequence) {
    open.node.items.push_back(std::move(node));
    return true;
  }
  if (open.key_next) return take_key(std::move(node));
  if (open.keep) open.node.members.push_back({std::move(open.key), open.key_where, std::move(node)});
  open.key_next = true;
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 60;
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out = "'";
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++characters) {
    if (characters == kMost) return out + "...'";
    char32_t code = 0;
    const size_t length = decode_utf8(text.substr(i), code);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '\n') {
      out += "\\n";
    } else if (text[i] == '\t') {
      out += "\\t";
    } else if (length == 0 || code < 0x20 || code == 0x7F) {
      out += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
    } else if ((code >= 0x80 && code < 0xA0) || (code >= 0x2000 && code <= 0x206F) || code == 0xFEFF) {
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out + "'";
}

std::string child_path(std::string_view path, std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  std::string out(path);
  if (!key.empty() && key.size() <= 60 && std::all_of(key.begin(), key.end(), plain))
    return (out.empty() ? "" : out + ".") + std::string(key);
  std::string inner = in_quotes(key);
  inner.front() = inner.back() = '"';
  return out + "[" + inner + "]";
}

std::string item_path(std::string_view path, size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

}  // namespace firestop::codec
