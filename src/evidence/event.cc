#include "evidence/event.h"

#include <algorithm>

#include "codec/base64.h"
#include "codec/utf8.h"

namespace firestop::evidence {
namespace {

using codec::Json;
using codec::JsonObject;

constexpr size_t kMembers = 7;

Unexpected bad(std::string what) {
  return fail("evidence.bad_event", std::move(what));
}

// "2026-11-29T20:10:11.123456Z"
bool is_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000000Z";
  const auto fits = [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; };
  return text.size() == kShape.size() && std::equal(text.begin(), text.end(), kShape.begin(), fits);
}

bool is_digest(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), hex);
}

// "process.exec": lower-case words with dots between them.
bool is_kind(std::string_view text) {
  const auto word = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), word);
}

// A control character (C0 but for tab and newline, DEL, C1), which a terminal might obey.
bool is_control(char32_t c) {
  return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0);
}

bool is_plain_text(std::string_view bytes) {
  while (!bytes.empty()) {
    char32_t c = 0;
    const size_t size = codec::decode_utf8(bytes, c);
    if (size == 0 || is_control(c)) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

Result<void> check(const Event& event) {
  if (!is_time(event.time)) return bad("its time is not like 2026-11-29T20:10:11.123456Z");
  if (event.mono_us < 0) return bad("its mono_us is below 0");
  if (!is_kind(event.kind)) return bad("its kind is not lower-case words with dots between them");
  if (!is_digest(event.prev)) return bad("its prev is no SHA-256");
  if (!event.data.as_object()) return bad("its data is no object");
  return {};
}

}  // namespace

Result<std::string> to_line(const Event& event) {
  TRY(check(event));
  auto line = codec::write_canonical_json(
      JsonObject{{"data", event.data},
                 {"kind", event.kind},
                 {"mono_us", event.mono_us},
                 {"prev", event.prev},
                 {"seq", event.seq},
                 {"time", event.time},
                 {"vantage", event.vantage == Vantage::kHost ? "host" : "guest"}});
  if (!line) return bad("a " + event.kind + ": " + line.error().message);
  if (line->size() > kMostLine)
    return bad("a " + event.kind + " of " + std::to_string(line->size()) + " bytes, of which " +
               std::to_string(kMostLine) + " are allowed");
  return line;
}

Result<Event> parse_event(std::string_view line) {
  if (line.size() > kMostLine) return bad("longer than " + std::to_string(kMostLine) + " bytes");
  auto json = codec::parse_json(line);
  if (!json) return bad("no JSON: " + json.error().message);
  JsonObject* object = json->as_object();
  if (!object) return bad("no object");
  Event event;
  const auto integer = [&](std::string_view key) {
    const Json* value = json->find(key);
    return value ? value->as_int() : nullptr;
  };
  const int64_t *seq = integer("seq"), *mono_us = integer("mono_us");
  if (!seq || *seq < 0) return bad("its seq is no number from 0 up");
  if (!mono_us) return bad("its mono_us is no number");
  event.seq = static_cast<uint64_t>(*seq);
  event.mono_us = *mono_us;
  event.time = json->string_or("time", "");
  event.kind = json->string_or("kind", "");
  event.prev = json->string_or("prev", "");
  const std::string vantage = json->string_or("vantage", "");
  if (vantage != "host" && vantage != "guest") return bad("its vantage is neither host nor guest");
  event.vantage = vantage == "host" ? Vantage::kHost : Vantage::kGuest;
  if (object->size() != kMembers) return bad("it has not the seven members of an event");
  if (auto data = object->find("data"); data != object->end()) event.data = std::move(data->second);
  // One event, one text: what two readers could take for two things is none.
  TRY_ASSIGN(const std::string canonical, to_line(event));
  if (canonical != line) return bad("no canonical JSON (RFC 8785)");
  return event;
}

Json json_of_bytes(std::string_view bytes) {
  if (is_plain_text(bytes)) return bytes;
  return JsonObject{{"base64", codec::encode_base64(bytes)}};
}

std::string bytes_of(const Json& value) {
  if (const std::string* text = value.as_string()) return *text;
  return codec::decode_base64(value.string_or("base64", "")).value_or("");
}

}  // namespace firestop::evidence
