// A variant of message structures as JSON objects with the member "type", from one description of each
// structure.
//
// A description D has two templates: `members(c, m)` names the members of m to a Writer or Reader c, and
// `fault(m)` says what ranges alone do not, or gives nullptr. `types` has the variant's names in the order of
// its alternatives.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "channel/fields.h"
#include "codec/frame.h"
#include "codec/json.h"

namespace firestop::channel {

inline constexpr size_t kMaxType = 256;

inline Unexpected bad_message(std::string_view type, std::string_view what) {
  return fail(
      "channel.bad_message",
      "channel message" + (type.empty() ? "" : " '" + std::string(type) + "'") + ": " + std::string(what));
}

template <typename V, typename D>
Result<std::string> encode_variant(const V& message, const char* const* types, const D& description) {
  const char* type = types[message.index()];
  Writer writer;
  writer.put("type", type);
  const char* wrong = std::visit(
      [&](const auto& m) {
        description.members(writer, m);
        return description.fault(m);
      },
      message);
  if (!writer.fault().empty()) return bad_message(type, writer.fault());
  if (wrong) return bad_message(type, wrong);
  std::string json = codec::write_json(writer.take());
  if (json.size() > codec::kMaxPayload) {
    return fail(
        "channel.too_large",
        "the message '" + std::string(type) + "' to or from the sandbox has " + std::to_string(json.size()) +
            " bytes, more than " + std::to_string(codec::kMaxPayload),
        "make the environment, or the command's arguments, shorter: together they may have some 40 KiB");
  }
  return json;
}

template <typename V, typename D, size_t I = 0>
Result<V> decode_alternative(const codec::Json& json, const std::string& type, const char* const* types,
                             Unknown unknown, const D& description) {
  if constexpr (I == std::variant_size_v<V>) {
    return bad_message("", "unknown type");
  } else {
    if (type != types[I]) return decode_alternative<V, D, I + 1>(json, type, types, unknown, description);
    std::variant_alternative_t<I, V> message;
    Reader reader(json, unknown);
    std::string ignored;
    reader.token("type", ignored, kMaxType);
    description.members(reader, message);
    reader.finish();
    if (!reader.fault().empty()) return bad_message(types[I], reader.fault());
    if (const char* wrong = description.fault(message)) return bad_message(types[I], wrong);
    return V(std::move(message));
  }
}

template <typename V, typename D>
Result<V> decode_variant(std::string_view text, const char* const* types, Unknown unknown,
                         const D& description) {
  if (text.size() > codec::kMaxPayload) return bad_message("", "too long");
  auto json = codec::parse_json(text);
  if (!json) return bad_message("", json.error().message);
  const codec::Json* type = json->find("type");
  if (!type || !type->as_string()) return bad_message("", "no type");
  return decode_alternative<V>(*json, *type->as_string(), types, unknown, description);
}

}  // namespace firestop::channel
