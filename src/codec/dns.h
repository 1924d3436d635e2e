// DNS messages (RFC 1035; EDNS, RFC 6891): questions as they come from a guest, and the few answers that it
// gets. Reads strictly: one question, nothing after the message, compression only backwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/address.h"

namespace firestop::codec {

inline constexpr size_t kDnsHeader = 12;
inline constexpr size_t kMostDnsName = 255;  // bytes on the wire, with the root's
inline constexpr size_t kMostDnsMessage = 65535;
inline constexpr size_t kLeastUdpAnswer = 512;   // bytes that every asker takes
inline constexpr size_t kMostUdpAnswer = 1232;   // what we send to who takes more: never a fragment
inline constexpr unsigned kMostDnsRecords = 16;  // of a question's other sections

enum class DnsType : uint16_t {
  kA = 1,
  kSoa = 6,
  kPtr = 12,
  kAaaa = 28,
  kOpt = 41,
  kSvcb = 64,
  kHttps = 65,
  kAny = 255
};
enum class DnsClass : uint16_t { kInternet = 1 };
enum class DnsCode : uint16_t {
  kNoError = 0,
  kFormErr = 1,
  kServFail = 2,
  kNxDomain = 3,
  kNotImp = 4,
  kBadVers = 16,  // of EDNS
};
std::string to_string(DnsType type);  // "AAAA", "TYPE999"

struct DnsQuery {
  uint16_t id = 0;
  bool recursion_desired = false, checking_disabled = false;
  std::string wire;  // the name's labels as they came, the case too
  // The same for people and for comparing: lower case, without the trailing dot ("" is the root); a dot or
  // backslash inside a label as \. and \\, bytes outside of ! to ~ as \DDD. So with a backslash it is no
  // host.
  std::string name;
  DnsType type{};
  DnsClass network_class{};
  struct Edns {
    uint16_t udp_size = 0;
    uint8_t version = 0;
    bool dnssec_ok = false;
  };
  std::optional<Edns> edns;
};

// "dns.no_question" for what must not be answered at all (cut short, or an answer itself), "dns.opcode",
// "dns.malformed".
Result<DnsQuery> parse_dns_query(std::string_view message);

// What is said of a name. At most one of the two is set.
struct DnsAnswer {
  DnsCode code = DnsCode::kNoError;
  std::optional<Address> address;  // IPv4: an A record
  std::string host;                // a PTR record; a canonical name
  uint32_t ttl = 0;                // seconds; also of "no such name" and of "no such record"
};

// The message that answers, of at most `most` bytes (12 or more): what does not fit is left out and said
// to be (TC), so that the asker comes by TCP. Denials and empty answers have an SOA of the root, made up, so
// that they can be remembered for `ttl`.
std::string write_dns_answer(const DnsQuery& query, const DnsAnswer& answer, size_t most);
// The header alone with this code, as an answer to a message that parse_dns_query() did not take; empty when
// it must not be answered.
std::string refuse_dns(std::string_view message, DnsCode code);
// Bytes that the asker takes by UDP.
size_t udp_limit(const DnsQuery& query);

// "1.2.0.192.in-addr.arpa" as 192.0.2.1; nothing for other names.
std::optional<Address> reverse_address(std::string_view name);
// A host's name as labels; empty when it is none that fits.
std::string dns_wire_name(std::string_view host);

}  // namespace firestop::codec
