#include "egress/address_book.h"

namespace firestop::egress {
namespace {

constexpr uint32_t kFirst = 198u << 24 | 18u << 16 | 1u << 8;  // 198.18.1.0
// The last octet is never 0 or 255, which old software takes for a network or a broadcast.
constexpr uint32_t kInEach = 254;

}  // namespace

const codec::Network& AddressBook::range() {
  static const codec::Network network = codec::Network::of(codec::Address::v4(kFirst), 15);
  return network;
}

const codec::Network& AddressBook::reserved() {
  static const codec::Network network = codec::Network::of(codec::Address::v4(kFirst - 256), 24);
  return network;
}

std::optional<codec::Address> AddressBook::address_of(std::string_view name) {
  auto found = places_.find(name);
  if (found == places_.end()) {
    if (names_.size() >= most_) return std::nullopt;
    found = places_.emplace(name, names_.size()).first;
    names_.push_back(&found->first);
  }
  const auto place = static_cast<uint32_t>(found->second);
  return codec::Address::v4(kFirst + place / kInEach * 256 + place % kInEach + 1);
}

const std::string* AddressBook::name_of(const codec::Address& address) const {
  if (!address.is_v4() || address.number() < kFirst) return nullptr;
  const uint32_t offset = address.number() - kFirst, last = offset % 256;
  if (last == 0 || last == 255) return nullptr;
  const size_t place = offset / 256 * kInEach + last - 1;
  return place < names_.size() ? names_[place] : nullptr;
}

}  // namespace firestop::egress
