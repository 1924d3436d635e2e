#include "evidence/host_key.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sodium.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"

namespace firestop::evidence {
namespace {

constexpr uint64_t kMostKeyBytes = 16u << 10, kMostSignersBytes = 256u << 10;
constexpr size_t kMostSigners = 64;
constexpr std::string_view kBegin = "-----BEGIN PUBLIC KEY-----", kEnd = "-----END PUBLIC KEY-----";

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<::BIO_free_all>>;
using PKey = std::unique_ptr<EVP_PKEY, Freed<::EVP_PKEY_free>>;

Unexpected bad_key(std::string what, std::string hint = {}) {
  return fail("evidence.bad_key", std::move(what), std::move(hint));
}

// PEM_read_* ask the terminal for a passphrase without one of these.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Bio reader(std::string_view bytes) {
  return Bio(::BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string content_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

void wipe(std::string& text) {
  text.resize(text.capacity());
  ::sodium_memzero(text.data(), text.size());
  text.clear();
}

// A new file of 0600, with all of its bytes or not there; "file.exists" if somebody else was faster.
Result<void> write_new(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string part = path + "." + random_hex(8);
  TRY(write_file_atomic(part, bytes, mode));
  const int linked = ::link(part.c_str(), path.c_str());
  const int error = errno;
  ::unlink(part.c_str());
  errno = error;
  if (linked != 0 && errno == EEXIST) return fail("file.exists", path);
  if (linked != 0) return fail_errno("file.write", "cannot make " + path);
  return {};
}

Result<std::string> read_private(const std::string& path) {
  TRY_ASSIGN(const UniqueFd fd, open_file(path, O_RDONLY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return bad_key(path + " is no file");
  if ((st.st_mode & 077) != 0 || st.st_uid != ::geteuid())
    return bad_key(path + " signs this host's records and can be read or changed by others",
                   "chmod 600 it if nobody did; else move it away, and a new one is made");
  return read_all(fd.get(), kMostKeyBytes);
}

}  // namespace

struct HostKey::State {
  PublicKey key;
  unsigned char* secret = nullptr;  // crypto_sign_SECRETKEYBYTES, between guard pages

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::sodium_free(secret); }

  Result<void> take(std::string_view seed);
  Result<void> take_pem(std::string_view pem, const std::string& path);
};

namespace {

Result<std::string> public_der(std::string_view raw_key) {
  const PKey key(::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(raw_key), raw_key.size()));
  unsigned char* der = nullptr;
  const int size = key ? ::i2d_PUBKEY(key.get(), &der) : -1;
  if (size <= 0) return bad_key("OpenSSL does not take the key");
  std::string out(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  ::OPENSSL_free(der);
  return out;
}

Result<std::string> public_pem(std::string_view raw_key) {
  const PKey key(::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw(raw_key), raw_key.size()));
  const Bio out(::BIO_new(::BIO_s_mem()));
  if (!key || !out || ::PEM_write_bio_PUBKEY(out.get(), key.get()) != 1)
    return bad_key("OpenSSL does not take the key");
  return content_of(out.get());
}

Result<std::string> private_pem(std::string_view seed) {
  const PKey key(::EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, raw(seed), seed.size()));
  const Bio out(::BIO_new(::BIO_s_secmem()));
  if (!key || !out ||
      ::PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return bad_key("OpenSSL cannot write a key");
  return content_of(out.get());
}

}  // namespace

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  return signature.size() == crypto_sign_BYTES && raw_.size() == crypto_sign_PUBLICKEYBYTES &&
         ::crypto_sign_verify_detached(raw(signature), raw(message), message.size(), raw(raw_)) == 0;
}

Result<PublicKey> PublicKey::from_raw(std::string bytes) {
  if (::sodium_init() < 0) return bad_key("libsodium cannot start");
  // RFC 8032 leaves it open whether keys of small order are keys; any signature of a certain form fits them
  // for any message. OpenSSL takes them, libsodium does not.
  if (bytes.size() != crypto_core_ed25519_BYTES || ::crypto_core_ed25519_is_valid_point(raw(bytes)) != 1)
    return bad_key("an Ed25519 key that anybody could sign for (no point of the right order)");
  PublicKey out;
  TRY_ASSIGN(const std::string der, public_der(bytes));
  TRY_ASSIGN(out.pem_, public_pem(bytes));
  out.id_ = sha256_hex(der);
  out.raw_ = std::move(bytes);
  return out;
}

Result<PublicKey> PublicKey::from_pem(std::string_view pem) {
  if (pem.size() > kMostKeyBytes) return bad_key("longer than a key can be");
  const Bio in = reader(pem);
  const PKey key(in ? ::PEM_read_bio_PUBKEY(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) return bad_key("no public key in PEM (" + std::string(kBegin) + ")");
  if (::EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) return bad_key("no Ed25519 key");
  std::string bytes(crypto_sign_PUBLICKEYBYTES, '\0');
  size_t size = bytes.size();
  if (::EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size) != 1 ||
      size != bytes.size())
    return bad_key("no Ed25519 key");
  return from_raw(std::move(bytes));
}

Result<std::vector<PublicKey>> PublicKey::load(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path, kMostSignersBytes));
  std::vector<PublicKey> out;
  for (size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin, at)) {
    const size_t end = std::min(text.find(kEnd, at), text.size() - kEnd.size()) + kEnd.size();
    auto key = from_pem(std::string_view(text).substr(at, end - at));
    if (!key) return wrap(key.error(), path + ", key " + std::to_string(out.size() + 1));
    if (out.size() == kMostSigners)
      return bad_key(path + " has more than " + std::to_string(kMostSigners) + " keys");
    out.push_back(std::move(*key));
    at = end;
  }
  if (out.empty())
    return bad_key(path + " has no public key in PEM",
                   "`openssl pkey -in evidence-key.pem -pubout` shows the public half of a private one");
  return out;
}

Result<void> HostKey::State::take(std::string_view seed) {
  if (::sodium_init() < 0) return bad_key("libsodium cannot start");
  secret = static_cast<unsigned char*>(::sodium_malloc(crypto_sign_SECRETKEYBYTES));
  if (!secret) return bad_key("no memory for the key");
  std::string bytes(crypto_sign_PUBLICKEYBYTES, '\0');
  ::crypto_sign_seed_keypair(reinterpret_cast<unsigned char*>(bytes.data()), secret, raw(seed));
  TRY_ASSIGN(key, PublicKey::from_raw(std::move(bytes)));
  return {};
}

Result<void> HostKey::State::take_pem(std::string_view pem, const std::string& path) {
  const Bio in = reader(pem);
  const PKey private_key(in ? ::PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!private_key || ::EVP_PKEY_get_id(private_key.get()) != EVP_PKEY_ED25519)
    return bad_key(path + " is no Ed25519 key in PEM without a passphrase",
                   "move it away, and a new one is made; keep it while you have records that it signed");
  std::string seed(crypto_sign_SEEDBYTES, '\0');
  size_t size = seed.size();
  const int got =
      ::EVP_PKEY_get_raw_private_key(private_key.get(), reinterpret_cast<unsigned char*>(seed.data()), &size);
  auto taken = got == 1 && size == seed.size() ? take(seed) : bad_key(path + " is no Ed25519 key");
  wipe(seed);
  return taken;
}

HostKey::HostKey() : state_(std::make_unique<State>()) {}
HostKey::HostKey(HostKey&&) noexcept = default;
HostKey& HostKey::operator=(HostKey&&) noexcept = default;
HostKey::~HostKey() = default;

Result<HostKey> HostKey::load_or_make(const std::string& config_directory) {
  const std::string path = private_key_path(config_directory), beside = public_key_path(config_directory);
  // Only what is not there is made: one that cannot be read is somebody's, and has signed.
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    TRY(make_directories(config_directory));
    std::string seed = random_bytes(crypto_sign_SEEDBYTES);
    auto pem = private_pem(seed);
    wipe(seed);
    if (!pem) return tl::unexpected(pem.error());
    auto made = write_new(path, *pem, 0600);
    wipe(*pem);
    if (!made && made.error().code != "file.exists") return tl::unexpected(made.error());
  }
  TRY_ASSIGN(std::string pem, read_private(path));
  HostKey out;
  auto taken = out.state_->take_pem(pem, path);
  wipe(pem);
  if (!taken) return tl::unexpected(taken.error());
  const auto shown = read_file(beside, kMostKeyBytes);
  if (!shown || *shown != out.public_key().pem())
    TRY(write_file_atomic(beside, out.public_key().pem(), 0644));
  return out;
}

std::string HostKey::sign(std::string_view message) const {
  std::string out(crypto_sign_BYTES, '\0');
  ::crypto_sign_detached(reinterpret_cast<unsigned char*>(out.data()), nullptr, raw(message), message.size(),
                         state_->secret);
  return out;
}

const PublicKey& HostKey::public_key() const {
  return state_->key;
}

std::string private_key_path(const std::string& config_directory) {
  return join_path(config_directory, "evidence-key.pem");
}

std::string public_key_path(const std::string& config_directory) {
  return join_path(config_directory, "evidence-key.pub.pem");
}

}  // namespace firestop::evidence
