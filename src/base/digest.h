// SHA-256 (FIPS 180-4) and random bytes, on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::string_view data);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view data);
Result<std::string> sha256_file(const std::string& path);
std::string random_hex(size_t bytes);  // getrandom(2)
std::string random_bytes(size_t bytes);

}  // namespace firestop
