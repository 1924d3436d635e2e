#include "credentials/secret.h"

#include <sodium.h>

#include <cstring>
#include <utility>

namespace firestop::credentials {

Result<Secret> Secret::make(size_t size) {
  if (::sodium_init() < 0) return fail("credential.memory", "libsodium cannot start");
  // Between guard pages; sodium_malloc() locks as well, but does not say whether it could.
  auto* data = static_cast<char*>(::sodium_malloc(size));
  if (!data || ::sodium_mlock(data, size) != 0) {
    ::sodium_free(data);
    return fail("credential.memory", "no memory can be locked for a credential",
                "a higher limit helps: ulimit -l, or LimitMEMLOCK of the service");
  }
  std::memset(data, 0, size);
  return Secret(data, size);
}

Result<Secret> Secret::copy(std::string_view bytes) {
  TRY_ASSIGN(Secret out, make(bytes.size()));
  std::memcpy(out.data_, bytes.data(), bytes.size());
  return out;
}

Secret::~Secret() {
  ::sodium_free(data_);  // wipes, unlocks, and takes nullptr
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Secret::shrink(size_t size) {
  if (size >= size_) return;
  ::sodium_memzero(data_ + size, size_ - size);
  size_ = size;
}

bool Secret::same_as(std::string_view other) const {
  return other.size() == size_ && ::sodium_memcmp(data_, other.data(), size_) == 0;
}

void wipe(std::string& text) {
  // Also what a longer text left behind in the string's memory.
  text.resize(text.capacity());
  ::sodium_memzero(text.data(), text.size());
  text.clear();
}

}  // namespace firestop::credentials
