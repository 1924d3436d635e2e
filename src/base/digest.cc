#include "base/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/file.h"

namespace firestop {
namespace {

std::string to_hex(const unsigned char* data, size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    out += kDigits[data[i] >> 4];
    out += kDigits[data[i] & 15];
  }
  return out;
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) std::abort();
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view data) {
  if (EVP_DigestUpdate(state_->context, data.data(), data.size()) != 1) std::abort();
}

std::string Sha256::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_DigestFinal_ex(state_->context, digest, &size) != 1) std::abort();
  return to_hex(digest, size);
}

std::string sha256_hex(std::string_view data) {
  Sha256 hash;
  hash.update(data);
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
  Sha256 hash;
  std::vector<char> buffer(1u << 18);
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("file.read", "cannot read " + path);
    if (n == 0) return hash.hex();
    hash.update({buffer.data(), static_cast<size_t>(n)});
  }
}

std::string random_bytes(size_t bytes) {
  std::string out(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::getrandom(out.data() + done, bytes - done, 0);
    if (n < 0 && errno != EINTR) std::abort();
    if (n > 0) done += static_cast<size_t>(n);
  }
  return out;
}

std::string random_hex(size_t bytes) {
  const std::string raw = random_bytes(bytes);
  return to_hex(reinterpret_cast<const unsigned char*>(raw.data()), raw.size());
}

}  // namespace firestop
