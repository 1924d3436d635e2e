// A credential's value. In locked memory that no core file and no swap gets, wiped at the end; it cannot be
// formatted, compared or converted by accident: who needs the bytes says reveal().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::credentials {

inline constexpr size_t kLeastSecret = 8;         // bytes; less is found everywhere, and guessed
inline constexpr size_t kMostSecret = 16u << 10;  // bytes

class Secret {
 public:
  // Of `size` bytes, zero. "credential.memory" if the memory cannot be locked (RLIMIT_MEMLOCK).
  static Result<Secret> make(size_t size);
  static Result<Secret> copy(std::string_view bytes);

  ~Secret();
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  size_t size() const { return size_; }
  std::string_view reveal() const { return {data_, size_}; }
  char* writable() { return data_; }
  void shrink(size_t size);  // wipes what is cut off
  // In time that does not depend on where they differ.
  bool same_as(std::string_view other) const;

 private:
  Secret(char* data, size_t size) : data_(data), size_(size) {}
  char* data_ = nullptr;
  size_t size_ = 0;
};

using SharedSecret = std::shared_ptr<const Secret>;

// A copy that had to be ordinary memory: zeroed, and then empty.
void wipe(std::string& text);

// Wipes a string at the end of its scope.
class Wiped {
 public:
  Wiped() = default;
  explicit Wiped(std::string bytes) : text(std::move(bytes)) {}
  ~Wiped() { wipe(text); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  std::string text;
};

}  // namespace firestop::credentials
