#include "manifest/sshsig.h"

#include <algorithm>
#include <cstdint>

#include "codec/base64.h"
#include "codec/utf8.h"

namespace firestop::manifest {
namespace {

constexpr std::string_view kBegin = "-----BEGIN SSH SIGNATURE-----";
constexpr std::string_view kEnd = "-----END SSH SIGNATURE-----";
constexpr std::string_view kMagic = "SSHSIG";
constexpr std::string_view kCertificate = "-cert-v01@openssh.com";
constexpr size_t kColumns = 70;  // as ssh-keygen breaks its lines

Unexpected bad(std::string_view why) {
  return fail("signature.bad", "the signature file " + std::string(why),
              "it is written by `firestop sign` or `ssh-keygen -Y sign`");
}

// The wire's strings (RFC 4251, section 5): a length, u32 big endian, and so many bytes.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}

  bool number(uint32_t& out) {
    if (left_.size() < 4) return false;
    out = 0;
    for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(left_[i]);
    left_.remove_prefix(4);
    return true;
  }
  bool string(std::string& out) {
    uint32_t size = 0;
    if (!number(size) || size > left_.size()) return false;
    out = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  bool long_number(uint64_t& out) {
    uint32_t high = 0, low = 0;
    if (!number(high) || !number(low)) return false;
    out = static_cast<uint64_t>(high) << 32 | low;
    return true;
  }
  bool skip_strings(int count) {
    std::string ignored;
    for (int i = 0; i < count; ++i)
      if (!string(ignored)) return false;
    return true;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
};

std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);  // as some checkouts leave it
  return line;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

bool SshSignature::is_certificate() const {
  return key_type.ends_with(kCertificate);
}

std::optional<CertificateTime> SshSignature::certificate_time() const {
  if (!is_certificate()) return std::nullopt;
  const auto key = std::string_view(key_type).substr(0, key_type.size() - kCertificate.size());
  // The strings that are the public key.
  const int parts = key == "ssh-ed25519"                                 ? 1
                    : key == "ssh-rsa" || key.starts_with("ecdsa-sha2-") ? 2
                    : key == "sk-ssh-ed25519"                            ? 2
                    : key.starts_with("sk-ecdsa-sha2-")                  ? 3
                                                                         : 0;
  if (parts == 0) return std::nullopt;
  WireReader reader(public_key);
  uint64_t serial = 0;
  uint32_t type = 0;
  CertificateTime time;
  // type of key, nonce, key; serial number, type, identity, principals, the two times
  if (!reader.skip_strings(2 + parts) || !reader.long_number(serial) || !reader.number(type) ||
      !reader.skip_strings(2) || !reader.long_number(time.after) || !reader.long_number(time.before))
    return std::nullopt;
  return time;
}

std::string SshSignature::armored() const {
  const std::string text = codec::encode_base64(blob);
  std::string out = std::string(kBegin) + "\n";
  for (size_t at = 0; at < text.size(); at += kColumns) out += text.substr(at, kColumns) + "\n";
  return out + std::string(kEnd) + "\n";
}

Result<SshSignature> parse_signature(std::string_view armored) {
  if (armored.size() > kMaxSignature) return bad("is larger than 64 KiB");
  if (next_line(armored) != kBegin) return bad("does not begin with " + std::string(kBegin));
  std::string base64;
  while (true) {
    if (armored.empty()) return bad("has no line " + std::string(kEnd));
    const auto line = next_line(armored);
    if (line == kEnd) break;
    base64 += line;
  }
  while (!armored.empty())
    if (!next_line(armored).empty()) return bad("goes on after its end");
  auto blob = codec::decode_base64(base64);
  if (!blob) return bad("is not base64 between its first and last line");

  SshSignature out;
  out.blob = std::move(*blob);
  std::string_view envelope = out.blob;
  if (!envelope.starts_with(kMagic)) return bad("holds no SSH signature");
  envelope.remove_prefix(kMagic.size());
  WireReader reader(envelope);
  uint32_t version = 0;
  if (!reader.number(version)) return bad("is cut off");
  if (version != 1) return bad("has version " + std::to_string(version) + ", and only 1 is known");
  std::string reserved, signature;
  if (!reader.string(out.public_key) || !reader.string(out.name_space) || !reader.string(reserved) ||
      !reader.string(out.hash) || !reader.string(signature))
    return bad("is cut off");
  if (!reader.at_end()) return bad("has bytes after its last part");
  if (signature.empty()) return bad("holds an empty signature");
  if (!WireReader(out.public_key).string(out.key_type) || !is_name(out.key_type))
    return bad("holds no public key");
  if (out.hash != "sha256" && out.hash != "sha512") return bad("names an unknown hash");
  if (!codec::is_utf8(out.name_space) || out.name_space.size() > 1000)
    return bad("names something that is no namespace");
  return out;
}

}  // namespace firestop::manifest
