// Bodies of requests with an AWS signature that the head alone does not settle.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "credentials/sigv4.h"
#include "http/filter.h"

namespace firestop::credentials {

using BadSignature = std::function<http::Denial(const std::string& why)>;

// aws-chunked with signatures: each chunk's is checked with the placeholder's key and made again with the
// real one. `theirs` is the request's signature as it came, `ours` as it leaves. A chunk is held back until
// it is complete: at most kMostSignedChunk bytes.
inline constexpr size_t kMostSignedChunk = 8u << 20;
std::unique_ptr<http::Filter> sigv4_chunks(const SigV4& theirs, const AwsKey& placeholder, const SigV4& ours,
                                           const AwsKey& real, BadSignature bad);

// A body whose own hash is signed: it is held back as a whole, and then `sign` is called with the hash,
// before the first byte of it leaves. At most kMostSignedBody bytes.
inline constexpr size_t kMostSignedBody = 8u << 20;
std::unique_ptr<http::Filter> sigv4_body(
    std::function<std::optional<http::Denial>(std::string_view hash)> sign, BadSignature bad);
std::string sigv4_body_hash(std::string_view body);  // SHA-256, hexadecimal

}  // namespace firestop::credentials
