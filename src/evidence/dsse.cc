#include "evidence/dsse.h"

#include "codec/base64.h"
#include "codec/json.h"

namespace firestop::evidence {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

Unexpected bad(std::string what) {
  return fail("evidence.bad_envelope", "no DSSE envelope: " + std::move(what));
}

}  // namespace

std::string dsse_encoding(std::string_view type, std::string_view payload) {
  std::string out = "DSSEv1 " + std::to_string(type.size()) + " ";
  out += type;
  out += " " + std::to_string(payload.size()) + " ";
  out += payload;
  return out;
}

std::string write_envelope(const Envelope& envelope) {
  JsonArray signatures;
  for (const auto& [key_id, bytes] : envelope.signatures)
    signatures.push_back(JsonObject{{"keyid", key_id}, {"sig", codec::encode_base64(bytes)}});
  return codec::write_json(JsonObject{{"payload", codec::encode_base64(envelope.payload)},
                                      {"payloadType", envelope.type},
                                      {"signatures", std::move(signatures)}});
}

std::string sign_envelope(const HostKey& key, std::string_view type, std::string_view payload) {
  return write_envelope({.type = std::string(type),
                         .payload = std::string(payload),
                         .signatures = {{key.public_key().id(), key.sign(dsse_encoding(type, payload))}}});
}

Result<Envelope> parse_envelope(std::string_view json) {
  if (json.size() > kMostEnvelope) return bad("longer than " + std::to_string(kMostEnvelope) + " bytes");
  const auto parsed = codec::parse_json(json);
  if (!parsed) return bad(parsed.error().message);
  Envelope out;
  const auto payload = codec::decode_base64(parsed->string_or("payload", "-"));
  if (!payload) return bad("its payload is no base64");
  out.payload = *payload;
  out.type = parsed->string_or("payloadType", "");
  if (out.type.empty()) return bad("it has no payloadType");
  const Json* signatures = parsed->find("signatures");
  const JsonArray* list = signatures ? signatures->as_array() : nullptr;
  if (!list || list->empty() || list->size() > kMostEnvelopeSignatures)
    return bad("its signatures are not from 1 to " + std::to_string(kMostEnvelopeSignatures));
  for (const Json& one : *list) {
    const auto bytes = codec::decode_base64(one.string_or("sig", "-"));
    if (!bytes) return bad("a sig is no base64");
    out.signatures.push_back({one.string_or("keyid", ""), *bytes});
  }
  return out;
}

const PublicKey* signer_of(const Envelope& envelope, const std::vector<PublicKey>& keys) {
  const std::string signed_bytes = dsse_encoding(envelope.type, envelope.payload);
  for (const auto& signature : envelope.signatures)
    for (const auto& key : keys)
      if (key.verifies(signed_bytes, signature.bytes)) return &key;
  return nullptr;
}

}  // namespace firestop::evidence
