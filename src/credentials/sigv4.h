// AWS Signature Version 4 (docs.aws.amazon.com: "Signature Version 4 signing process", "Authenticating
// Requests: Using the Authorization Header / Query Parameters", "... in multiple chunks"). A sandbox signs
// with its placeholders; here that signature is checked and another made with the real key, over the request
// as it leaves.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message.h"

namespace firestop::credentials {

// A key as its source says it: "ID:SECRET", "ID:SECRET:TOKEN", or the JSON of AWS's `credential_process`.
struct AwsKey {
  std::string id, secret, token;  // the token of temporary keys, or ""
  AwsKey() = default;
  AwsKey(std::string i, std::string s, std::string t = {})
      : id(std::move(i)), secret(std::move(s)), token(std::move(t)) {}
  ~AwsKey();
  AwsKey(const AwsKey&) = default;
  AwsKey& operator=(const AwsKey&) = default;
};
Result<AwsKey> parse_aws_key(std::string_view value);  // "credential.unavailable"

class SigV4 {
 public:
  // How the body is signed.
  enum class Payload {
    kHash,              // by the hash in x-amz-content-sha256, or not at all: the origin checks it
    kBody,              // by its own hash, which stands nowhere else: it must be known first
    kChunks,            // piece by piece, each with a signature: aws-chunked
    kChunksAndTrailer,  // and a signed trailer
  };

  // The signature of the request, if it is one with this key's id; nothing if the id is not in its place
  // there.
  static std::optional<SigV4> find(const http::RequestHead& head, std::string_view key_id);

  Payload payload() const { return payload_; }
  // The head without what names the key's id, and the session token if it is this key's.
  http::RequestHead without_key(const http::RequestHead& head, const AwsKey& key) const;
  // Whether the signature is this key's. `body_hash`: with Payload::kBody the body's SHA-256 in hexadecimal.
  bool verify(const http::RequestHead& head, const AwsKey& key, std::string_view body_hash = {});
  // Signs the head, which may have changed since, with another key; after verify().
  void sign(http::RequestHead& head, const AwsKey& key, std::string_view body_hash = {});

  // For what is signed piece by piece: the signature that the first follows, and how the next comes from it.
  const std::string& signature() const { return signature_; }
  std::string sign_chunk(const AwsKey& key, std::string_view previous, std::string_view data) const;
  std::string sign_trailer(const AwsKey& key, std::string_view previous, std::string_view trailer) const;

 private:
  enum class Place { kHeader, kQuery };
  enum class PathStyle { kAsSent, kEncodedAgain };  // S3; all others
  struct Parameter {
    std::string name, value;  // percent-encoded in AWS's one way
  };

  static std::vector<Parameter> parameters(const http::RequestHead& head);
  bool read_authorization(std::string_view text, std::string_view key_id);
  bool read_query(const http::RequestHead& head, std::string_view key_id);
  std::string canonical(const http::RequestHead& head, const std::vector<std::string>& names,
                        const std::string& host, PathStyle style, std::string_view body_hash) const;
  std::string signature_of(const AwsKey& key, std::string_view canonical) const;
  std::string signing_key(const AwsKey& key) const;
  std::vector<std::string> present(const http::RequestHead& head) const;

  Place place_ = Place::kHeader;
  Payload payload_ = Payload::kHash;
  PathStyle style_ = PathStyle::kAsSent;
  std::string key_id_, scope_, date_, signature_;  // scope: "20130524/us-east-1/s3/aws4_request"
  std::string
      payload_text_;  // what stands for the body: x-amz-content-sha256, or what a query means without it
  bool payload_guessed_ = false;
  std::vector<std::string> signed_headers_;  // sorted, lower case
};

}  // namespace firestop::credentials
