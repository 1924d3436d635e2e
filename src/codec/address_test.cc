#include "codec/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace firestop::codec {
namespace {

TEST(Address, OneSpellingIsReadAndWritten) {
  const struct {
    const char *text, *written;
  } table[] = {
      {"0.0.0.0", "0.0.0.0"},
      {"192.0.2.1", "192.0.2.1"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"::1", "::1"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"::ffff:127.0.0.1", "::ffff:127.0.0.1"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
  };
  for (const auto& row : table) {
    const auto address = Address::parse(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(address->to_string(), row.written);
    EXPECT_EQ(Address::parse(address->to_string()), address);
  }
  EXPECT_EQ(Address::parse("192.0.2.1")->with_port(443), "192.0.2.1:443");
  EXPECT_EQ(Address::parse("2001:db8::1")->with_port(443), "[2001:db8::1]:443");
  EXPECT_NE(*Address::parse("0.0.0.0"), *Address::parse("::"));
  EXPECT_EQ(Address::parse("1.2.3.4")->number(), 0x01020304u);
}

TEST(Address, WhatIsNone) {
  for (const char* text : {"",
                           ".",
                           "1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1.2.3.4.",
                           " 1.2.3.4",
                           "1.2.3.4 ",
                           "256.0.0.1",
                           "1.2.3.-4",
                           "01.2.3.4",
                           "0x7f.0.0.1",
                           "0177.0.0.1",
                           "2130706433",
                           "127.1",
                           "1.2.3.4/32",
                           "1.2.3.4:80",
                           "[::1]",
                           "::1%lo",
                           "fe80::1%2",
                           ":",
                           ":::",
                           "1::2::3",
                           "12345::",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "::g",
                           "::1.2.3",
                           "host",
                           "\xd9\xa1.2.3.4"})
    EXPECT_FALSE(Address::parse(text)) << text;
  EXPECT_FALSE(Address::parse(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(Address::parse(std::string(100, '1')));
}

struct Case {
  const char* text;
  Reach reach;
};
// The edges of each range, from both sides.
constexpr Case kCases[] = {
    {"0.0.0.0", Reach::kSpecial},
    {"0.255.255.255", Reach::kSpecial},
    {"1.0.0.0", Reach::kPublic},
    {"9.255.255.255", Reach::kPublic},
    {"10.0.0.0", Reach::kPrivate},
    {"10.255.255.255", Reach::kPrivate},
    {"11.0.0.0", Reach::kPublic},
    {"100.63.255.255", Reach::kPublic},
    {"100.64.0.0", Reach::kPrivate},
    {"100.127.255.255", Reach::kPrivate},
    {"100.128.0.0", Reach::kPublic},
    {"100.100.100.200", Reach::kSpecial},
    {"126.255.255.255", Reach::kPublic},
    {"127.0.0.0", Reach::kSpecial},
    {"127.0.0.1", Reach::kSpecial},
    {"127.255.255.255", Reach::kSpecial},
    {"128.0.0.0", Reach::kPublic},
    {"168.63.129.15", Reach::kPublic},
    {"168.63.129.16", Reach::kSpecial},
    {"168.63.129.17", Reach::kPublic},
    {"169.253.255.255", Reach::kPublic},
    {"169.254.0.0", Reach::kSpecial},
    {"169.254.169.254", Reach::kSpecial},
    {"169.254.255.255", Reach::kSpecial},
    {"169.255.0.0", Reach::kPublic},
    {"172.15.255.255", Reach::kPublic},
    {"172.16.0.0", Reach::kPrivate},
    {"172.31.255.255", Reach::kPrivate},
    {"172.32.0.0", Reach::kPublic},
    {"191.255.255.255", Reach::kPublic},
    {"192.0.0.0", Reach::kSpecial},
    {"192.0.0.192", Reach::kSpecial},
    {"192.0.0.255", Reach::kSpecial},
    {"192.0.1.0", Reach::kPublic},
    {"192.0.2.0", Reach::kSpecial},
    {"192.0.2.255", Reach::kSpecial},
    {"192.0.3.0", Reach::kPublic},
    {"192.88.99.1", Reach::kSpecial},
    {"192.167.255.255", Reach::kPublic},
    {"192.168.0.0", Reach::kPrivate},
    {"192.168.255.255", Reach::kPrivate},
    {"192.169.0.0", Reach::kPublic},
    {"198.17.255.255", Reach::kPublic},
    {"198.18.0.0", Reach::kSpecial},
    {"198.19.255.255", Reach::kSpecial},
    {"198.20.0.0", Reach::kPublic},
    {"198.51.100.0", Reach::kSpecial},
    {"198.51.100.255", Reach::kSpecial},
    {"198.51.101.0", Reach::kPublic},
    {"203.0.113.0", Reach::kSpecial},
    {"203.0.113.255", Reach::kSpecial},
    {"203.0.114.0", Reach::kPublic},
    {"223.255.255.255", Reach::kPublic},
    {"224.0.0.0", Reach::kSpecial},
    {"239.255.255.255", Reach::kSpecial},
    {"240.0.0.0", Reach::kSpecial},
    {"255.255.255.254", Reach::kSpecial},
    {"255.255.255.255", Reach::kSpecial},
    {"8.8.8.8", Reach::kPublic},

    {"::", Reach::kSpecial},
    {"::1", Reach::kSpecial},
    {"::2", Reach::kSpecial},
    {"::127.0.0.1", Reach::kSpecial},
    {"::ffff:127.0.0.1", Reach::kSpecial},
    {"::ffff:8.8.8.8", Reach::kSpecial},
    {"::ffff:0:10.0.0.1", Reach::kSpecial},
    {"64:ff9b::10.0.0.1", Reach::kSpecial},
    {"64:ff9b::8.8.8.8", Reach::kSpecial},
    {"64:ff9b:1::10.0.0.1", Reach::kSpecial},
    {"100::1", Reach::kSpecial},
    {"1fff:ffff::", Reach::kSpecial},
    {"2000::", Reach::kPublic},
    {"2001::1", Reach::kSpecial},
    {"2001:1ff:ffff::", Reach::kSpecial},
    {"2001:200::", Reach::kPublic},
    {"2001:db7:ffff::", Reach::kPublic},
    {"2001:db8::", Reach::kSpecial},
    {"2001:db9::", Reach::kPublic},
    {"2002:7f00:1::", Reach::kSpecial},
    {"2002:ffff:ffff::", Reach::kSpecial},
    {"2003::", Reach::kPublic},
    {"2606:4700::1111", Reach::kPublic},
    {"3ffe:ffff::", Reach::kPublic},
    {"3fff::1", Reach::kSpecial},
    {"3fff:fff:ffff::", Reach::kSpecial},
    {"3fff:1000::", Reach::kPublic},
    {"4000::", Reach::kSpecial},
    {"5f00::1", Reach::kSpecial},
    {"fc00::", Reach::kPrivate},
    {"fd12:3456::1", Reach::kPrivate},
    {"fd00:ec2::254", Reach::kSpecial},
    {"fd20:ce::254", Reach::kSpecial},
    {"fdff:ffff::", Reach::kPrivate},
    {"fe00::", Reach::kSpecial},
    {"fe80::1", Reach::kSpecial},
    {"febf:ffff::", Reach::kSpecial},
    {"fec0::1", Reach::kSpecial},
    {"ff02::1", Reach::kSpecial},
    {"ffff:ffff::", Reach::kSpecial},
};

TEST(Address, WhoIsThere) {
  for (const Case& row : kCases) {
    const auto address = Address::parse(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(range_of(*address).reach, row.reach) << row.text << " is " << range_of(*address).what;
    EXPECT_EQ(is_public(*address), row.reach == Reach::kPublic);
  }
}

// As inet_aton(3) has it, and beyond: what ends in a number is never a name.
TEST(Address, OddSpellingsAreSeen) {
  for (const char* host :
       {"2130706433", "0x7f000001", "0X7F000001", "127.1", "0177.0.0.1", "017700000001", "0x7f.1",
        "127.0.0.0x1", "0", "1.2.3", "127.0.0.01", "1.2.3.4.5", "256.1.1.1", "2130706433.", "127.1.", "0x",
        "example.0x7f", "example.123", "99999999999999999999"}) {
    EXPECT_TRUE(odd_address(host)) << host;
    EXPECT_FALSE(Address::parse(host)) << host;
  }
  for (const char* host : {"127.0.0.1", "example.com", "1.example", "0x7f.example", "a.0xg", "123abc", "::1",
                           "", ".", "1e100.net", "127.0.0.1.nip.io", "xn--p1ai"})
    EXPECT_FALSE(odd_address(host)) << host;
  // Whatever inet_aton takes is an address or an odd one.
  for (const char* host :
       {"1", "1.1", "1.1.1", "1.1.1.1", "0x1.0x1.0x1.0x1", "01.01.01.01", "0xffffffff", "037777777777"}) {
    in_addr read{};
    ASSERT_EQ(::inet_aton(host, &read), 1) << host;
    EXPECT_TRUE(odd_address(host) || Address::parse(host)) << host;
  }
}

TEST(Network, MatchesItsFirstAndItsLastAddressAndNothingBeside) {
  const struct {
    const char *network, *first, *last, *before, *after;
  } table[] = {
      {"0.0.0.0/0", "0.0.0.0", "255.255.255.255", "::", "::1"},
      {"192.0.2.1/32", "192.0.2.1", "192.0.2.1", "192.0.2.0", "192.0.2.2"},
      {"255.255.255.255/32", "255.255.255.255", "255.255.255.255", "255.255.255.254", "0.0.0.0"},
      {"128.0.0.0/1", "128.0.0.0", "255.255.255.255", "127.255.255.255", "0.0.0.0"},
      {"198.18.0.0/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"},
      {"10.1.2.0/23", "10.1.2.0", "10.1.3.255", "10.1.1.255", "10.1.4.0"},
      {"240.0.0.0/4", "240.0.0.0", "255.255.255.255", "239.255.255.255", "::"},
      {"::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0.0.0.0", "255.255.255.255"},
      {"2001:db8::/33", "2001:db8::", "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff",
       "2001:db7:ffff::", "2001:db8:8000::"},
      {"::1/128", "::1", "::1", "::", "::2"},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
       "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"},
  };
  for (const auto& row : table) {
    std::string why;
    const auto network = Network::parse(row.network, &why);
    ASSERT_TRUE(network) << row.network << " " << why;
    EXPECT_EQ(network->to_string(), row.network);
    for (const char* inside : {row.first, row.last})
      EXPECT_TRUE(network->contains(*Address::parse(inside))) << row.network << " " << inside;
    for (const char* outside : {row.before, row.after})
      EXPECT_FALSE(network->contains(*Address::parse(outside))) << row.network << " " << outside;
  }
  EXPECT_EQ(Network::of(*Address::parse("198.19.255.255"), 15), *Network::parse("198.18.0.0/15"));
  EXPECT_EQ(Network::of(*Address::parse("2001:db8::1"), 128), *Network::parse("2001:db8::1/128"));
  EXPECT_EQ(Network::of(*Address::parse("ffff::1"), 0), *Network::parse("::/0"));
  EXPECT_FALSE(Network::parse("127.0.0.0/8")->contains(*Address::parse("::ffff:127.0.0.1")));
}

TEST(Network, WhatIsNone) {
  for (const char* text : {"",
                           "/",
                           "1.2.3.4",
                           "1.2.3.4/",
                           "/8",
                           "1.2.3.4/33",
                           "1.2.3.4/-1",
                           "1.2.3.4/08",
                           "1.2.3.4/ 8",
                           "1.2.3.4/8x",
                           "1.2.3.4/8",
                           "10.0.0.1/31",
                           "127.1/8",
                           "0x7f.0.0.0/8",
                           "::1/129",
                           "2001:db8::1/64",
                           "::ffff:127.0.0.0/104",
                           "::ffff:0:0/96",
                           "fe80::%1/64",
                           "1.2.3.4/4294967328",
                           "1.2.3.0/24/24"}) {
    std::string why;
    EXPECT_FALSE(Network::parse(text, &why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

}  // namespace
}  // namespace firestop::codec
