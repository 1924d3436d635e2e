#include "codec/yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

namespace firestop::codec {
namespace {

// The tree on one line: quoted text in "", plain text bare, ! for invalid.
std::string show(const YamlNode& node) {
  std::string out;
  switch (node.kind) {
    case YamlNode::Kind::kInvalid:
      return "!";
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return node.style == YamlNode::Style::kQuoted ? "\"" + node.text + "\"" : node.text;
    case YamlNode::Kind::kSequence:
      for (const auto& item : node.items) out += (out.empty() ? "" : ",") + show(item);
      return "[" + out + "]";
    case YamlNode::Kind::kMapping:
      for (const auto& member : node.members)
        out += (out.empty() ? "" : ",") + member.key + ":" + show(member.value);
      return "{" + out + "}";
  }
  return out;
}

std::string faults(std::string_view text, const YamlLimits& limits = {}) {
  std::string out;
  for (const auto& fault : parse_yaml(text, limits).faults) {
    out += std::to_string(fault.where.line) + ":" + std::to_string(fault.where.column) + " ";
    if (!fault.field.empty()) out += fault.field + ": ";
    out += fault.wrong + "\n";
  }
  return out;
}

TEST(Yaml, ReadsBothStylesIntoOneTree) {
  EXPECT_EQ(show(parse_yaml("a: 1\nb: \"x\"\nc:\n  - y\n  - {z: ~}\nd:\n").root),
            "{a:1,b:\"x\",c:[y,{z:null}],d:null}");
  EXPECT_EQ(show(parse_yaml("{\"a\": 1, \"b\": \"x\", \"c\": [\"y\", {\"z\": null}]}").root),
            "{a:1,b:\"x\",c:[\"y\",{z:null}]}");
  EXPECT_EQ(show(parse_yaml("a: |\n  two\n  lines\nb: >-\n  one\n  line\n").root),
            "{a:\"two\nlines\n\",b:\"one line\"}");
}

TEST(Yaml, PositionsCountCharactersFromOne) {
  const auto document = parse_yaml("é: ü\nlist: [😀, x]\n");
  ASSERT_EQ(document.faults.size(), 0u);
  EXPECT_EQ(document.root.members[0].value.where, (Position{1, 4}));
  EXPECT_EQ(document.root.members[1].where, (Position{2, 1}));
  EXPECT_EQ(document.root.members[1].value.items[1].where, (Position{2, 11}));
  const auto crlf = parse_yaml("a: 1\r\nb: 2\r\n");
  EXPECT_EQ(crlf.root.members[1].value.where, (Position{2, 4}));
  const auto marked = parse_yaml(
      "\xEF\xBB\xBF"
      "a: 1\n");
  EXPECT_EQ(marked.root.members[0].where, (Position{1, 1}));
  const auto json = parse_yaml("{\"ä\": \"\\ud83d\\ude00\",\n\t\"b\": 1}");
  EXPECT_EQ(json.root.members[0].value.where, (Position{1, 7}));
  EXPECT_EQ(json.root.members[0].value.text, "😀");
  EXPECT_EQ(json.root.members[1].where, (Position{2, 2}));
}

TEST(Yaml, AValueThatIsMissingStandsAtItsKey) {
  const auto document = parse_yaml("a:\nb: 1\n");
  EXPECT_EQ(document.root.members[0].value.where, (Position{1, 1}));
}

TEST(Yaml, PlainScalarsFollowTheCoreSchema) {
  const auto type = [](std::string_view text) {
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.text = text;
    return type_of(node);
  };
  for (const char* text :
       {"yes", "no", "on", "off",   "y",    "n",    "1_000", "1:30", "0b1",  "0o8", "0x",  "1e",  "+",
        "-",   ".",  "e5", "1.2.3", "nulL", "tRue", "45m",   "0o",   "+0x1", "inf", "Nan", ".e1", "1 2"})
    EXPECT_EQ(type(text), ScalarType::kText) << text;
  for (const char* text : {"0", "-1", "+12", "0644", "0o17", "0xFf"})
    EXPECT_EQ(type(text), ScalarType::kInteger) << text;
  for (const char* text : {"1.", ".5", "-1.5", "1e5", "12e4567", "1.5E-3", ".inf", "-.INF", ".nan"})
    EXPECT_EQ(type(text), ScalarType::kFloat) << text;
  for (const char* text : {"true", "True", "FALSE"}) EXPECT_EQ(type(text), ScalarType::kBool) << text;
  for (const char* text : {"", "~", "null", "NULL"}) EXPECT_EQ(type(text), ScalarType::kNull) << text;
}

struct Bad {
  const char* why;
  std::string text;
  std::string expected;
};

TEST(Yaml, RefusesWhatTwoReadersCouldReadDifferently) {
  const std::string bidi =
                        "a: \xE2\x80\xAE"
                        "b\n",
                    separator =
                        "a: \xE2\x80\xA8"
                        "b\n";
  const Bad table[] = {
      {"yaml-cpp keeps both", "a: 1\nb: 2\na: 3\n", "3:1 duplicate key 'a'\n"},
      {"by value, not by spelling", "a: 1\n\"a\": 2\n", "2:1 duplicate key 'a'\n"},
      {"also in JSON", "{\"a\": 1, \"\\u0061\": 2}", "1:10 duplicate key 'a'\n"},
      {"with its path", "w:\n  - {x: {a: 1, a: 2}}\n", "2:16 w[0].x: duplicate key 'a'\n"},
      {"anchor", "a: &x 1\n", "1:4 a: an anchor\n"},
      {"anchor on nothing", "a: &x\nb: 1\n", "1:4 a: an anchor\n"},
      {"anchor on a mapping", "a: &x {b: 1}\n", "1:4 a: an anchor\n"},
      {"alias", "a: &x 1\nb: *x\n", "1:4 a: an anchor\n2:4 b: an alias\n"},
      {"alias to nothing", "a: *x\n", "1:4 an alias\n"},
      {"tag", "a: !!str 1\n", "1:4 a: a tag\n"},
      {"the tag that says nothing", "a: ! b\n", "1:4 a: a tag\n"},
      {"tag on a list", "a: !x [b]\n", "1:4 a: a tag\n"},
      {"tag on nothing", "a: !!null\nb: 1\n", "1:4 a: a tag\n"},
      {"tag on the document", "!!map {a: 1}\n", "1:1 a tag\n"},
      {"merge key", "<<: {a: 1}\nb: 2\n", "1:1 a merge key '<<'\n"},
      {"directive", "%YAML 1.1\n---\na: no\n", "1:1 a directive\n"},
      {"second document", "a: 1\n---\nb: 2\n", "2:1 a second document\n"},
      {"an empty one counts", "a: 1\n---\n", "2:1 a second document\n"},
      {"text after the end marker", "a: 1\n...\nb: 2\n", "3:1 text after the end of the document\n"},
      {"text after JSON", "{\"a\": 1} \"x\"\n", "1:10 text after the end of the document\n"},
      {"the indentation ends the document", " a: 1\nb: 2\n", "2:1 text after the end of the document\n"},
      {"key that is a number", "1: a\n", "1:1 a key that is a number\n"},
      {"key that is a truth", "true: a\n", "1:1 a key that is true or false\n"},
      {"key that is null", "~: a\n", "1:1 a key that is null\n"},
      {"key that is a list", "? [a, b]\n: c\n", "1:3 a key that is a list\n"},
      {"tab as indentation", "a:\n\tb: 1\n", "2:1 a: a tab in the indentation\n"},
      {"after spaces too", "a:\n  \tb\n", "2:3 a: a tab in the indentation\n"},
      {"quote that is not closed", "a: \"x\n", "1:4 a: a quoted text that is not closed\n"},
      {"and a single one", "a: 'it''s\n", "1:4 a: a quoted text that is not closed\n"},
      {"text after a quote", "a: \"x\"y\n", "1:7 a: text right after a closing quote\n"},
      {"the same in a list", "[\"a\"b]\n", "1:5 [0]: text right after a closing quote\n"},
      {"empty", "", "1:1 the document is empty\n"},
      {"comments only", "# a\n", "1:1 the document is empty\n"},
      {"bracket", "a: [b\n", "2:1 a list in brackets that is not closed\n"},
      {"other bracket", "a: [b}\n", "1:6 a closing bracket that does not match\n"},
      {"colon in a value", "a: b: c\n", "1:5 a ':' that cannot stand here\n"},
      {"surrogate", "a: \"\\ud800\"\n", "1:11 an escape that is no character\n"},
      {"NUL", std::string("a: \0b\n", 6), "1:4 a NUL character (U+0000)\n"},
      {"escape sequence", "a: \x1b[2J\n", "1:4 a control character (U+001B)\n"},
      {"C1 control", "a: \xC2\x85\n", "1:4 a control character (U+0085)\n"},
      {"not UTF-8", "a: \xff\nb: \xC0\xAF\n", "1:4 a byte that is not UTF-8\n2:4 a byte that is not UTF-8\n"},
      {"surrogate in UTF-8", "\xED\xA0\x80", "1:1 a byte that is not UTF-8\n"},
      {"beyond Unicode", "\xF4\x90\x80\x80", "1:1 a byte that is not UTF-8\n"},
      {"cut", "a: \xE2\x82", "1:4 a byte that is not UTF-8\n"},
      {"UTF-16",
       "\xFF\xFE"
       "a",
       "1:1 the text is UTF-16\n"},
      {"mark inside", "a: \xEF\xBB\xBF\n", "1:4 a byte order mark inside the text (U+FEFF)\n"},
      {"text that reads backwards", bidi, "1:4 a character that changes the direction of text (U+202E)\n"},
      {"line separator", separator,
       "1:4 a Unicode line separator, which readers do not agree on, (U+2028)\n"},
      {"old Mac line ends", "a: 1\rb: 2\r", "1:5 a carriage return without a newline\n"},
  };
  for (const auto& [why, text, expected] : table) EXPECT_EQ(faults(text), expected) << why;
}

TEST(Yaml, FindsSeveralFaultsInOnePass) {
  EXPECT_EQ(faults("a: 1\na: 2\nb: &x 1\nc: {d: 1, d: 2}\n<<: {}\n"),
            "2:1 duplicate key 'a'\n3:4 b: an anchor\n4:11 c: duplicate key 'd'\n5:1 a merge key '<<'\n");
}

TEST(Yaml, BoundsSizeDepthAndCount) {
  EXPECT_EQ(faults("a: 123", {.bytes = 5}), "0:0 the document has 6 bytes\n");
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(faults(nested(32)), "");
  EXPECT_EQ(faults(nested(33)).substr(0, 4), "1:33");
  EXPECT_EQ(faults("{\"a\":" + nested(32) + "}").substr(0, 4), "1:37");  // JSON's way leads to the same fault
  EXPECT_EQ(faults("[a, b, c]", {.nodes = 3}), "1:8 [2]: the document has too many values\n");
  std::string many;
  for (int i = 0; i < 500; ++i) many += "a: 1\n";
  EXPECT_EQ(parse_yaml(many, {.faults = 10}).faults.size(), 10u);
}

TEST(Yaml, PositionsOfALongLineAreFoundInOnePass) {
  std::string text = "[" + std::string(1000000, ' ');
  for (int i = 0; i < 19000; ++i) text += "0,";
  const auto document = parse_yaml(text + "0]");
  ASSERT_EQ(document.root.items.size(), 19001u);
  EXPECT_EQ(document.root.items.back().where, (Position{1, 1038002}));
}

TEST(Yaml, HostileShapesEndSoon) {
  const auto repeated = [](std::string_view part) {
    std::string out;
    while (out.size() + part.size() <= 1u << 20) out += part;
    return out;
  };
  for (const auto& text :
       {"a: " + std::string((1u << 20) - 3, '\x01'), std::string(1u << 20, '['), std::string(1u << 20, '{'),
        std::string(1u << 20, '"'), std::string("!1?+,"), repeated("- "), repeated("? "), repeated("&"),
        repeated("a: "), "a: " + std::string((1u << 20) - 3, '\'')})
    EXPECT_FALSE(parse_yaml(text).faults.empty()) << text.substr(0, 5);
}

TEST(Yaml, MessagesStayOnOneLineAndShort) {
  EXPECT_EQ(in_quotes("a\nb\x1b\xff"), "'a\\nb\\x1B\\xFF'");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(in_quotes("\xE2\x80\xAE"), "'\\u202E'");
  EXPECT_EQ(child_path("a", "b"), "a.b");
  EXPECT_EQ(child_path("a", "notes.md"), "a[\"notes.md\"]");
  EXPECT_EQ(item_path(child_path("", "a"), 3), "a[3]");
}

RC_GTEST_PROP(YamlProperty, EveryTextEndsWithATreeOrAFault, (const std::string& text)) {
  const auto document = parse_yaml(text);
  RC_ASSERT(document.root.kind != YamlNode::Kind::kInvalid || !document.faults.empty());
}

RC_GTEST_PROP(YamlProperty, JsonTextComesBackAsItWent, (const std::string& text)) {
  std::string json = "{\"k\": \"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c) & 0x7Fu;
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", byte);
    json += escape;
  }
  const auto document = parse_yaml(json + "\"}");
  RC_ASSERT(document.faults.empty());
  std::string expected;
  for (const char c : text) expected += static_cast<char>(static_cast<unsigned char>(c) & 0x7Fu);
  RC_ASSERT(document.root.members[0].value.text == expected);
}

}  // namespace
}  // namespace firestop::codec
