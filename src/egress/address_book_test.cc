#include "egress/address_book.h"

#include <gtest/gtest.h>

#include <set>

namespace firestop::egress {
namespace {

using codec::Address;

TEST(AddressBook, ANameKeepsItsAddressAndAnAddressItsName) {
  AddressBook book;
  const auto first = book.address_of("api.example.com");
  const auto second = book.address_of("git.example.com");
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(book.address_of("api.example.com"), first);
  ASSERT_TRUE(book.name_of(*first));
  EXPECT_EQ(*book.name_of(*first), "api.example.com");
  EXPECT_EQ(*book.name_of(*second), "git.example.com");
  EXPECT_EQ(book.size(), 2u);
}

TEST(AddressBook, OnlyWhatWasGivenHasAName) {
  AddressBook book;
  const auto given = book.address_of("api.example.com");
  for (const char* other :
       {"198.18.0.0", "198.18.0.1", "198.18.1.0", "198.18.1.2", "198.18.1.255", "198.19.255.255",
        "198.17.255.255", "198.20.0.1", "0.0.0.0", "255.255.255.255", "::", "::1"}) {
    ASSERT_NE(*Address::parse(other), *given);
    EXPECT_FALSE(book.name_of(*Address::parse(other))) << other;
  }
  EXPECT_FALSE(book.name_of(Address::v6({198, 18, 1, 1}))) << "the same bytes in the other family";
}

TEST(AddressBook, AFullBookTakesNoNewNameAndForgetsNone) {
  AddressBook book;
  std::set<Address> given;
  for (size_t i = 0; i < AddressBook::kMostNames; ++i) {
    const std::string name = "n" + std::to_string(i) + ".example.com";
    const auto address = book.address_of(name);
    ASSERT_TRUE(address);
    ASSERT_TRUE(AddressBook::range().contains(*address)) << address->to_string();
    ASSERT_FALSE(AddressBook::reserved().contains(*address));
    ASSERT_TRUE((address->number() & 255) != 0 && (address->number() & 255) != 255);
    ASSERT_TRUE(given.insert(*address).second) << address->to_string() << " was given twice";
    ASSERT_EQ(*book.name_of(*address), name);
  }
  EXPECT_FALSE(book.address_of("one.more.example.com"));
  EXPECT_EQ(book.address_of("n0.example.com"), Address::parse("198.18.1.1"));
  EXPECT_EQ(book.size(), AddressBook::kMostNames);
}

}  // namespace
}  // namespace firestop::egress
