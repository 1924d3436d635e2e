// DSSE envelopes (https://github.com/secure-systems-lab/dsse, protocol 1.0): a payload with its type, signed
// over the pre-authentication encoding of both. What a verifier of somebody else's needs is in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

inline constexpr size_t kMostEnvelope = 64u << 20;  // bytes
inline constexpr size_t kMostEnvelopeSignatures = 16;

struct Envelope {
  struct Signature {
    std::string key_id;  // a hint, not signed
    std::string bytes;
  };
  std::string type, payload;
  std::vector<Signature> signatures;
};

// PAE(type, payload): "DSSEv1" SP length SP type SP length SP payload. What is signed.
std::string dsse_encoding(std::string_view type, std::string_view payload);
// One line of canonical JSON, without newline.
std::string write_envelope(const Envelope& envelope);
std::string sign_envelope(const HostKey& key, std::string_view type, std::string_view payload);
// "evidence.bad_envelope"
Result<Envelope> parse_envelope(std::string_view json);
// The key among `keys` that signed it, or nullptr.
const PublicKey* signer_of(const Envelope& envelope, const std::vector<PublicKey>& keys);

}  // namespace firestop::evidence
