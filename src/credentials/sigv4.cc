#include "credentials/sigv4.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "codec/json.h"
#include "credentials/secret.h"

namespace firestop::credentials {
namespace {

using http::same_name;

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr size_t kMostHeaders = 64;  // signed ones
constexpr std::string_view kSessionToken = "X-Amz-Security-Token";
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += kHexDigits[static_cast<unsigned char>(c) >> 4];
    out += kHexDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> out{};
  ::crypto_hash_sha256(out.data(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return hex({reinterpret_cast<const char*>(out.data()), out.size()});
}

std::string hmac(std::string_view key, std::string_view text) {
  crypto_auth_hmacsha256_state state;
  ::crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size());
  ::crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> out{};
  ::crypto_auth_hmacsha256_final(&state, out.data());
  ::sodium_memzero(&state, sizeof state);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string encoded(std::string_view text, bool keep_slash) {
  constexpr std::string_view kUpper = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (unreserved(c) || (keep_slash && c == '/')) {
      out += c;
      continue;
    }
    out += '%';
    out += kUpper[static_cast<unsigned char>(c) >> 4];
    out += kUpper[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string decoded(std::string_view text) {
  const auto value = [](char c) {
    const size_t at = kHexDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
  };
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const int high = text[at] == '%' && at + 2 < text.size() ? value(text[at + 1]) : -1;
    const int low = high < 0 ? -1 : value(text[at + 2]);
    out += low < 0 ? text[at] : static_cast<char>(high * 16 + low);
    if (low >= 0) at += 2;
  }
  return out;
}

// Without blanks around it, and one for several within.
std::string trimmed(std::string_view value) {
  std::string out;
  for (const char c : value)
    if (c != ' ' && c != '\t')
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ";") + word;
  return out;
}

bool is_hex64(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

// A header's value as it is signed, of those that a head keeps elsewhere too. Nothing if it is not there.
std::optional<std::string> header_value(const http::RequestHead& head, const std::string& name,
                                        const std::string& host) {
  if (name == "host") return host;
  if (name == "content-length" && head.body.kind != http::Body::Kind::kUnknown)
    return std::to_string(head.body.length);
  if (name == "expect" && head.expects_continue) return "100-continue";
  std::optional<std::string> out;
  for (const auto& header : head.headers)
    if (same_name(header.name, name)) out = (out ? *out + "," : "") + trimmed(header.value);
  return out;
}

uint16_t default_port(const http::RequestHead& head) {
  return head.scheme == "https" ? 443 : 80;
}

}  // namespace

AwsKey::~AwsKey() {
  for (auto* text : {&secret, &token}) wipe(*text);
}

Result<AwsKey> parse_aws_key(std::string_view value) {
  const auto refuse = [] {
    return fail("credential.unavailable",
                "its value is neither ID:SECRET nor the JSON of a credential_process");
  };
  AwsKey out;
  if (value.starts_with('{')) {
    const auto json = codec::parse_json(value);
    if (!json) return refuse();
    out = {json->string_or("AccessKeyId", ""), json->string_or("SecretAccessKey", ""),
           json->string_or("SessionToken", "")};
  } else {
    const size_t first = value.find(':');
    if (first == std::string_view::npos) return refuse();
    const size_t second = value.find(':', first + 1);
    out = {
        std::string(value.substr(0, first)),
        std::string(value.substr(first + 1, second == std::string_view::npos ? second : second - first - 1)),
        second == std::string_view::npos ? "" : std::string(value.substr(second + 1))};
  }
  const auto plain = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  };
  if (out.id.size() < 8 || out.secret.size() < kLeastSecret || !plain(out.id) || !plain(out.secret) ||
      !plain(out.token) || out.id.find_first_of("/,= ") != std::string::npos)
    return refuse();
  return out;
}

std::vector<SigV4::Parameter> SigV4::parameters(const http::RequestHead& head) {
  std::vector<Parameter> out;
  const size_t mark = head.target.find('?');
  if (mark == std::string::npos) return out;
  for (const auto& pair : split(std::string_view(head.target).substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    out.push_back({encoded(decoded(pair.substr(0, equals)), false),
                   equals < pair.size() ? encoded(decoded(pair.substr(equals + 1)), false) : ""});
  }
  return out;
}

// "AWS4-HMAC-SHA256 Credential=ID/SCOPE, SignedHeaders=a;b, Signature=HEX", each once, in any order.
bool SigV4::read_authorization(std::string_view text, std::string_view key_id) {
  if (!text.starts_with(kAlgorithm) || text.size() <= kAlgorithm.size() || text[kAlgorithm.size()] != ' ')
    return false;
  text.remove_prefix(kAlgorithm.size() + 1);
  std::string credential, headers;
  for (const auto& part : split(text, ',')) {
    const std::string field = trimmed(part);
    const size_t equals = std::min(field.find('='), field.size());
    const std::string name = field.substr(0, equals);
    std::string* to = name == "Credential"      ? &credential
                      : name == "SignedHeaders" ? &headers
                      : name == "Signature"     ? &signature_
                                                : nullptr;
    if (!to || !to->empty() || equals + 1 >= field.size()) return false;
    *to = field.substr(equals + 1);
  }
  if (!credential.starts_with(std::string(key_id) + "/")) return false;
  key_id_ = key_id;
  scope_ = credential.substr(key_id.size() + 1);
  signed_headers_ = split(headers, ';');
  return true;
}

bool SigV4::read_query(const http::RequestHead& head, std::string_view key_id) {
  std::string credential, headers, algorithm;
  for (const auto& [name, value] : parameters(head)) {
    std::string* to = name == "X-Amz-Credential"      ? &credential
                      : name == "X-Amz-SignedHeaders" ? &headers
                      : name == "X-Amz-Signature"     ? &signature_
                      : name == "X-Amz-Date"          ? &date_
                      : name == "X-Amz-Algorithm"     ? &algorithm
                                                      : nullptr;
    if (!to) continue;
    if (!to->empty()) return false;
    *to = decoded(value);
  }
  if (algorithm != kAlgorithm || !credential.starts_with(std::string(key_id) + "/")) return false;
  key_id_ = key_id;
  scope_ = credential.substr(key_id.size() + 1);
  signed_headers_ = split(headers, ';');
  return true;
}

std::optional<SigV4> SigV4::find(const http::RequestHead& head, std::string_view key_id) {
  SigV4 out;
  size_t authorizations = 0;
  bool found = false;
  for (const auto& header : head.headers)
    if (same_name(header.name, "Authorization")) {
      ++authorizations;
      found = out.read_authorization(header.value, key_id);
    }
  if (authorizations > 1 || (authorizations == 1 && !found)) return {};
  if (authorizations == 0) {
    out.place_ = Place::kQuery;
    if (!out.read_query(head, key_id)) return {};
  } else {
    out.date_ = header_value(head, "x-amz-date", "").value_or("");
  }
  const auto scope = split(out.scope_, '/');
  if (!is_hex64(out.signature_) || out.date_.size() != 16 || scope.size() != 4 ||
      scope[3] != "aws4_request" || !out.date_.starts_with(scope[0]) ||
      out.signed_headers_.size() > kMostHeaders)
    return {};
  auto& names = out.signed_headers_;
  if (!std::is_sorted(names.begin(), names.end()) ||
      std::find(names.begin(), names.end(), "host") == names.end())
    return {};

  const auto payload = header_value(head, "x-amz-content-sha256", "");
  out.payload_text_ = payload.value_or("");
  if (out.place_ == Place::kQuery) {
    // S3 means "unsigned", others the hash of an empty body.
    out.payload_text_ = payload.value_or("UNSIGNED-PAYLOAD");
    out.payload_guessed_ = !payload;
  } else if (!payload) {
    out.payload_ = Payload::kBody;
  } else if (*payload == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") {
    out.payload_ = Payload::kChunks;
  } else if (*payload == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") {
    out.payload_ = Payload::kChunksAndTrailer;
  } else if (!is_hex64(*payload) && *payload != "UNSIGNED-PAYLOAD" &&
             *payload != "STREAMING-UNSIGNED-PAYLOAD-TRAILER") {
    return {};
  }
  return out;
}

http::RequestHead SigV4::without_key(const http::RequestHead& head, const AwsKey& key) const {
  http::RequestHead out = head;
  const auto is_token = [&](std::string_view name, std::string_view value) {
    return !key.token.empty() && same_name(name, kSessionToken) && value == key.token;
  };
  if (place_ == Place::kHeader) {
    http::remove_headers(out.headers, "Authorization");
    std::erase_if(out.headers, [&](const auto& one) { return is_token(one.name, one.value); });
    return out;
  }
  const size_t mark = out.target.find('?');
  std::string rest = out.target.substr(0, mark);
  for (const auto& [name, value] : parameters(head))
    if (name != "X-Amz-Credential" && !is_token(name, decoded(value))) rest += "&" + name + "=" + value;
  out.target = std::move(rest);
  return out;
}

std::string SigV4::canonical(const http::RequestHead& head, const std::vector<std::string>& names,
                             const std::string& host, PathStyle style, std::string_view body_hash) const {
  const std::string path = head.target.substr(0, head.target.find('?'));
  auto query = parameters(head);
  std::erase_if(query,
                [&](const auto& one) { return place_ == Place::kQuery && one.name == "X-Amz-Signature"; });
  std::sort(query.begin(), query.end(), [](const auto& a, const auto& b) {
    return a.name != b.name ? a.name < b.name : a.value < b.value;
  });
  std::string out = head.method + "\n" + (style == PathStyle::kAsSent ? path : encoded(path, true)) + "\n";
  bool first = true;
  for (const auto& [name, value] : query) {
    out += (first ? "" : "&") + name + "=" + value;
    first = false;
  }
  out += "\n";
  for (const auto& name : names) out += name + ":" + header_value(head, name, host).value_or("") + "\n";
  out += "\n" + joined(names) + "\n";
  return out + (payload_ == Payload::kBody ? std::string(body_hash) : payload_text_);
}

std::string SigV4::signing_key(const AwsKey& key) const {
  const Wiped start("AWS4" + key.secret);
  std::string out = start.text;
  for (const auto& part : split(scope_, '/')) {
    std::string next = hmac(out, part);
    wipe(out);
    out = std::move(next);
  }
  return out;
}

std::string SigV4::signature_of(const AwsKey& key, std::string_view canonical) const {
  const Wiped derived(signing_key(key));
  return hex(
      hmac(derived.text, std::string(kAlgorithm) + "\n" + date_ + "\n" + scope_ + "\n" + sha256(canonical)));
}

// A request names its host with the port that everybody knows, or without.
bool SigV4::verify(const http::RequestHead& head, const AwsKey& key, std::string_view body_hash) {
  for (const auto& name : signed_headers_)
    if (!header_value(head, name, "")) return false;
  std::vector<std::string> payloads{payload_text_};
  if (payload_guessed_ && head.body.kind == http::Body::Kind::kNone) payloads.push_back(sha256(""));
  for (const auto& payload : payloads) {
    payload_text_ = payload;
    for (const auto style : {PathStyle::kAsSent, PathStyle::kEncodedAgain})
      for (const uint16_t port : {default_port(head), uint16_t{0}}) {
        const auto text =
            canonical(head, signed_headers_, http::to_string(head.authority, port), style, body_hash);
        const std::string expected = signature_of(key, text);
        if (::sodium_memcmp(expected.data(), signature_.data(), expected.size()) != 0) continue;
        style_ = style;
        return true;
      }
  }
  return false;
}

std::vector<std::string> SigV4::present(const http::RequestHead& head) const {
  std::vector<std::string> out;
  for (const auto& name : signed_headers_)
    if (header_value(head, name, "")) out.push_back(name);
  return out;
}

void SigV4::sign(http::RequestHead& head, const AwsKey& key, std::string_view body_hash) {
  const std::string host = http::to_string(head.authority, default_port(head));
  key_id_ = key.id;
  if (place_ == Place::kHeader) {
    http::remove_headers(head.headers, "X-Amz-Security-Token");
    if (!key.token.empty()) {
      head.headers.push_back({"X-Amz-Security-Token", key.token});
      signed_headers_.emplace_back("x-amz-security-token");
      std::sort(signed_headers_.begin(), signed_headers_.end());
      signed_headers_.erase(std::unique(signed_headers_.begin(), signed_headers_.end()),
                            signed_headers_.end());
    }
    signed_headers_ = present(head);
    signature_ = signature_of(key, canonical(head, signed_headers_, host, style_, body_hash));
    http::remove_headers(head.headers, "Authorization");
    head.headers.push_back({"Authorization", std::string(kAlgorithm) + " Credential=" + key.id + "/" +
                                                 scope_ + ", SignedHeaders=" + joined(signed_headers_) +
                                                 ", Signature=" + signature_});
    return;
  }
  signed_headers_ = present(head);
  std::string target = head.target.substr(0, head.target.find('?')) + "?";
  for (auto& [name, value] : parameters(head)) {
    if (name == "X-Amz-Signature" || name == "X-Amz-Security-Token") continue;
    if (name == "X-Amz-Credential") value = encoded(key.id + "/" + scope_, false);
    if (name == "X-Amz-SignedHeaders") value = encoded(joined(signed_headers_), false);
    target += name + "=" + value + "&";
  }
  if (!key.token.empty()) target += "X-Amz-Security-Token=" + encoded(key.token, false) + "&";
  target.pop_back();
  head.target = std::move(target);
  signature_ = signature_of(key, canonical(head, signed_headers_, host, style_, body_hash));
  head.target += "&X-Amz-Signature=" + signature_;
}

std::string SigV4::sign_chunk(const AwsKey& key, std::string_view previous, std::string_view data) const {
  const Wiped derived(signing_key(key));
  return hex(hmac(derived.text, std::string(kAlgorithm) + "-PAYLOAD\n" + date_ + "\n" + scope_ + "\n" +
                                    std::string(previous) + "\n" + sha256("") + "\n" + sha256(data)));
}

std::string SigV4::sign_trailer(const AwsKey& key, std::string_view previous,
                                std::string_view trailer) const {
  const Wiped derived(signing_key(key));
  return hex(hmac(derived.text, std::string(kAlgorithm) + "-TRAILER\n" + date_ + "\n" + scope_ + "\n" +
                                    std::string(previous) + "\n" + sha256(trailer)));
}

}  // namespace firestop::credentials
