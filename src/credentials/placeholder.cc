#include "credentials/placeholder.h"

#include <algorithm>
#include <string_view>

#include "base/digest.h"

namespace firestop::credentials {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kKeyIdLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr size_t kUsual = 40;          // characters, where the manifest does not say
constexpr size_t kLeastRandom = 22;    // of 62 letters: 130 bits
constexpr size_t kSessionToken = 120;  // characters; AWS's have some hundreds
constexpr size_t kMostPlaceholders = 300;

// Without bias: bytes beyond the last whole multiple of the alphabet are thrown away.
std::string random_text(std::string_view alphabet, size_t length) {
  std::string out;
  const size_t limit = 256 - 256 % alphabet.size();
  while (out.size() < length)
    for (const char c : random_bytes(length)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < limit && out.size() < length) out += alphabet[byte % alphabet.size()];
    }
  return out;
}

}  // namespace

std::vector<Placeholder> make_placeholders(const std::vector<manifest::Credential>& credentials) {
  std::vector<Placeholder> out;
  for (const auto& credential : credentials) {
    const size_t prefix = credential.prefix.size();
    const size_t usual =
        std::max<size_t>(credential.length == 0 ? kUsual : credential.length, prefix + kLeastRandom);
    out.push_back({credential.name, credential.env, credential.prefix,
                   credential.prefix + random_text(kLetters, usual - prefix)});
    // As AWS makes them; tools check the shape. Ids of temporary keys begin with ASIA.
    const std::string kind = credential.session_token.empty() ? "AKIA" : "ASIA";
    if (!credential.key_id.empty())
      out.push_back({credential.name, credential.key_id, kind, kind + random_text(kKeyIdLetters, 16)});
    if (!credential.session_token.empty())
      out.push_back({credential.name, credential.session_token, "", random_text(kLetters, kSessionToken)});
  }
  return out;
}

Json to_json(const std::vector<Placeholder>& placeholders) {
  JsonArray out;
  for (const auto& one : placeholders)
    out.push_back(JsonObject{{"credential", one.credential},
                             {"variable", one.variable},
                             {"prefix", one.prefix},
                             {"text", one.text}});
  return out;
}

Result<std::vector<Placeholder>> parse_placeholders(const Json& json) {
  const auto* list = json.as_array();
  if (!list || list->size() > kMostPlaceholders) return fail("credential.bad", "placeholders are no list");
  std::vector<Placeholder> out;
  for (const auto& item : *list) {
    Placeholder one{item.string_or("credential", ""), item.string_or("variable", ""),
                    item.string_or("prefix", ""), item.string_or("text", "")};
    if (one.credential.empty() || one.text.size() < 16 || one.text.size() > 4096 ||
        !one.text.starts_with(one.prefix))
      return fail("credential.bad", "a placeholder has no credential or text");
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace firestop::credentials
