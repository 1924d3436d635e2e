#include "codec/dns.h"

#include <arpa/nameser.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <resolv.h>

namespace firestop::codec {
namespace {

using namespace std::string_literals;

// Id 0x1234, recursion desired, these counts.
std::string header(int questions = 1, int answers = 0, int authorities = 0, int additional = 0,
                   int flags = 0x0100) {
  std::string out = "\x12\x34"s;
  for (const int value : {flags, questions, answers, authorities, additional}) {
    out += static_cast<char>(value >> 8);
    out += static_cast<char>(value & 0xff);
  }
  return out;
}

const std::string kName = "\3api\7example\3com\0"s;
const std::string kTypeA = "\0\1\0\1"s;

std::string opt(uint16_t size = 4096, uint8_t version = 0, const std::string& options = {}) {
  std::string out = "\0\0\x29"s;
  out += static_cast<char>(size >> 8);
  out += static_cast<char>(size & 0xff);
  out += '\0';
  out += static_cast<char>(version);
  out += "\x80\0"s;
  out += '\0';
  out += static_cast<char>(options.size());
  return out + options;
}

DnsQuery parsed(const std::string& message) {
  auto query = parse_dns_query(message);
  EXPECT_TRUE(query) << query.error().message;
  return query ? *query : DnsQuery{};
}

TEST(DnsQuery, AQuestion) {
  const DnsQuery query = parsed(header() + "\3API\7eXample\3com\0"s + kTypeA);
  EXPECT_EQ(query.id, 0x1234);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_EQ(query.name, "api.example.com");
  EXPECT_EQ(query.wire, "\3API\7eXample\3com\0"s) << "answers repeat the case: resolvers check it (0x20)";
  EXPECT_EQ(query.type, DnsType::kA);
  EXPECT_EQ(query.network_class, DnsClass::kInternet);
  EXPECT_FALSE(query.edns);
  EXPECT_EQ(udp_limit(query), 512u);
}

TEST(DnsQuery, WithEdnsAndOtherRecordsThatPointBack) {
  const std::string cookie = "\0\x0a\0\2ab"s;
  // A TSIG-like record whose name points to the question's, and whose owner to a part of it.
  const std::string other = "\xc0\x10\0\xfa\0\xff\0\0\0\0\0\2xx"s;
  const DnsQuery query = parsed(header(1, 0, 0, 2) + kName + kTypeA + other + opt(4096, 0, cookie));
  EXPECT_EQ(query.name, "api.example.com");
  ASSERT_TRUE(query.edns);
  EXPECT_EQ(query.edns->udp_size, 4096);
  EXPECT_EQ(query.edns->version, 0);
  EXPECT_TRUE(query.edns->dnssec_ok);
  EXPECT_EQ(udp_limit(query), kMostUdpAnswer);
}

TEST(DnsQuery, NamesThatAreNoHostsAreReadableAndNeverLookLikeHosts) {
  const struct {
    std::string wire;
    const char* name;
  } table[] = {
      {"\0"s, ""},
      {"\3a.b\3com\0"s, R"(a\.b.com)"},
      {"\3a\\b\3com\0"s, R"(a\\b.com)"},
      {"\3a\0b\3com\0"s, R"(a\000b.com)"},
      {"\1 \3com\0"s, R"(\032.com)"},
      {"\7b\xc3\xbc"s + "cher\3com\0"s, R"(b\195\188cher.com)"},
      {"\x0dXN--BCHER-KVA\3com\0"s, "xn--bcher-kva.com"},
      {"\4a\r\nb\0"s, R"(a\013\010b)"},
  };
  for (const auto& row : table) EXPECT_EQ(parsed(header() + row.wire + kTypeA).name, row.name);
}

TEST(DnsQuery, TheLongestName) {
  const std::string label = "\x3f"s + std::string(63, 'a');
  const std::string longest = label + label + label + "\x3d"s + std::string(61, 'b') + "\0"s;
  ASSERT_EQ(longest.size(), kMostDnsName);
  EXPECT_EQ(parsed(header() + longest + kTypeA).name.size(), 253u);
  EXPECT_FALSE(
      parse_dns_query(header() + label + label + label + "\x3e"s + std::string(62, 'b') + "\0"s + kTypeA));
}

TEST(DnsQuery, HostileMessages) {
  std::string many = "";
  for (int i = 0; i < 17; ++i) many += "\0\0\1\0\1\0\0\0\0\0\0"s;
  const struct {
    const char *why, *code;
    std::string message;
  } table[] = {
      {"nothing", "dns.no_question", ""},
      {"half a header", "dns.no_question", "\x12\x34\1\0\0\1\0\0\0\0\0"s},
      {"an answer", "dns.no_question", header(1, 0, 0, 0, 0x8180) + kName + kTypeA},
      {"an update", "dns.opcode", header(1, 0, 0, 0, 0x2800) + kName + kTypeA},
      {"no question", "dns.malformed", header(0)},
      {"two questions", "dns.malformed", header(2) + kName + kTypeA + kName + kTypeA},
      {"answers in it", "dns.malformed", header(1, 1) + kName + kTypeA + "\0\0\1\0\1\0\0\0\0\0\0"s},
      {"authorities in it", "dns.malformed", header(1, 0, 1) + kName + kTypeA + "\0\0\1\0\1\0\0\0\0\0\0"s},
      {"no name", "dns.malformed", header()},
      {"a name without an end", "dns.malformed", header() + "\3api"s},
      {"a label that is cut short", "dns.malformed", header() + "\x3fshort\0"s + kTypeA},
      {"no type", "dns.malformed", header() + kName},
      {"no class", "dns.malformed", header() + kName + "\0\1"s},
      {"a pointer to itself", "dns.malformed", header() + "\xc0\x0c"s + kTypeA},
      {"a pointer that is cut short", "dns.malformed", header() + "\xc0"s},
      {"a pointer ahead", "dns.malformed", header() + "\xc0\x12"s + kTypeA + kName},
      {"a pointer beyond the end", "dns.malformed", header() + "\xff\xff"s + kTypeA},
      {"a pointer into the header", "dns.malformed", header() + "\1a\xc0\2"s + kTypeA},
      {"a loop of a label and a pointer", "dns.malformed", header() + "\1a\xc0\x0c"s + kTypeA},
      {"two pointers at each other", "dns.malformed",
       header(1, 0, 0, 2) + kName + kTypeA + "\xc0\x2b\0\1\0\1\0\0\0\0\0\0"s +
           "\xc0\x21\0\1\0\1\0\0\0\0\0\0"s},
      {"label type 01", "dns.malformed", header() + "\x41"s + std::string(65, 'a') + "\0"s + kTypeA},
      {"label type 10", "dns.malformed", header() + "\x80"s + std::string(65, 'a') + "\0"s + kTypeA},
      {"bytes after the question", "dns.malformed", header() + kName + kTypeA + "x"},
      {"a record that is not there", "dns.malformed", header(1, 0, 0, 1) + kName + kTypeA},
      {"a record longer than the message", "dns.malformed",
       header(1, 0, 0, 1) + kName + kTypeA + "\0\0\1\0\1\0\0\0\0\xff\xff"s},
      {"65535 records", "dns.malformed", header(1, 0, 0, 65535) + kName + kTypeA},
      {"17 records", "dns.malformed", header(1, 0, 0, 17) + kName + kTypeA + many},
      {"two OPT", "dns.malformed", header(1, 0, 0, 2) + kName + kTypeA + opt() + opt()},
      {"an OPT of a name", "dns.malformed", header(1, 0, 0, 1) + kName + kTypeA + "\1a"s + opt()},
      {"an option that is cut short", "dns.malformed",
       header(1, 0, 0, 1) + kName + kTypeA + opt(512, 0, "\0\x0a\0\3ab"s)},
      {"more than a message can have", "dns.malformed", header() + kName + kTypeA + std::string(65536, '\0')},
  };
  for (const auto& row : table) {
    const auto query = parse_dns_query(row.message);
    ASSERT_FALSE(query) << row.why;
    EXPECT_EQ(query.error().code, row.code) << row.why;
    const std::string refusal = refuse_dns(row.message, DnsCode::kFormErr);
    if (row.code == "dns.no_question"s) {
      EXPECT_EQ(refusal, "") << row.why << ": an answer to an answer is a loop";
    } else {
      EXPECT_EQ(refusal.size(), kDnsHeader) << row.why;
      EXPECT_EQ(refusal.substr(0, 2), "\x12\x34") << row.why;
      EXPECT_EQ(refusal[3] & 0xf, 1) << row.why;
    }
  }
}

TEST(DnsQuery, EveryCutOfAGoodMessageIsRefused) {
  const std::string good = header(1, 0, 0, 1) + kName + kTypeA + opt(1232, 0, "\0\x0a\0\2ab"s);
  parsed(good);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parse_dns_query(good.substr(0, size))) << size;
}

// The other opinion: what the C library's resolver makes and reads.
std::string made_by_libc(const char* name, int type) {
  unsigned char buffer[512];
  const int size = ::res_mkquery(ns_o_query, name, ns_c_in, type, nullptr, 0, nullptr, buffer, sizeof buffer);
  EXPECT_GT(size, 0);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(std::max(size, 0))};
}

struct Seen {
  int code = -1, answers = 0, authorities = 0, additional = 0;
  bool truncated = false, question_repeated = false;
  std::string data;  // of the first answer: an address or a name
  uint32_t ttl = 0;
};
void see_first_answer(ns_msg& message, Seen& seen) {
  ns_rr record;
  ASSERT_EQ(ns_parserr(&message, ns_s_an, 0, &record), 0);
  seen.ttl = ns_rr_ttl(record);
  const unsigned char* data = ns_rr_rdata(record);
  if (ns_rr_type(record) == ns_t_a && ns_rr_rdlen(record) == 4) {
    seen.data = Address::v4(static_cast<uint32_t>(ns_get32(data))).to_string();
  } else {
    char name[NS_MAXDNAME];
    ASSERT_GT(ns_name_uncompress(ns_msg_base(message), ns_msg_end(message), data, name, sizeof name), 0);
    seen.data = name;
  }
}
Seen seen_by_libc(const std::string& answer, const DnsQuery& query) {
  Seen seen;
  ns_msg message;
  if (ns_initparse(reinterpret_cast<const unsigned char*>(answer.data()), static_cast<int>(answer.size()),
                   &message) != 0)
    return seen;
  EXPECT_EQ(ns_msg_id(message), query.id);
  EXPECT_EQ(ns_msg_getflag(message, ns_f_qr), 1);
  EXPECT_EQ(ns_msg_getflag(message, ns_f_ra), 1) << "or Go's resolver goes on to the next server";
  EXPECT_EQ(ns_msg_getflag(message, ns_f_ad), 0);
  seen.code = ns_msg_getflag(message, ns_f_rcode);
  seen.truncated = ns_msg_getflag(message, ns_f_tc) != 0;
  seen.answers = ns_msg_count(message, ns_s_an);
  seen.authorities = ns_msg_count(message, ns_s_ns);
  seen.additional = ns_msg_count(message, ns_s_ar);
  seen.question_repeated =
      ns_msg_count(message, ns_s_qd) == 1 && answer.substr(kDnsHeader, query.wire.size()) == query.wire;
  for (const auto section : {ns_s_qd, ns_s_an, ns_s_ns, ns_s_ar}) {
    ns_rr record;
    for (int i = 0; i < ns_msg_count(message, section); ++i)
      EXPECT_EQ(ns_parserr(&message, section, i, &record), 0) << section << " " << i;
  }
  if (seen.answers > 0) see_first_answer(message, seen);
  return seen;
}

TEST(DnsAnswer, AnAddressAsTheCLibraryReadsIt) {
  const DnsQuery query = parsed(made_by_libc("api.example.com", ns_t_a));
  EXPECT_EQ(query.name, "api.example.com");
  const auto seen =
      seen_by_libc(write_dns_answer(query, {.address = Address::parse("198.18.1.7"), .ttl = 60}, 512), query);
  EXPECT_EQ(seen.code, ns_r_noerror);
  EXPECT_TRUE(seen.question_repeated);
  EXPECT_EQ(seen.data, "198.18.1.7");
  EXPECT_EQ(seen.ttl, 60u);
  EXPECT_EQ(seen.authorities, 0);
}

TEST(DnsAnswer, NoSuchNameAndNoSuchRecordCanBeRemembered) {
  const DnsQuery query = parsed(made_by_libc("api.example.com", ns_t_aaaa));
  for (const DnsCode code : {DnsCode::kNoError, DnsCode::kNxDomain}) {
    const auto seen = seen_by_libc(write_dns_answer(query, {.code = code, .ttl = 60}, 512), query);
    EXPECT_EQ(seen.code, static_cast<int>(code));
    EXPECT_EQ(seen.answers, 0);
    EXPECT_EQ(seen.authorities, 1);
    EXPECT_FALSE(seen.truncated);
  }
  EXPECT_EQ(seen_by_libc(write_dns_answer(query, {.code = DnsCode::kServFail}, 512), query).authorities, 0);
}

TEST(DnsAnswer, AHostForAnAddress) {
  const DnsQuery query = parsed(made_by_libc("7.1.18.198.in-addr.arpa", ns_t_ptr));
  EXPECT_EQ(reverse_address(query.name), Address::parse("198.18.1.7"));
  EXPECT_EQ(seen_by_libc(write_dns_answer(query, {.host = "api.example.com", .ttl = 60}, 512), query).data,
            "api.example.com");
}

TEST(DnsAnswer, EdnsIsAnsweredWithEdns) {
  const DnsQuery query = parsed(header(1, 0, 0, 1) + kName + kTypeA + opt());
  const auto good = write_dns_answer(query, {.address = Address::v4(1)}, 512);
  EXPECT_EQ(seen_by_libc(good, query).additional, 1);
  const auto bad = write_dns_answer(query, {.code = DnsCode::kBadVers}, 512);
  const auto seen = seen_by_libc(bad, query);
  EXPECT_EQ(seen.code, 0) << "the code's low bits";
  EXPECT_EQ(bad[bad.size() - 6], 1) << "its high bits, in OPT";
}

TEST(DnsAnswer, WhatDoesNotFitIsSaidToBeCut) {
  std::string label = "\x3f"s + std::string(63, 'a');
  const DnsQuery query = parsed(header() + label + label + label + "\0\0\x0c\0\1"s);
  std::string host;
  for (int i = 0; i < 3; ++i) host += std::string(63, 'h') + ".";
  host += "example.com";
  const DnsAnswer answer{.host = host, .ttl = 1};
  const size_t whole = write_dns_answer(query, answer, kMostDnsMessage).size();
  for (size_t most = kDnsHeader; most <= whole; ++most) {
    const std::string message = write_dns_answer(query, answer, most);
    EXPECT_LE(message.size(), most);
    const auto seen = seen_by_libc(message, query);
    EXPECT_EQ(seen.truncated, most < whole);
    EXPECT_EQ(seen.answers, most < whole ? 0 : 1);
  }
}

TEST(DnsNames, Reverse) {
  EXPECT_EQ(reverse_address("4.3.2.1.in-addr.arpa"), Address::parse("1.2.3.4"));
  for (const char* name :
       {"3.2.1.in-addr.arpa", "5.4.3.2.1.in-addr.arpa", "256.3.2.1.in-addr.arpa", "04.3.2.1.in-addr.arpa",
        "in-addr.arpa", "4.3.2.1.in-addr.arpa.example", "-4.3.2.1.in-addr.arpa", "4..2.1.in-addr.arpa",
        "4.3.2.1.ip6.arpa", "+4.3.2.1.in-addr.arpa", "4.3.2.1xin-addr.arpa", "4.3.2.1..in-addr.arpa"})
    EXPECT_FALSE(reverse_address(name)) << name;
}

TEST(DnsNames, OnTheWire) {
  EXPECT_EQ(dns_wire_name("api.example.com"), kName);
  EXPECT_EQ(dns_wire_name("api.example.com."), kName);
  for (const std::string& host :
       {""s, "."s, ".a"s, "a..b"s, "a.."s, std::string(64, 'a'), std::string(300, 'a')})
    EXPECT_EQ(dns_wire_name(host), "") << host;
  std::string longest;
  for (int i = 0; i < 126; ++i) longest += "a.";
  EXPECT_EQ(dns_wire_name(longest + "a").size(), kMostDnsName);
  EXPECT_EQ(dns_wire_name(longest + "aa"), "");
}

}  // namespace
}  // namespace firestop::codec
