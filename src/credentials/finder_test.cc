// Finding a text in a stream however it is written and cut: the ground under the detector and the scrubber.
#include "credentials/finder.h"

#include <gtest/gtest.h>

#include <random>

#include "codec/base64.h"
#include "credentials/detector.h"
#include "credentials/forms.h"
#include "credentials/placeholder.h"
#include "credentials/scrubber.h"

namespace firestop::credentials {
namespace {

const std::string kText = "sk-Ab3xYz90QqLmNop12345678vwxRst";

Placeholder placeholder() {
  return {.credential = "model", .variable = "KEY", .prefix = "sk-", .text = kText};
}

std::string hex(char c) {
  char out[8];
  std::snprintf(out, sizeof out, "%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return out;
}

// Each character in one of the ways, chosen by `random`; 0 is as it is.
std::string disguised(const std::string& text, const std::function<unsigned()>& random) {
  std::string out;
  for (const char c : text) {
    switch (random()) {
      case 1:
        out += "%" + hex(c);
        break;
      case 2:
        out += "\\u00" + hex(c);
        break;
      case 3:
        out += "%25" + hex(c);
        break;
      case 4:
        out += "&#x" + hex(c) + ";";
        break;
      case 5:
        out += "&#" + std::to_string(static_cast<int>(c)) + ";";
        break;
      case 6:
        out += "\\x" + hex(c);
        break;
      case 7:
        out += std::string(1, '\0') + c;  // UTF-16
        break;
      case 8:
        out += std::string("\r\n ") + c;
        break;
      case 9:
        out += "%5Cu00" + hex(c);
        break;
      default:
        out += c;
    }
  }
  return out;
}

// What is passed over quickly changes neither what is found nor where.
TEST(Finder, SaysWhereInNoiseOfAnyKind) {
  std::mt19937 random(7);
  const auto matcher = std::make_shared<Matcher>(std::vector<Matcher::Text>{{kText, 1}, {"aXbX", 1}});
  for (int round = 0; round < 500; ++round) {
    std::string noise(random() % 300, '\0'), behind(random() % 300, '\0');
    for (std::string* each : {&noise, &behind})
      for (char& c : *each) c = static_cast<char>(random());
    // Neither begins an escape that the text could end.
    for (const char c : {'%', '\\', '&'}) std::erase(noise, c);
    if (round % 3 == 0) noise += kText.substr(0, random() % kText.size());
    const std::string in =
        disguised(kText, [&] { return round % 2 == 0 ? 0u : static_cast<unsigned>(random() % 10); });
    const std::string all = noise + in + behind;
    Finder finder(matcher, Finder::Hold::kEscapes);
    std::vector<Finder::Hit> hits;
    for (size_t at = 0; at < all.size();) {
      const size_t piece = 1 + random() % (round % 5 == 0 ? 1 : 100);
      finder.feed(std::string_view(all).substr(at, piece), hits);
      at += piece;
    }
    EXPECT_EQ(finder.position(), all.size());
    finder.finish(hits);
    const auto here = std::find_if(hits.begin(), hits.end(), [&](const Finder::Hit& hit) {
      return hit.text == 0 && hit.end == noise.size() + in.size();
    });
    ASSERT_NE(here, hits.end()) << round;
    // Blanks and NUL before its first character are not its own.
    EXPECT_GE(here->begin, noise.size()) << round;
    EXPECT_LE(here->begin, noise.size() + 3) << round;
  }
}

TEST(Detector, FindsEveryForm) {
  Detector detector({placeholder()});
  std::vector<std::string> forms{kText,
                                 "sk-" + kText,
                                 kText + kText,
                                 "%" + kText,
                                 "\\" + kText,
                                 "&#" + kText,
                                 kText.substr(0, 20) + kText};
  for (unsigned way = 0; way <= 9; ++way) forms.push_back(disguised(kText, [way] { return way; }));
  for (size_t before = 0; before < 4; ++before) {
    const std::string inner = std::string(before, 'x') + kText + "tail";
    std::string encoded = codec::encode_base64(inner);
    forms.push_back(encoded);
    std::replace(encoded.begin(), encoded.end(), '+', '-');
    std::replace(encoded.begin(), encoded.end(), '/', '_');
    forms.push_back(encoded);
    forms.push_back("Q" + encoded);  // out of step with what stands before
    std::string lines;
    for (size_t at = 0; at < encoded.size(); at += 7) lines += encoded.substr(at, 7) + "\\n";
    forms.push_back(lines);
  }
  std::string digits;
  for (const char c : kText) digits += hex(c);
  forms.push_back(digits);
  for (const auto& form : forms)
    for (const auto& text : {form, "a" + form, form + "b", "%" + form, "\\" + form, "&" + form}) {
      // Behind a backslash a backslash means itself, and behind a '%' two digits are one byte: no reader who
      // undoes escapes sees the placeholder there.
      if (form.starts_with("%5C") && text.starts_with("\\")) continue;
      if (form.find("\\n") != std::string::npos && text.starts_with("%")) continue;
      EXPECT_NE(detector.find(text), nullptr) << text;
    }
  for (const auto& text : {std::string(""), kText.substr(1), kText.substr(0, kText.size() - 1),
                           std::string(1000, 's'), kText.substr(0, 16) + "." + kText.substr(16)})
    EXPECT_EQ(detector.find(text), nullptr) << text;
}

TEST(Detector, FindsItCutAnywhereInAnyDisguise) {
  std::mt19937 random(7);
  Detector detector({placeholder()});
  const auto found = [](const std::string& credential) {
    http::Denial out;
    out.code = credential;
    return out;
  };
  const auto bad = [](const std::string&) { return http::Denial{}; };
  for (int round = 0; round < 400; ++round) {
    const std::string body =
        "{\"a\":\"" + disguised(kText, [&] { return static_cast<unsigned>(random() % 10); }) + "\"}";
    const auto filter = detector.body_filter("", found, bad);
    std::optional<http::Denial> denial;
    std::string out;
    for (size_t at = 0; at < body.size() && !denial;) {
      const size_t size = 1 + random() % 9;
      denial = filter->feed(std::string_view(body).substr(at, size), out);
      at += size;
    }
    if (!denial) denial = filter->finish(out);
    ASSERT_TRUE(denial) << body;
    EXPECT_EQ(denial->code, "model");
    EXPECT_EQ(detector.find(out), nullptr);
    EXPECT_LT(out.size(), body.size());
  }
}

// What has nothing to hide comes out as it went in, whatever it looks like and wherever it is cut.
TEST(Detector, PassesAllElseByteForByte) {
  std::mt19937 random(11);
  const std::string alphabet = "sk-Ab3%\\u0041&#x;=+/ \n" + std::string(1, '\0') + "\xff";
  Detector detector({placeholder()});
  for (int round = 0; round < 300; ++round) {
    std::string body;
    while (body.size() < 300) {
      if (random() % 10 == 0) body += kText.substr(0, random() % kText.size());
      body += alphabet[random() % alphabet.size()];
    }
    const auto filter = detector.body_filter("", {}, {});
    std::string out;
    for (size_t at = 0; at < body.size();) {
      const size_t size = 1 + random() % 40;
      ASSERT_FALSE(filter->feed(std::string_view(body).substr(at, size), out));
      at += size;
    }
    ASSERT_FALSE(filter->finish(out));
    EXPECT_EQ(out, body);
  }
}

// White space without end between two characters does not make anything grow.
TEST(Detector, HoldsBackABoundedPart) {
  Detector detector({placeholder()});
  const auto filter = detector.body_filter("", {}, {});
  std::string out;
  ASSERT_FALSE(filter->feed(kText.substr(0, 20), out));
  EXPECT_EQ(out.size(), 0u);
  for (int round = 0; round < 100; ++round) ASSERT_FALSE(filter->feed(std::string(10000, ' '), out));
  EXPECT_GE(out.size() + Detector::kMostHeld, 1000020u);
}

Scrubber scrubber(const std::string& value, const std::string& user = "") {
  return Scrubber({{std::make_shared<const Secret>(Secret::copy(value).value()), user, kText}});
}

TEST(Scrubber, PutsThePlaceholderBack) {
  const std::string value = "v@lue/with \"quotes\" & more+";
  const auto scrub = [&](std::string text, const std::string& user = "") {
    scrubber(value, user).scrub(text);
    return text;
  };
  EXPECT_EQ(scrub(value), kText);
  EXPECT_EQ(scrub("<" + value + "|" + value + ">"), "<" + kText + "|" + kText + ">");
  EXPECT_EQ(scrub("v%40lue%2Fwith%20%22quotes%22%20%26%20more%2B"), kText);
  EXPECT_EQ(scrub("v@lue\\/with \\\"quotes\\\" \\u0026 more+"), kText);
  EXPECT_EQ(scrub("v@lue/with &quot;quotes&quot; &amp; more&#43;"), kText);
  EXPECT_EQ(
      scrub("Basic " + codec::encode_base64("me:" + value), "me"), "Basic " + [&] {
        std::string out = codec::encode_base64("me:" + kText);
        while (out.ends_with('=')) out.pop_back();
        std::string padding = codec::encode_base64("me:" + value);
        return out + (padding.find('=') == std::string::npos ? "" : padding.substr(padding.find('=')));
      }());
  EXPECT_EQ(scrub("nothing of it"), "nothing of it");
  // Inside of other base64: the length stays, the value is gone.
  const std::string inner = codec::encode_base64("{\"token\":\"" + value + "\",\"x\":1}"),
                    clean = scrub(inner);
  EXPECT_EQ(clean.size(), inner.size());
  EXPECT_EQ(codec::decode_base64(clean)->find("with"), std::string::npos);
}

TEST(Scrubber, FindsItCutAnywhere) {
  std::mt19937 random(5);
  const std::string value = "0123456789abcdefGHIJ";
  const auto clean = scrubber(value);
  for (int round = 0; round < 400; ++round) {
    std::string body, expected;
    while (body.size() < 400) {
      const std::string filler(random() % 20, "0%\\&v"[random() % 5]);
      body += filler + "-" +
              disguised(value, [&] { return random() % 4 == 0 ? static_cast<unsigned>(random() % 10) : 0; });
      expected += filler + "-";
      // A NUL or white space that stands before the first character belongs to nothing.
      const size_t start = body.size();
      (void)start;
      expected += kText;
    }
    const auto filter = clean.body_filter("", {}, {});
    std::string out;
    for (size_t at = 0; at < body.size();) {
      const size_t size = 1 + random() % 30;
      ASSERT_FALSE(filter->feed(std::string_view(body).substr(at, size), out));
      at += size;
    }
    ASSERT_FALSE(filter->finish(out));
    std::erase_if(out, [](char c) { return c == '\0' || c == '\r' || c == '\n' || c == ' '; });
    EXPECT_EQ(out, expected) << body;
  }
}

TEST(Placeholder, AreFreshAndOfTheDeclaredShape) {
  manifest::Credential plain{.name = "a", .env = "A"}, shaped{.name = "b", .env = "B"},
      cloud{.name = "c", .env = "C"};
  shaped.prefix = "sk-ant-";
  shaped.length = 64;
  cloud.key_id = "ID";
  const auto one = make_placeholders({plain, shaped, cloud}), two = make_placeholders({plain, shaped, cloud});
  ASSERT_EQ(one.size(), 4u);
  EXPECT_EQ(one[0].text.size(), 40u);
  EXPECT_TRUE(one[1].text.starts_with("sk-ant-"));
  EXPECT_EQ(one[1].text.size(), 64u);
  EXPECT_EQ(one[3].variable, "ID");
  EXPECT_TRUE(one[3].text.starts_with("AKIA"));
  EXPECT_EQ(one[3].text.size(), 20u);
  for (size_t at = 0; at < one.size(); ++at) EXPECT_NE(one[at].text, two[at].text);
  const auto again = parse_placeholders(to_json(one));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ((*again)[1].text, one[1].text);
}

TEST(Matcher, HoldsOnlyWhatIsWorthIt) {
  const Matcher matcher({{"prefix-secret", 9}, {"fix-me", 1}});
  auto state = Matcher::kStart;
  for (const char c : std::string("prefix")) state = matcher.step(state, static_cast<unsigned char>(c));
  EXPECT_EQ(matcher.held(state), 3u);  // "fix"
  state = matcher.step(matcher.step(matcher.step(state, '-'), 's'), 'e');
  EXPECT_EQ(matcher.held(state), 9u);
}

}  // namespace
}  // namespace firestop::credentials
