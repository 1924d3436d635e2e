#include "codec/client_hello.h"

#include <algorithm>
#include <cstdint>

#include "codec/http_field.h"

namespace firestop::codec {
namespace {

constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHelloType = 1;
constexpr size_t kRecordHeader = 5;
constexpr size_t kHandshakeHeader = 4;
constexpr size_t kMostRecord = 1u << 14;  // RFC 8446 section 5.1
constexpr uint16_t kServerName = 0, kAlpn = 16, kEncryptedHello = 0xfe0d;

Unexpected bad(const std::string& what) {
  return fail("tls.bad_hello", "no TLS hello that can be read: " + what);
}

// Reads big-endian numbers and vectors from the front; `ok` turns false at the first one that is not there.
struct Reader {
  std::string_view rest;
  bool ok = true;

  std::string_view bytes(size_t count) {
    if (count > rest.size()) {
      ok = false;
      rest = {};
      return {};
    }
    const std::string_view out = rest.substr(0, count);
    rest.remove_prefix(count);
    return out;
  }
  uint32_t number(size_t count) {
    uint32_t value = 0;
    for (char c : bytes(count)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view vector(size_t length_bytes) { return bytes(number(length_bytes)); }
};

// The handshake message out of its records, with its header; nothing while more must come.
Result<std::optional<std::string>> reassemble(std::string_view bytes) {
  std::string message;
  size_t records = 0;
  while (true) {
    if (message.size() >= kHandshakeHeader) {
      const size_t need = kHandshakeHeader + Reader{std::string_view(message).substr(1, 3)}.number(3);
      if (need > kMostClientHello) return bad("too large");
      // What follows in the same record would be another message before the server's answer.
      if (message.size() > need) return bad("something behind it");
      if (message.size() == need) return message;
    }
    if (bytes.empty()) return std::nullopt;
    if (++records > kMostHelloRecords) return bad("too many records");
    if (static_cast<uint8_t>(bytes[0]) != kHandshakeRecord) return bad("a record of another type");
    if (bytes.size() > 1 && bytes[1] != 3) return bad("a version that is none");
    if (bytes.size() < kRecordHeader) return std::nullopt;
    const size_t length = Reader{bytes.substr(3, 2)}.number(2);
    if (length == 0 || length > kMostRecord) return bad("a record of a bad length");
    const std::string_view part = bytes.substr(kRecordHeader, length);
    if (message.empty() && !part.empty() && part[0] != kClientHelloType) return bad("another message first");
    message.append(part);
    bytes.remove_prefix(std::min(bytes.size(), kRecordHeader + length));
    if (part.size() < length && message.size() < kHandshakeHeader) return std::nullopt;
  }
}

Result<void> read_server_name(std::string_view body, ClientHello& hello) {
  Reader reader{body};
  Reader list{reader.vector(2)};
  const uint32_t type = list.number(1);
  const std::string_view name = list.vector(2);
  if (!reader.ok || !list.ok || !reader.rest.empty() || !list.rest.empty() || type != 0) {
    return bad("a server name that is not one host name");
  }
  const auto authority = parse_authority(name);
  if (!authority || authority->port != 0 || name.starts_with('['))
    return bad("a server name that is no name");
  hello.server_name = authority->host;
  return {};
}

Result<void> read_alpn(std::string_view body, ClientHello& hello) {
  Reader reader{body};
  Reader list{reader.vector(2)};
  if (!reader.ok || !reader.rest.empty() || list.rest.empty()) return bad("malformed ALPN");
  while (!list.rest.empty()) {
    const std::string_view name = list.vector(1);
    if (!list.ok || name.empty() || hello.alpn.size() == kMostAlpn) return bad("malformed ALPN");
    hello.alpn.emplace_back(name);
  }
  return {};
}

Result<void> read_extensions(std::string_view extensions, ClientHello& hello) {
  Reader reader{extensions};
  std::vector<uint16_t> seen;
  while (!reader.rest.empty()) {
    const auto type = static_cast<uint16_t>(reader.number(2));
    const std::string_view body = reader.vector(2);
    if (!reader.ok) return bad("malformed extensions");
    if (std::find(seen.begin(), seen.end(), type) != seen.end()) return bad("an extension twice");
    if (seen.size() == 128) return bad("too many extensions");
    seen.push_back(type);
    if (type == kServerName) TRY(read_server_name(body, hello));
    if (type == kAlpn) TRY(read_alpn(body, hello));
    hello.encrypted = hello.encrypted || type == kEncryptedHello;
  }
  return {};
}

Result<ClientHello> parse_message(std::string_view message) {
  ClientHello hello;
  Reader reader{message.substr(kHandshakeHeader)};
  const uint32_t version = reader.number(2);
  reader.bytes(32);  // random
  const std::string_view session = reader.vector(1);
  const std::string_view ciphers = reader.vector(2);
  const std::string_view compressions = reader.vector(1);
  if (!reader.ok || version >> 8 != 3 || session.size() > 32 || ciphers.empty() || ciphers.size() % 2 != 0 ||
      compressions.empty()) {
    return bad("malformed");
  }
  if (reader.rest.empty()) return hello;  // before extensions were invented
  const std::string_view extensions = reader.vector(2);
  if (!reader.ok || !reader.rest.empty()) return bad("malformed extensions");
  TRY(read_extensions(extensions, hello));
  return hello;
}

}  // namespace

bool may_be_tls(std::string_view bytes) {
  if (bytes.empty() || static_cast<uint8_t>(bytes[0]) != kHandshakeRecord) return false;
  return bytes.size() < 2 || bytes[1] == 3;
}

Result<std::optional<ClientHello>> parse_client_hello(std::string_view bytes) {
  TRY_ASSIGN(const std::optional<std::string> message, reassemble(bytes.substr(0, kMostClientHello)));
  if (message) {
    TRY_ASSIGN(ClientHello hello, parse_message(*message));
    return hello;
  }
  if (bytes.size() >= kMostClientHello) return bad("too large");
  return std::nullopt;
}

}  // namespace firestop::codec
