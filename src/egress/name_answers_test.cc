#include "egress/name_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "egress/testing/fake_guard.h"

namespace firestop::egress {
namespace {

using codec::DnsType;
using namespace std::string_literals;

std::string question(const std::string& wire, DnsType type, uint16_t network_class = 1) {
  std::string out = "\0\7\1\0\0\1\0\0\0\0\0\0"s + wire;
  for (const unsigned value : {static_cast<unsigned>(type), static_cast<unsigned>(network_class)}) {
    out += static_cast<char>(value >> 8);
    out += static_cast<char>(value & 0xff);
  }
  return out;
}

class NameAnswersTest : public ::testing::Test {
 protected:
  // Code, count of answers, and the last four bytes of the answer: an A record's address stands there.
  struct Seen {
    int code = -1, answers = -1, authorities = -1;
    std::string tail;
  };
  Seen ask(const std::string& message, NameAnswers::Transport transport = NameAnswers::Transport::kUdp) {
    const std::string out = answers.answer(message, transport, 40000);
    if (out.size() < codec::kDnsHeader) return {};
    return {out[3] & 0xf, out[7], out[9], out.substr(out.size() - 4)};
  }
  Seen ask(const std::string& host, DnsType type) { return ask(question(codec::dns_wire_name(host), type)); }

  FakeGuard guard;
  AddressBook book{3};
  std::vector<Crossing> crossings;
  NameAnswers answers{guard, book, [this](const Crossing& crossing) { crossings.push_back(crossing); }};
};

TEST_F(NameAnswersTest, AnAllowedNameHasAMadeUpAddress) {
  guard.names = {"api.example.com"};
  const Seen seen = ask("API.example.COM", DnsType::kA);
  EXPECT_EQ(seen.code, 0);
  EXPECT_EQ(seen.answers, 1);
  EXPECT_EQ(seen.tail, "\xc6\x12\1\1"s);
  EXPECT_EQ(*book.name_of(codec::Address::v4(0xc6120101)), "api.example.com");
  ASSERT_EQ(crossings.size(), 1u);
  const Crossing& crossing = crossings[0];
  EXPECT_EQ(crossing.kind, Crossing::Kind::kName);
  EXPECT_EQ(crossing.verdict, "allowed");
  EXPECT_EQ(crossing.scheme, "dns");
  EXPECT_EQ(crossing.host, "api.example.com");
  EXPECT_EQ(crossing.detail, "A");
  EXPECT_EQ(crossing.source_port, 40000);
}

TEST_F(NameAnswersTest, EverythingElseOfAnAllowedNameIsEmptyAtOnce) {
  guard.names = {"api.example.com"};
  for (const DnsType type :
       {DnsType::kAaaa, DnsType::kHttps, DnsType::kSvcb, DnsType{16}, DnsType{15}, DnsType::kSoa}) {
    const Seen seen = ask("api.example.com", type);
    EXPECT_EQ(seen.code, 0) << codec::to_string(type);
    EXPECT_EQ(seen.answers, 0) << codec::to_string(type);
    EXPECT_EQ(seen.authorities, 1) << codec::to_string(type);
  }
  EXPECT_EQ(book.size(), 0u);
}

TEST_F(NameAnswersTest, inv07_EveryOtherNameDoesNotExist) {
  guard.names = {"api.example.com"};
  for (const char* host :
       {"evil.com", "example.com", "x.api.example.com", "api.example.com.evil.com", "localhost", "1",
        "2130706433", "127.0.0.1", "9.9.9.9.in-addr.arpa", "stolen-data-1234.evil.com"}) {
    for (const DnsType type : {DnsType::kA, DnsType::kAaaa, DnsType::kPtr, DnsType{16}, DnsType{252}}) {
      crossings.clear();
      const Seen seen = ask(host, type);
      EXPECT_EQ(seen.code, 3) << host << " " << codec::to_string(type);
      EXPECT_EQ(seen.answers, 0);
      EXPECT_EQ(seen.authorities, 1);
      ASSERT_EQ(crossings.size(), 1u);
      EXPECT_EQ(crossings[0].verdict, "denied");
      EXPECT_EQ(crossings[0].code, "egress.no_rule");
      EXPECT_EQ(crossings[0].host, host);
    }
  }
  EXPECT_EQ(book.size(), 0u);
}

TEST_F(NameAnswersTest, inv07_NamesThatOnlyLookAllowedAreNot) {
  guard.names = {"api.example.com"};
  // A dot inside of a label, and bytes that other readers drop.
  for (const std::string& wire : {"\x0b"s + "api.example\3com\0"s, "\x0f"s + "api.example.com\0"s,
                                  "\4api\0\7example\3com\0"s, "\4api \7example\3com\0"s}) {
    EXPECT_EQ(ask(question(wire, DnsType::kA)).code, 3);
    EXPECT_NE(guard.asked.back(), "api.example.com");
  }
}

TEST_F(NameAnswersTest, inv08_APlaceholderInANameIsAnAlarmAndGoesNowhere) {
  guard.placeholder = "fs-secret-1";
  EXPECT_EQ(ask("FS-SECRET-1.evil.com", DnsType::kA).code, 3);
  ASSERT_EQ(crossings.size(), 1u);
  EXPECT_EQ(crossings[0].kind, Crossing::Kind::kAlarm);
  EXPECT_EQ(crossings[0].code, "credential.elsewhere");
  EXPECT_EQ(crossings[0].credential, "model");
}

TEST_F(NameAnswersTest, AMadeUpAddressHasItsNameBack) {
  guard.names = {"api.example.com"};
  EXPECT_EQ(ask("1.1.18.198.in-addr.arpa", DnsType::kPtr).code, 3) << "not given yet";
  ask("api.example.com", DnsType::kA);
  EXPECT_EQ(ask("1.1.18.198.in-addr.arpa", DnsType::kPtr).answers, 1);
  EXPECT_EQ(ask("2.1.18.198.in-addr.arpa", DnsType::kPtr).code, 3);
}

TEST_F(NameAnswersTest, AFullBookIsAFailureThatIsRecorded) {
  guard.names = {"a.example.com", "b.example.com", "c.example.com", "d.example.com"};
  for (const char* host : {"a.example.com", "b.example.com", "c.example.com"})
    EXPECT_EQ(ask(host, DnsType::kA).code, 0);
  EXPECT_EQ(ask("d.example.com", DnsType::kA).code, 2);
  EXPECT_EQ(crossings.back().verdict, "failed");
  EXPECT_EQ(crossings.back().code, "limit.names");
  EXPECT_EQ(ask("a.example.com", DnsType::kA).answers, 1);
}

TEST_F(NameAnswersTest, OtherClassesAndOtherEdnsVersions) {
  guard.names = {"api.example.com"};
  EXPECT_EQ(ask(question(codec::dns_wire_name("api.example.com"), DnsType::kA, 3)).answers, 0);
  std::string message = question(codec::dns_wire_name("api.example.com"), DnsType::kA);
  message[11] = 1;
  const std::string out =
      answers.answer(message + "\0\0\x29\x10\0\0\1\0\0\0\0"s, NameAnswers::Transport::kUdp, 1);
  EXPECT_EQ(out.substr(out.size() - 6, 1), "\1") << "BADVERS";
  EXPECT_EQ(out[7], 0);
}

TEST_F(NameAnswersTest, WhatIsNoQuestionIsRecordedAndNotAnsweredByMore) {
  EXPECT_EQ(answers.answer("x", NameAnswers::Transport::kUdp, 1), "");
  EXPECT_EQ(answers.answer("\0\7\x81\x80\0\1\0\0\0\0\0\0"s, NameAnswers::Transport::kUdp, 1), "")
      << "an answer";
  EXPECT_EQ(ask("\0\7\1\0\0\0\0\0\0\0\0\0"s).code, 1);
  EXPECT_EQ(ask("\0\7\x28\0\0\1\0\0\0\0\0\0"s).code, 4);
  ASSERT_EQ(crossings.size(), 4u);
  for (const Crossing& crossing : crossings) EXPECT_EQ(crossing.code, "egress.bad_request");
  EXPECT_THAT(guard.asked, ::testing::IsEmpty());
}

}  // namespace
}  // namespace firestop::egress
