#include "codec/dns.h"

#include <algorithm>
#include <charconv>

namespace firestop::codec {
namespace {

constexpr uint16_t kResponse = 0x8000, kTruncated = 0x0200, kRecursionDesired = 0x0100,
                   kRecursionAvailable = 0x0080, kCheckingDisabled = 0x0010;
constexpr unsigned kOpcodeShift = 11;
constexpr uint32_t kDnssecOk = 0x8000;  // of the low half of OPT's TTL
constexpr size_t kMostLabel = 63;
constexpr uint8_t kPointer = 0xc0;

// Reads a message from `at`; after a fault everything is zero and `ok` false.
class Reader {
 public:
  explicit Reader(std::string_view message, size_t at = 0) : message_(message), at_(at) {}

  uint8_t u8() {
    if (!has(1)) return 0;
    return static_cast<uint8_t>(message_[at_++]);
  }
  uint16_t u16() {
    const unsigned high = u8();
    return static_cast<uint16_t>(high << 8 | u8());
  }
  uint32_t u32() {
    const uint32_t high = u16();
    return high << 16 | u16();
  }
  std::string_view bytes(size_t count) {
    if (!has(count)) return {};
    at_ += count;
    return message_.substr(at_ - count, count);
  }

  // A name's labels, uncompressed, with the root's zero. A pointer goes to before where it stands and before
  // where the last one led, so that there are fewer jumps than bytes; the length is bounded anyway.
  std::string name() {
    std::string wire;
    size_t bound = at_;            // pointers lead to before this
    std::optional<size_t> resume;  // where the message goes on
    while (ok_) {
      const size_t here = at_;
      const uint8_t length = u8();
      if ((length & kPointer) == kPointer) {
        const size_t target = static_cast<size_t>(length & ~kPointer) << 8 | u8();
        if (!resume) resume = at_;
        if (target >= std::min(bound, here) || target < kDnsHeader) ok_ = false;
        bound = at_ = target;
        continue;
      }
      if (length > kMostLabel) ok_ = false;  // the two other label types (RFC 6891 section 5) are dead
      const std::string_view label = bytes(length);
      if (wire.size() + 1 + label.size() > kMostDnsName) ok_ = false;
      if (!ok_) break;
      wire.push_back(static_cast<char>(length));
      wire += label;
      if (length == 0) break;
    }
    if (resume) at_ = *resume;
    return ok_ ? wire : std::string();
  }

  bool at_end() const { return at_ == message_.size(); }
  bool ok() const { return ok_; }

 private:
  bool has(size_t count) {
    if (count > message_.size() - at_) ok_ = false;
    return ok_;
  }
  std::string_view message_;
  size_t at_;
  bool ok_ = true;
};

void append_label(std::string& out, std::string_view label) {
  for (const char c : label) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '.' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte <= ' ' || byte > '~') {
      const std::string digits = std::to_string(byte);
      out += "\\" + std::string(3 - digits.size(), '0') + digits;
    } else {
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
}

std::string readable(std::string_view wire) {
  std::string out;
  for (size_t at = 0; at < wire.size() && wire[at] != 0;) {
    const auto length = static_cast<uint8_t>(wire[at]);
    if (at > 0) out += '.';
    append_label(out, wire.substr(at + 1, length));
    at += 1u + length;
  }
  return out;
}

Unexpected malformed(const char* what) {
  return fail("dns.malformed", std::string("a DNS message with ") + what);
}

bool options_are_whole(std::string_view options) {
  Reader reader(options);
  while (reader.ok() && !reader.at_end()) {
    reader.u16();
    const size_t length = reader.u16();
    reader.bytes(length);
  }
  return reader.ok();
}

// One record of the sections after the question; only OPT says something to us.
Result<void> read_record(Reader& reader, DnsQuery& query) {
  const std::string owner = reader.name();
  const auto type = static_cast<DnsType>(reader.u16());
  const uint16_t record_class = reader.u16();
  const uint32_t ttl = reader.u32();
  const size_t length = reader.u16();
  const std::string_view data = reader.bytes(length);
  if (!reader.ok()) return malformed("a record that is cut short or has a bad name");
  if (type != DnsType::kOpt) return {};
  if (query.edns) return malformed("two OPT records");
  if (owner.size() != 1) return malformed("an OPT record that is not the root's");
  if (!options_are_whole(data)) return malformed("options that are cut short");
  query.edns = {record_class, static_cast<uint8_t>(ttl >> 16), (ttl & kDnssecOk) != 0};
  return {};
}

void append_u16(std::string& out, unsigned value) {
  out += static_cast<char>(value >> 8 & 0xff);
  out += static_cast<char>(value & 0xff);
}
void append_u32(std::string& out, uint32_t value) {
  append_u16(out, value >> 16);
  append_u16(out, value & 0xffff);
}

// Owner is the question's name, by a pointer.
std::string record(DnsType type, uint32_t ttl, std::string_view data) {
  std::string out;
  append_u16(out, static_cast<unsigned>(kPointer) << 8 | kDnsHeader);
  append_u16(out, static_cast<uint16_t>(type));
  append_u16(out, static_cast<uint16_t>(DnsClass::kInternet));
  append_u32(out, ttl);
  append_u16(out, static_cast<unsigned>(data.size()));
  out += data;
  return out;
}

// RFC 2308: how long "no" may be remembered is the SOA's last field and its TTL. The root's, since that is
// above every name.
std::string negative(uint32_t ttl) {
  std::string data = dns_wire_name("firestop.invalid") + dns_wire_name("firestop.invalid");
  append_u32(data, 1);
  for (int i = 0; i < 4; ++i) append_u32(data, ttl);
  std::string out(1, '\0');
  append_u16(out, static_cast<uint16_t>(DnsType::kSoa));
  append_u16(out, static_cast<uint16_t>(DnsClass::kInternet));
  append_u32(out, ttl);
  append_u16(out, static_cast<unsigned>(data.size()));
  return out + data;
}

std::string opt(DnsCode code) {
  std::string out(1, '\0');
  append_u16(out, static_cast<uint16_t>(DnsType::kOpt));
  append_u16(out, kMostUdpAnswer);
  append_u32(out, static_cast<uint32_t>(code) >> 4 << 24);  // the code's high bits, version 0, no flags
  append_u16(out, 0);
  return out;
}

void append_header(std::string& out, const DnsQuery& query, DnsCode code, unsigned flags) {
  append_u16(out, query.id);
  append_u16(out,
             kResponse | kRecursionAvailable | flags | (query.recursion_desired ? kRecursionDesired : 0u) |
                 (query.checking_disabled ? kCheckingDisabled : 0u) | (static_cast<unsigned>(code) & 0xf));
}

}  // namespace

std::string to_string(DnsType type) {
  switch (type) {
    case DnsType::kA:
      return "A";
    case DnsType::kSoa:
      return "SOA";
    case DnsType::kPtr:
      return "PTR";
    case DnsType::kAaaa:
      return "AAAA";
    case DnsType::kOpt:
      return "OPT";
    case DnsType::kSvcb:
      return "SVCB";
    case DnsType::kHttps:
      return "HTTPS";
    case DnsType::kAny:
      return "ANY";
  }
  return "TYPE" + std::to_string(static_cast<uint16_t>(type));
}

Result<DnsQuery> parse_dns_query(std::string_view message) {
  Reader reader(message);
  DnsQuery query;
  query.id = reader.u16();
  const uint16_t flags = reader.u16();
  const unsigned questions = reader.u16(), answers = reader.u16(), authorities = reader.u16(),
                 additional = reader.u16();
  if (!reader.ok()) return fail("dns.no_question", "a DNS message without a whole header");
  if (flags & kResponse) return fail("dns.no_question", "a DNS answer where a question is expected");
  if (flags >> kOpcodeShift & 0xf) return fail("dns.opcode", "a DNS message that is no question");
  query.recursion_desired = (flags & kRecursionDesired) != 0;
  query.checking_disabled = (flags & kCheckingDisabled) != 0;
  if (message.size() > kMostDnsMessage) return malformed("too many bytes");
  if (questions != 1) return malformed("not exactly one question");
  if (answers != 0 || authorities != 0) return malformed("answers in a question");
  if (additional > kMostDnsRecords) return malformed("too many records");

  query.wire = reader.name();
  query.type = static_cast<DnsType>(reader.u16());
  query.network_class = static_cast<DnsClass>(reader.u16());
  if (!reader.ok()) return malformed("a question that is cut short or has a bad name");
  for (unsigned i = 0; i < additional; ++i) TRY(read_record(reader, query));
  if (!reader.at_end()) return malformed("bytes after its end");
  query.name = readable(query.wire);
  return query;
}

std::string write_dns_answer(const DnsQuery& query, const DnsAnswer& answer, size_t most) {
  std::string question = query.wire;
  append_u16(question, static_cast<uint16_t>(query.type));
  append_u16(question, static_cast<uint16_t>(query.network_class));

  std::string data, records, negatives;
  if (answer.address && answer.address->is_v4()) {
    append_u32(data, answer.address->number());
    records = record(DnsType::kA, answer.ttl, data);
  } else if (const std::string host = dns_wire_name(answer.host); !host.empty()) {
    records = record(DnsType::kPtr, answer.ttl, host);
  } else if (answer.code == DnsCode::kNoError || answer.code == DnsCode::kNxDomain) {
    negatives = negative(answer.ttl);
  }
  const std::string edns = query.edns ? opt(answer.code) : std::string();

  std::string out;
  const bool fits = kDnsHeader + question.size() + records.size() + negatives.size() + edns.size() <= most;
  append_header(out, query, answer.code, fits ? 0u : kTruncated);
  append_u16(out, 1);
  append_u16(out, fits && !records.empty());
  append_u16(out, fits && !negatives.empty());
  append_u16(out, !edns.empty());
  out += question;
  if (fits) out += records + negatives;
  out += edns;
  if (out.size() > most) {  // not even the question
    out.resize(kDnsHeader);
    out[5] = out[11] = 0;
  }
  return out;
}

std::string refuse_dns(std::string_view message, DnsCode code) {
  Reader reader(message);
  DnsQuery query;
  query.id = reader.u16();
  const uint16_t flags = reader.u16();
  if (message.size() < kDnsHeader || (flags & kResponse)) return {};
  query.recursion_desired = (flags & kRecursionDesired) != 0;
  std::string out;
  append_header(out, query, code, flags & (0xfu << kOpcodeShift));
  out.append(kDnsHeader - out.size(), '\0');
  return out;
}

size_t udp_limit(const DnsQuery& query) {
  return query.edns ? std::clamp<size_t>(query.edns->udp_size, kLeastUdpAnswer, kMostUdpAnswer)
                    : kLeastUdpAnswer;
}

std::optional<Address> reverse_address(std::string_view name) {
  constexpr std::string_view kZone = ".in-addr.arpa";
  if (!name.ends_with(kZone)) return std::nullopt;
  name.remove_suffix(kZone.size());
  uint32_t number = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const size_t dot = name.find('.');
    const std::string_view digits = name.substr(0, dot);
    uint8_t part = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), part);
    if (error != std::errc() || end != digits.data() + digits.size() ||
        (digits.size() > 1 && digits[0] == '0'))
      return std::nullopt;
    if ((dot == std::string_view::npos) != (i == 3)) return std::nullopt;
    number |= static_cast<uint32_t>(part) << (8 * i);
    if (i < 3) name.remove_prefix(dot + 1);
  }
  return Address::v4(number);
}

std::string dns_wire_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string wire;
  while (!host.empty()) {
    const size_t dot = std::min(host.find('.'), host.size());
    if (dot == 0 || dot > kMostLabel || dot + 1 == host.size()) return {};
    wire += static_cast<char>(dot);
    wire += host.substr(0, dot);
    host.remove_prefix(std::min(dot + 1, host.size()));
  }
  if (wire.empty() || wire.size() + 1 > kMostDnsName) return {};
  return wire + '\0';
}

}  // namespace firestop::codec
