#include "codec/utf8.h"
#include "codec/yaml_text.h"
#include "codec/yaml_tree.h"

namespace firestop::codec {
namespace {

// A recursive descent over RFC 8259. It stops at the first fault without a word: YAML's reader explains.
class JsonReader {
 public:
  JsonReader(std::string_view text, TreeBuilder& builder) : text_(text), index_(text), builder_(builder) {}

  bool document() { return value() && (space(), at_ == text_.size()); }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  bool value() {
    space();
    const Position where = index_.at(at_);
    switch (peek()) {
      case '{':
        return mapping(where);
      case '[':
        return sequence(where);
      case '"':
        return string(where);
      default:
        return word(where);
    }
  }

  // The builder bounds the depth, so this recursion is bounded.
  bool mapping(Position where) {
    if (!builder_.begin(YamlNode::Kind::kMapping, where, TreeBuilder::Layout::kFlow)) return false;
    ++at_;
    space();
    if (take('}')) return builder_.end();
    do {
      space();
      if (peek() != '"' || !string(index_.at(at_))) return false;
      space();
      if (!take(':') || !value()) return false;
      space();
    } while (take(','));
    return take('}') && builder_.end();
  }

  bool sequence(Position where) {
    if (!builder_.begin(YamlNode::Kind::kSequence, where, TreeBuilder::Layout::kFlow)) return false;
    ++at_;
    space();
    if (take(']')) return builder_.end();
    do {
      if (!value()) return false;
      space();
    } while (take(','));
    return take(']') && builder_.end();
  }

  bool leaf(YamlNode::Kind kind, YamlNode::Style style, Position where, std::string text) {
    YamlNode node;
    node.kind = kind;
    node.style = style;
    node.where = where;
    node.text = std::move(text);
    return builder_.leaf(std::move(node));
  }

  bool digits() {
    const size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start;
  }

  bool word(Position where) {
    for (const std::string_view name : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(name)) continue;
      at_ += name.size();
      return leaf(name == "null" ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar, YamlNode::Style::kPlain,
                  where, std::string(name));
    }
    const size_t start = at_;
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('-')) take('+');
      if (!digits()) return false;
    }
    return leaf(YamlNode::Kind::kScalar, YamlNode::Style::kPlain, where,
                std::string(text_.substr(start, at_ - start)));
  }

  bool hex4(char32_t& out) {
    out = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return false;
      out = out << 4 | static_cast<char32_t>(digit);
      ++at_;
    }
    return true;
  }

  bool escape(std::string& out) {
    const char c = peek();
    ++at_;
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const size_t i = kFrom.find(c); i != std::string_view::npos && c != '\0') {
      out += kTo[i];
      return true;
    }
    char32_t code = 0;
    if (c != 'u' || !hex4(code)) return false;
    if (code >= 0xD800 && code <= 0xDBFF) {
      char32_t low = 0;
      if (!take('\\') || !take('u') || !hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      return false;
    }
    append_utf8(out, code);
    return true;
  }

  bool string(Position where) {
    ++at_;
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return leaf(YamlNode::Kind::kScalar, YamlNode::Style::kQuoted, where, std::move(out));
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\')
        out += c;
      else if (!escape(out))
        return false;
    }
    return false;
  }

  std::string_view text_;
  TextIndex index_;
  TreeBuilder& builder_;
  size_t at_ = 0;
};

}  // namespace

bool read_json(std::string_view text, TreeBuilder& builder) {
  return JsonReader(text, builder).document();
}

}  // namespace firestop::codec
