#include "codec/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <tuple>

#include "base/units.h"
#include "codec/yaml_text.h"
#include "codec/yaml_tree.h"

namespace firestop::codec {
namespace {

struct Stop {};  // thrown through yaml-cpp by our handlers, caught in parse_yaml

constexpr std::string_view kBlank = " \t\r\n";

// yaml-cpp's words for what it cannot read, in ours. The first whose key begins its message is taken.
struct Translation {
  std::string_view theirs, wrong, expected;
};
constexpr std::array kTranslations{
    Translation{"illegal map value", "a ':' that cannot stand here",
                "expected one 'key: value' a line, keys of one mapping in one column; quote text that has ': "
                "' in it"},
    Translation{"illegal map key", "a key that cannot stand here",
                "expected 'key: value' on a line of its own"},
    Translation{"illegal block entry", "a list entry '- ' that cannot stand here",
                "expected list entries on lines of their own, or a list in brackets: [a, b]"},
    Translation{"end of map not found", "text that belongs to nothing",
                "expected 'key: value', in the column of the keys above"},
    Translation{"end of sequence not found", "text that belongs to nothing",
                "expected '- ' in the column of the list above"},
    Translation{"end of map flow not found", "a mapping in braces that is not closed", "expected ',' or '}'"},
    Translation{"end of sequence flow not found", "a list in brackets that is not closed",
                "expected ',' or ']'"},
    Translation{"illegal flow end", "a closing bracket that does not match",
                "expected the one of the bracket that was opened last"},
    Translation{"illegal tab", "a tab in the indentation", "expected spaces only"},
    Translation{"unknown escape character", "an escape that does not exist",
                "expected one of YAML's escapes in a double-quoted text; write a backslash as \\\\"},
    Translation{"invalid unicode", "an escape that is no character",
                "expected a Unicode code point that is no surrogate"},
    Translation{"bad character found while scanning hex", "an escape that is not hexadecimal",
                "expected \\xHH or \\uHHHH"},
    Translation{"unknown token", "a character that cannot begin a value", "expected text in quotes"},
    Translation{"illegal document indicator", "a document marker inside of a text",
                "expected a closing quote before it"},
    Translation{"illegal EOF", "the text ends inside of a quoted text", "expected a closing quote"},
    Translation{"unexpected character in block scalar", "a block text's first line that cannot be read",
                "expected | or > and at most a digit and + or -"},
    Translation{"cannot set zero indentation", "a block text's first line that cannot be read",
                "expected | or > and at most a digit and + or -"},
    Translation{"cannot assign multiple tags", "a tag",
                "expected plain values; Firestop's documents have no tags"},
    Translation{"illegal character found while scanning tag", "a tag",
                "expected plain values; Firestop's documents have no tags"},
    Translation{"tag handle with no suffix", "a tag",
                "expected plain values; Firestop's documents have no tags"},
    Translation{"end of verbatim tag", "a tag", "expected plain values; Firestop's documents have no tags"},
    Translation{"the referenced anchor", "an alias",
                "expected the value itself; anchors and aliases are not accepted"},
    Translation{"alias", "an alias", "expected the value itself; anchors and aliases are not accepted"},
    Translation{"cannot assign multiple a", "an anchor",
                "expected the value itself; anchors and aliases are not accepted"},
    Translation{"anchor", "an anchor", "expected the value itself; anchors and aliases are not accepted"},
    Translation{"illegal character found while scanning a", "an anchor",
                "expected the value itself; anchors and aliases are not accepted"},
};

class Handler : public YAML::EventHandler {
 public:
  Handler(std::string_view text, const TextIndex& index, TreeBuilder& builder)
      : text_(text), index_(index), builder_(builder) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const size_t offset = offset_of(mark);
    YamlNode node;
    node.kind = YamlNode::Kind::kNull;
    node.where = index_.at(offset);
    const std::string_view rest = text_.substr(offset);
    const bool written = rest.starts_with('~') || rest.starts_with("null") || rest.starts_with("Null") ||
                         rest.starts_with("NULL");
    if (const Position key = builder_.last_key(); !written && anchor == 0 && key.line > 0) node.where = key;
    if (anchor != 0) refuse_anchor(offset);
    keep_going(builder_.leaf(std::move(node)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node;  // stays kInvalid
    node.where = index_.at(offset_of(mark));
    fault(node.where, "an alias", "expected the value itself; anchors and aliases are not accepted");
    keep_going(builder_.leaf(std::move(node)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const size_t offset = offset_of(mark);
    YamlNode node;
    node.kind = check_properties(offset, tag, anchor) ? YamlNode::Kind::kScalar : YamlNode::Kind::kInvalid;
    node.where = index_.at(offset);
    node.text = value;
    const char first = offset < text_.size() ? text_[offset] : ' ';
    if (first == '"' || first == '\'' || first == '|' || first == '>') node.style = YamlNode::Style::kQuoted;
    if (first == '"' || first == '\'') check_quotes(offset);
    keep_going(builder_.leaf(std::move(node)));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(YamlNode::Kind::kSequence, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { keep_going(builder_.end()); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(YamlNode::Kind::kMapping, mark, tag, anchor, style);
  }
  void OnMapEnd() override { keep_going(builder_.end()); }

 private:
  static void keep_going(bool more) {
    if (!more) throw Stop{};
  }
  void fault(Position where, std::string wrong, std::string expected) {
    keep_going(builder_.fault(where, std::move(wrong), std::move(expected)));
  }
  size_t offset_of(const YAML::Mark& mark) const {
    return mark.pos < 0 ? 0 : std::min(static_cast<size_t>(mark.pos), text_.size());
  }

  void begin(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style) {
    const size_t offset = offset_of(mark);
    check_properties(offset, tag, anchor);
    const bool flow = style == YAML::EmitterStyle::Flow;
    keep_going(builder_.begin(kind, index_.at(offset),
                              flow ? TreeBuilder::Layout::kFlow : TreeBuilder::Layout::kBlock));
  }

  void refuse_anchor(size_t offset) {
    fault(index_.at(offset), "an anchor", "expected the value itself; anchors and aliases are not accepted");
  }

  // What may stand before a value, and must not. yaml-cpp gives "?" for a plain value without a tag and "!"
  // for a quoted one, so that the tag "!" shows in the text only.
  bool check_properties(size_t offset, const std::string& tag, YAML::anchor_t anchor) {
    check_indentation(offset);
    const bool bare = offset < text_.size() && text_[offset] == '!';
    const bool tagged = bare || (!tag.empty() && tag != "?" && tag != "!");
    if (anchor != 0) refuse_anchor(offset);
    if (tagged) fault(index_.at(offset), "a tag", "expected plain values; Firestop's documents have no tags");
    return anchor == 0 && !tagged;
  }

  // Tabs between indentation and structure look like any depth; yaml-cpp lets some of them pass.
  void check_indentation(size_t offset) {
    if (builder_.in_flow()) return;
    const std::string_view indentation = index_.indentation_of(offset);
    if (indentation.find('\t') == std::string_view::npos) return;
    const size_t line = index_.at(offset).line;
    if (line == tab_line_) return;
    tab_line_ = line;
    fault({line, indentation.find('\t') + 1}, "a tab in the indentation", "expected spaces only");
  }

  // yaml-cpp takes the end of the text for a closing quote.
  void check_quotes(size_t start) {
    const char quote = text_[start];
    size_t i = start + 1;
    for (; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || i + 1 == text_.size() || text_[i + 1] != '\'') break;
        ++i;
      }
    }
    if (i >= text_.size()) {
      fault(index_.at(start), "a quoted text that is not closed", std::string("expected a closing ") + quote);
    } else if (i + 1 < text_.size() && kBlank.find(text_[i + 1]) == std::string_view::npos &&
               std::string_view(",]}:").find(text_[i + 1]) == std::string_view::npos) {
      fault(index_.at(i + 1), "text right after a closing quote", "expected one quoted text");
    }
  }

  std::string_view text_;
  const TextIndex& index_;
  TreeBuilder& builder_;
  size_t tab_line_ = 0;
};

// Notes where a document begins and stops there.
class SecondDocument : public Handler {
 public:
  using Handler::Handler;
  void OnDocumentStart(const YAML::Mark& mark) override {
    position = mark.pos < 0 ? 0 : static_cast<size_t>(mark.pos);
    throw Stop{};
  }
  std::optional<size_t> position;
};

void refuse_directives(std::string_view text, const TextIndex& index, std::vector<Diagnostic>& faults) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with('%'))
      faults.push_back(
          {"", index.at(at), "", "a directive", "expected the document alone; remove this line"});
    else if (!line.starts_with('#') && line.find_first_not_of(kBlank) != std::string_view::npos)
      return;
    at = end + 1;
  }
}

Diagnostic translate(const YAML::Exception& error, std::string_view text, const TextIndex& index) {
  const size_t offset = error.mark.pos < 0 ? 0 : std::min(static_cast<size_t>(error.mark.pos), text.size());
  Diagnostic out;
  out.where = index.at(offset);
  if (const auto tab = index.indentation_of(offset).find('\t'); tab != std::string_view::npos) {
    out.where.column = tab + 1;
    out.wrong = "a tab in the indentation";
    out.expected = "expected spaces only";
    return out;
  }
  for (const auto& [theirs, wrong, expected] : kTranslations) {
    if (!std::string_view(error.msg).starts_with(theirs)) continue;
    out.wrong = wrong;
    out.expected = expected;
    return out;
  }
  out.wrong = "this is not YAML: " + error.msg;
  return out;
}

// yaml-cpp over the text. The root, or nullopt after a fault that ended it.
std::optional<YamlNode> read_events(std::string_view text, const TextIndex& index, TreeBuilder& builder,
                                    std::vector<Diagnostic>& faults) {
  Handler handler(text, index, builder);
  SecondDocument second(text, index, builder);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(handler) || !builder.complete()) {
      faults.push_back({"", {1, 1}, "", "the document is empty", "expected a mapping"});
      return std::nullopt;
    }
    parser.HandleNextDocument(second);
  } catch (const Stop&) {
    if (!second.position) return std::nullopt;
    const bool marker = text.substr(std::min(*second.position, text.size())).starts_with("---");
    faults.push_back({"", index.at(*second.position), "",
                      marker ? "a second document" : "text after the end of the document",
                      marker ? "expected one document a file"
                             : "expected keys in the column of the first key, and nothing else"});
  } catch (const YAML::Exception& error) {
    faults.push_back(translate(error, text, index));
    return std::nullopt;
  } catch (const std::exception& error) {
    faults.push_back({"", {1, 1}, "", std::string("this cannot be read as YAML: ") + error.what(), ""});
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace

YamlDocument parse_yaml(std::string_view text, const YamlLimits& limits) {
  YamlDocument out;
  if (text.size() > limits.bytes) {
    out.faults.push_back({"",
                          {},
                          "",
                          "the document has " + std::to_string(text.size()) + " bytes",
                          "expected at most " + format_bytes(limits.bytes)});
    return out;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const TextIndex index(text);
  out.faults = forbidden_characters(text, index, limits.faults);
  if (!out.faults.empty()) return out;

  const size_t first = text.find_first_not_of(kBlank);
  if (first != std::string_view::npos && text[first] == '{') {
    TreeBuilder builder(limits);
    if (read_json(text, builder)) {
      out.root = builder.take_root();
      out.faults = builder.take_faults();
      return out;
    }
  }
  refuse_directives(text, index, out.faults);
  TreeBuilder builder(limits);
  std::vector<Diagnostic> ending;
  if (auto root = read_events(text, index, builder, ending)) out.root = std::move(*root);
  const auto found = builder.take_faults();
  out.faults.insert(out.faults.end(), found.begin(), found.end());
  for (auto& fault : ending) {  // what yaml-cpp stumbles over has often been named already
    const auto same_line = [&](const Diagnostic& known) { return known.where.line == fault.where.line; };
    if (std::none_of(found.begin(), found.end(), same_line)) out.faults.push_back(std::move(fault));
  }
  std::sort(out.faults.begin(), out.faults.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.line, a.where.column, a.field, a.wrong) <
           std::tie(b.where.line, b.where.column, b.field, b.wrong);
  });
  return out;
}

}  // namespace firestop::codec
