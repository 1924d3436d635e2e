// What is passed over quickly is what can be the beginning of nothing: held against the finder's own way,
// which an input that comes byte by byte takes.
#include "credentials/prefilter.h"

#include <gtest/gtest.h>

#include <random>

#include "credentials/finder.h"
#include "credentials/forms.h"

namespace firestop::credentials {
namespace {

const std::string kValue = "sk-Ab3xYz90QqLmNop12345678vwxRst";

std::vector<Matcher::Text> all_forms(const std::string& value) {
  std::vector<Matcher::Text> out;
  for (const auto& form : forms_of(value, 0, "")) out.push_back({form.bytes, 1});
  for (const auto& form : base64_forms("user:", value, "")) out.push_back({form.bytes, 1});
  return out;
}

std::vector<std::string_view> views(const std::vector<Matcher::Text>& texts) {
  std::vector<std::string_view> out;
  for (const auto& text : texts) out.emplace_back(text.bytes);
  return out;
}

// Pieces of texts, of escapes and of nothing: far more near misses than anything real has.
std::string near_misses(std::mt19937& random, const std::vector<Matcher::Text>& texts) {
  static const std::vector<std::string> kPieces{
      "%",    "\\",   "&",     "u",     "x",       "0",       "00",    "73",  "6B", "#",    "#x", ";", " ",
      "\r\n", "%73",  "%25",   "\\u",   "\\u0073", "\\\\",    "&amp;", "amp", "&#", "\\",   "5",  "C", "%5",
      "\\n",  "\\\"", "%2573", "\\x73", "?",       "\\ud83d", "%%37",  "%0",  "k",  "\xc3", "s",  "-", "S"};
  std::string out;
  const size_t pieces = random() % 60;
  for (size_t i = 0; i < pieces; ++i) {
    const auto& text = texts[random() % texts.size()].bytes;
    switch (random() % 4) {
      case 0:
        out += text.substr(0, random() % (text.size() + 1));
        break;
      case 1:
        out += text;
        break;
      case 2:
        out.append(random() % 20, 'z');
        break;
      default:
        out += kPieces[random() % kPieces.size()];
    }
  }
  return out;
}

// The longest of the texts that end somewhere is told.
bool covered(const std::vector<Finder::Hit>& hits, const Finder::Hit& one) {
  return std::any_of(hits.begin(), hits.end(),
                     [&](const Finder::Hit& hit) { return hit.begin <= one.begin && hit.end == one.end; });
}

std::vector<Finder::Hit> found_slowly(const std::shared_ptr<const Matcher>& matcher, std::string_view bytes) {
  Finder finder(matcher, Finder::Hold::kEscapes);
  std::vector<Finder::Hit> out;
  for (const char& c : bytes) finder.feed({&c, 1}, out);
  finder.finish(out);
  return out;
}

// What begins with the last characters of an escape that was passed over is found too: it does stand there.
TEST(Prefilter, inv08_PassesOverNothingThatTheFinderWouldFind) {
  std::mt19937 random(11);
  // Texts that begin with a blank, an escape, a digit, what only an escape can mean; short ones; many.
  const std::vector<std::vector<Matcher::Text>> sets{
      all_forms(kValue), all_forms("%25-percent\\back"), all_forms("?\xc3\xa4uml value with blanks"),
      {{"ab", 1}},       {{"z", 1}, {"%%", 1}},          {{"  x", 1}, {"\nab", 1}}};
  for (int round = 0; round < 3000; ++round) {
    const auto& texts = sets[static_cast<size_t>(round) % sets.size()];
    const auto matcher = std::make_shared<Matcher>(texts);
    const std::string all = near_misses(random, texts);
    Finder quick(matcher, Finder::Hold::kEscapes);
    std::vector<Finder::Hit> found;
    std::vector<std::pair<uint64_t, uint64_t>> held;  // where the stream was, and from where on it was held
    for (size_t at = 0; at < all.size();) {
      const size_t piece = 1 + random() % 90;
      quick.feed(std::string_view(all).substr(at, piece), found);
      at += piece;
      held.emplace_back(quick.position(), quick.held_from());
    }
    quick.finish(found);
    const auto wanted = found_slowly(matcher, all);
    for (const auto& hit : wanted) {
      ASSERT_TRUE(covered(found, hit)) << all;
      for (const auto& [position, from] : held)
        ASSERT_TRUE(hit.end <= position || hit.begin >= from) << "let go too early: " << all;
    }
    for (const auto& hit : found)
      ASSERT_FALSE(
          found_slowly(matcher, std::string_view(all).substr(hit.begin, hit.end - hit.begin)).empty())
          << all;
    ASSERT_TRUE(wanted.empty() || matcher->prefilter().may_have(all)) << all;
  }
}

TEST(Prefilter, SixteenAtATimeSeesWhatOneByOneDoes) {
  std::mt19937 random(12);
  const auto texts = all_forms(kValue);
  const Prefilter prefilter(views(texts));
  for (int round = 0; round < 2000; ++round) {
    const std::string all = near_misses(random, texts);
    const size_t from = all.empty() ? 0 : random() % all.size();
    ASSERT_EQ(prefilter.find(all, from), prefilter.find_one_by_one(all, from)) << all;
  }
}

TEST(Prefilter, PassesOverNearlyAllOfWhatServersSend) {
  const auto texts = all_forms(kValue);
  const Prefilter prefilter(views(texts));
  std::mt19937 random(13);
  std::string noise(100000, '\0'), base64(100000, 'A'), json;
  for (char& c : noise) c = static_cast<char>(random());
  for (char& c : base64)
    c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random() % 64];
  while (json.size() < 100000)
    json += "{\n  \"id\": \"chatcmpl-" + std::to_string(random()) +
            "\",\n  \"text\": \"She said \\\"so\\\" & left;\\nthe rest, 100% of it, \\u00e9tait "
            "l\\u00e0.\"\n},\n";
  for (const auto& text : {noise, base64, json}) {
    size_t stops = 0;
    for (size_t at = 0; (at = prefilter.find(text, at)) < text.size(); ++at) ++stops;
    EXPECT_LT(stops, text.size() / 30);
  }
}

TEST(Prefilter, OfNoTextsFindsNothing) {
  EXPECT_EQ(Prefilter({}).find("%41 & anything, however long it may be", 0), 38u);
  EXPECT_FALSE(Prefilter({}).may_have("anything"));
}

}  // namespace
}  // namespace firestop::credentials
