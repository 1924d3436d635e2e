// UTF-8, base64, and text in markup.
#include <gtest/gtest.h>

#include "codec/base64.h"
#include "codec/markup.h"
#include "codec/utf8.h"

namespace firestop::codec {
namespace {

TEST(Utf8, AcceptsTheEndsOfEachLength) {
  for (const char* good : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    char32_t c = 0;
    ASSERT_EQ(decode_utf8(good, c), std::string_view(good).size());
    std::string again;
    append_utf8(again, c);
    EXPECT_EQ(again, good);
  }
}

TEST(Utf8, RefusesWhatIsNotShortestOrNoCharacter) {
  struct {
    const char *why, *bytes;
  } table[] = {
      {"a continuation alone", "\x80"},
      {"overlong NUL", "\xc0\x80"},
      {"overlong slash", "\xc0\xaf"},
      {"overlong, two bytes", "\xc1\xbf"},
      {"overlong, three bytes", "\xe0\x9f\xbf"},
      {"overlong, four bytes", "\xf0\x8f\xbf\xbf"},
      {"first surrogate", "\xed\xa0\x80"},
      {"last surrogate", "\xed\xbf\xbf"},
      {"above U+10FFFF", "\xf4\x90\x80\x80"},
      {"five bytes", "\xf8\x88\x80\x80\x80"},
      {"0xff", "\xff"},
      {"cut after one", "\xc3"},
      {"cut after two", "\xe2\x82"},
      {"cut after three", "\xf0\x9f\x98"},
      {"a start in the middle", "\xe2\xc3\xac"},
  };
  for (const auto& row : table) EXPECT_FALSE(is_utf8(row.bytes)) << row.why;
}

TEST(Utf8, EachCodePointComesBack) {
  for (char32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string bytes;
    append_utf8(bytes, c);
    char32_t back = 0;
    ASSERT_EQ(decode_utf8(bytes, back), bytes.size()) << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ(back, c);
  }
}

TEST(Utf8, PrintableIsSafeForATerminal) {
  EXPECT_EQ(printable("plain é 😀\n\tx", 100), "plain é 😀\n\tx");
  EXPECT_EQ(printable("\x1b[2J", 100), "\xef\xbf\xbd[2J");
  EXPECT_EQ(printable("a\rb\x7f", 100),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J",
                      100),
            "\xef\xbf\xbd"
            "2J");  // CSI of C1
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt",
                      100),
            "\xef\xbf\xbd"
            "txt");  // right-to-left override
  EXPECT_EQ(printable("\xff\xfe", 100), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(printable("aé", 2), "a") << "cut between characters";
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(Base64, Rfc4648Vectors) {
  const char* vectors[][2] = {{"", ""},
                              {"f", "Zg=="},
                              {"fo", "Zm8="},
                              {"foo", "Zm9v"},
                              {"foob", "Zm9vYg=="},
                              {"fooba", "Zm9vYmE="},
                              {"foobar", "Zm9vYmFy"}};
  for (auto [plain, text] : vectors) {
    EXPECT_EQ(encode_base64(plain), text);
    EXPECT_EQ(decode_base64(text), plain);
  }
}

TEST(Base64, EveryByteInEveryPlaceComesBack) {
  for (size_t length = 1; length <= 4; ++length)
    for (size_t place = 0; place < length; ++place)
      for (int byte = 0; byte < 256; ++byte) {
        std::string value(length, '\xa5');
        value[place] = static_cast<char>(byte);
        ASSERT_EQ(decode_base64(encode_base64(value)), value);
      }
}

TEST(Base64, RefusesOtherSpellings) {
  struct {
    const char *why, *text;
  } table[] = {
      {"no padding", "Zg"},
      {"half the padding", "Zg="},
      {"a line end", "Zm9v\n"},
      {"white space", "Zm 9v"},
      {"url alphabet", "-_-_"},
      {"bits left over, one byte", "Zh=="},
      {"bits left over, two bytes", "Zm9="},
      {"padding only", "===="},
      {"padding in the middle", "Zg==Zg=="},
      {"three paddings", "Z==="},
      {"padding before a digit", "Zg=A"},
      {"not ASCII", "Zm9\xc3"},
  };
  for (const auto& row : table) EXPECT_EQ(decode_base64(row.text), std::nullopt) << row.why;
}

TEST(Markup, NothingOfATextIsATagOrEndsAnAttribute) {
  EXPECT_EQ(escape_markup("<a b=\"c\" d='e'>&amp;"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_markup("\xc3\xa9 plain"), "\xc3\xa9 plain");
}

}  // namespace
}  // namespace firestop::codec
