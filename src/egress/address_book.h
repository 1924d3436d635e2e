// The addresses that a guest gets for names: made up, from 198.18.0.0/15, which is nobody's. They say which
// name a connection is meant for; the real address is looked up only when it is dialled.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/address.h"

namespace firestop::egress {

// One sandbox's. An address once given stays its name's; none is given twice.
class AddressBook {
 public:
  // A wildcard rule allows endless names: who asks for more gets none, and harms only itself.
  static constexpr size_t kMostNames = 16384;
  // Addresses of the first 256 are never given: the sandbox's own interface and gateway lie there.
  static const codec::Network& range();     // 198.18.0.0/15
  static const codec::Network& reserved();  // 198.18.0.0/24

  explicit AddressBook(size_t most = kMostNames) : most_(most) {}
  AddressBook(const AddressBook&) = delete;
  AddressBook& operator=(const AddressBook&) = delete;

  // Of a canonical name; nothing when the book is full and the name not in it.
  std::optional<codec::Address> address_of(std::string_view name);
  // Null for an address that was not given.
  const std::string* name_of(const codec::Address& address) const;
  size_t size() const { return names_.size(); }

 private:
  const size_t most_;
  std::map<std::string, size_t, std::less<>> places_;
  std::vector<const std::string*> names_;  // keys of places_, by place
};

}  // namespace firestop::egress
