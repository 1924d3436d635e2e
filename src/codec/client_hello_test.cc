#include "codec/client_hello.h"

#include <gtest/gtest.h>

namespace firestop::codec {
namespace {

std::string number(size_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return out;
}
std::string sized(const std::string& body, int bytes) {
  return number(body.size(), bytes) + body;
}
std::string extension(int type, const std::string& body) {
  return number(static_cast<size_t>(type), 2) + sized(body, 2);
}
std::string server_name(const std::string& name) {
  return extension(0, sized(number(0, 1) + sized(name, 2), 2));
}
std::string alpn(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += sized(name, 1);
  return extension(16, sized(list, 2));
}
std::string handshake(const std::string& extensions) {
  const std::string body = "\x03\x03" + std::string(32, 'r') + sized("", 1) +
                           sized(std::string("\x13\x01", 2), 2) + sized(std::string(1, '\0'), 1) +
                           sized(extensions, 2);
  return number(1, 1) + sized(body, 3);
}
// `message` in records of at most `piece` bytes.
std::string records(std::string message, size_t piece = 16384) {
  std::string out;
  while (!message.empty()) {
    const std::string part = message.substr(0, piece);
    out += std::string("\x16\x03\x01", 3) + sized(part, 2);
    message.erase(0, part.size());
  }
  return out;
}

std::string parsed(const std::string& bytes) {
  const auto result = parse_client_hello(bytes);
  if (!result) return result.error().code;
  const std::optional<ClientHello>& hello = *result;
  if (!hello) return "more";
  std::string out = hello->server_name;
  for (const std::string& name : hello->alpn) out += " " + name;
  return out + (hello->encrypted ? " encrypted" : "");
}

TEST(ClientHello, NameAndProtocols) {
  EXPECT_EQ(parsed(records(handshake(server_name("API.example.com.") + alpn({"h2", "http/1.1"})))),
            "api.example.com h2 http/1.1");
  EXPECT_EQ(parsed(records(handshake(""))), "");
  EXPECT_EQ(parsed(records(handshake(server_name("a") + extension(0xfe0d, "x")))), "a encrypted");
}

// A key share of post-quantum size, cut anywhere by segments and by records.
TEST(ClientHello, LargeAndCutAnywhere) {
  const std::string message =
      handshake(extension(51, std::string(1700, 'k')) + server_name("a.example") + alpn({"h2"}));
  for (size_t piece : {size_t{30}, size_t{100}, size_t{517}, size_t{16384}}) {
    const std::string bytes = records(message, piece);
    ASSERT_GT(bytes.size(), 1024u);
    for (size_t cut = 1; cut < bytes.size(); ++cut)
      ASSERT_EQ(parsed(bytes.substr(0, cut)), "more") << piece << " " << cut;
    EXPECT_EQ(parsed(bytes), "a.example h2") << piece;
  }
}

TEST(ClientHello, Refused) {
  const std::string good = handshake(server_name("a"));
  const std::pair<const char*, std::string> rows[] = {
      {"HTTP", "GET / HTTP/1.1\r\n"},
      {"an alert", std::string("\x15\x03\x01\0\x02\x02\x28", 7)},
      {"SSL 2", std::string("\x80\x2e\x01\x03\x01", 5)},
      {"another version", std::string("\x16\x04\x01\0\x02", 5)},
      {"a server's hello", records("\x02" + good.substr(1))},
      {"an empty record", std::string("\x16\x03\x01\0\0", 5) + records(good)},
      {"a record over 16 KiB", std::string("\x16\x03\x01\x40\x01", 5)},
      {"a length of 16 MiB", records(std::string("\x01\xff\xff\xff", 4))},
      {"more records than anyone cuts it into",
       records(handshake(server_name("a") + extension(51, std::string(100, 'k'))), 1)},
      {"two messages", records(good + good)},
      {"an alert within", records(good, 20).substr(0, 25) + std::string("\x15\x03\x01\0\x02\x02\x28", 7)},
      {"two names", records(handshake(extension(
                        0, sized(number(0, 1) + sized("a", 2) + number(0, 1) + sized("b", 2), 2))))},
      {"two extensions of names", records(handshake(server_name("a") + server_name("b")))},
      {"a name of another type", records(handshake(extension(0, sized(number(1, 1) + sized("a", 2), 2))))},
      {"an empty name", records(handshake(server_name("")))},
      {"a name with a port", records(handshake(server_name("a:443")))},
      {"a name with a NUL", records(handshake(server_name(std::string("a\0.b", 4))))},
      {"a name in UTF-8", records(handshake(server_name("\xc3\xa4")))},
      {"an IPv6 address", records(handshake(server_name("[::1]")))},
      {"a name longer than its extension",
       records(handshake(extension(0, sized(number(0, 1) + number(200, 2) + "a", 2))))},
      {"an empty list of protocols", records(handshake(extension(16, sized("", 2))))},
      {"an empty protocol", records(handshake(alpn({""})))},
      {"endless protocols", records(handshake(alpn(std::vector<std::string>(40, "h2"))))},
      {"bytes behind the extensions", records(number(1, 1) + sized(good.substr(4) + "x", 3))},
      {"no ciphers",
       records(number(1, 1) +
               sized("\x03\x03" + std::string(32, 'r') + sized("", 1) + sized("", 2) + sized("x", 1), 3))},
      {"a message that ends within", records(number(1, 1) + sized("\x03\x03" + std::string(20, 'r'), 3))},
      {"larger than the limit",
       records(handshake(extension(1, std::string(32000, 'x')) + extension(2, std::string(900, 'x'))))},
  };
  for (const auto& [why, bytes] : rows) EXPECT_EQ(parsed(bytes), "tls.bad_hello") << why;
}

TEST(ClientHello, LooksLikeTls) {
  EXPECT_TRUE(may_be_tls("\x16"));
  EXPECT_TRUE(may_be_tls("\x16\x03"));
  EXPECT_FALSE(may_be_tls("\x16\x02"));
  EXPECT_FALSE(may_be_tls("GET"));
  EXPECT_FALSE(may_be_tls(""));
}

}  // namespace
}  // namespace firestop::codec
