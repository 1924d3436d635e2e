#include "egress/crossing_json.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "codec/utf8.h"

namespace firestop::egress {
namespace {

using codec::Json;
using codec::JsonObject;
using Kind = Crossing::Kind;

constexpr Kind kKinds[] = {Kind::kName, Kind::kConnection, Kind::kRequest, Kind::kDatagram, Kind::kAlarm};

struct Text {
  const char* name;
  std::string Crossing::* field;
};
constexpr Text kTexts[] = {
    {"verdict", &Crossing::verdict}, {"code", &Crossing::code},    {"rule", &Crossing::rule},
    {"scheme", &Crossing::scheme},   {"host", &Crossing::host},    {"address", &Crossing::address},
    {"method", &Crossing::method},   {"path", &Crossing::path},    {"credential", &Crossing::credential},
    {"in_body", &Crossing::in_body}, {"detail", &Crossing::detail}};

// Writes an object's members, in order.
class MemberWriter {
 public:
  explicit MemberWriter(std::string& out) : out_(out) {}

  void text(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    member(name);
    if (codec::is_plain(value))
      codec::append_json_string(out_, value.substr(0, kMostDetail));
    else
      codec::append_json_string(out_, codec::printable(value, kMostDetail));
  }
  template <typename Number>
  void number(std::string_view name, Number value) {
    if (value == 0) return;
    member(name);
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void end() { out_ += '}'; }

 private:
  void member(std::string_view name) {
    out_ += std::exchange(before_, ',');
    out_.append("\"").append(name).append("\":");
  }
  std::string& out_;
  char before_ = '{';
};

constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();

Unexpected bad(const char* what) {
  return fail("egress.bad_crossing", std::string("a crossing with a bad ") + what);
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kName:
      return "name";
    case Kind::kConnection:
      return "connection";
    case Kind::kRequest:
      return "request";
    case Kind::kDatagram:
      return "datagram";
    case Kind::kAlarm:
      return "alarm";
  }
  return "?";
}

Json to_json(const Crossing& crossing) {
  JsonObject out{{"kind", to_string(crossing.kind)}};
  for (const auto& [name, field] : kTexts)
    if (const std::string& text = crossing.*field; !text.empty())
      out[name] = codec::printable(text, kMostDetail);
  const auto number = [&out](const char* name, int64_t value) {
    if (value != 0) out[name] = value;
  };
  number("port", crossing.port);
  number("status", crossing.status);
  number("bytes_out", static_cast<int64_t>(std::min(crossing.bytes_out, kMostBytes)));
  number("bytes_in", static_cast<int64_t>(std::min(crossing.bytes_in, kMostBytes)));
  number("started_us", crossing.started_us);
  number("took_us", crossing.took_us);
  number("source_port", crossing.source_port);
  return out;
}

void append_told(std::string& out, const Crossing& crossing) {
  MemberWriter members(out);
  members.text("address", crossing.address);
  members.number("bytes_in", std::min(crossing.bytes_in, kMostBytes));
  members.number("bytes_out", std::min(crossing.bytes_out, kMostBytes));
  members.text("code", crossing.code);
  members.text("credential", crossing.credential);
  members.text("detail", crossing.detail);
  members.text("host", crossing.host);
  members.text("in_body", crossing.in_body);
  members.text("kind", to_string(crossing.kind));
  members.text("method", crossing.method);
  members.text("path", crossing.path);
  members.number("port", crossing.port);
  members.text("rule", crossing.rule);
  members.text("scheme", crossing.scheme);
  members.number("source_port", crossing.source_port);
  members.number("started_us", crossing.started_us);
  members.number("status", crossing.status);
  members.number("took_us", crossing.took_us);
  members.text("type", "crossing");
  members.text("verdict", crossing.verdict);
  members.end();
}

Result<Crossing> crossing_of(const Json& json) {
  if (!json.as_object()) return bad("form");
  Crossing out;
  const std::string kind = json.string_or("kind", "");
  bool known = false;
  for (const Kind each : kKinds)
    if (kind == to_string(each)) out.kind = each, known = true;
  if (!known) return bad("kind");
  for (const auto& [name, field] : kTexts)
    out.*field = codec::printable(json.string_or(name, ""), kMostDetail);
  if (out.verdict != "allowed" && out.verdict != "denied" && out.verdict != "failed") return bad("verdict");
  const auto number = [&json](const char* name, int64_t most) {
    return std::clamp<int64_t>(json.int_or(name, 0), 0, most);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  out.port = static_cast<uint16_t>(number("port", UINT16_MAX));
  out.status = static_cast<int>(number("status", 999));
  out.bytes_out = static_cast<uint64_t>(number("bytes_out", kMost));
  out.bytes_in = static_cast<uint64_t>(number("bytes_in", kMost));
  out.started_us = number("started_us", kMost);
  out.took_us = number("took_us", kMost);
  out.source_port = static_cast<uint16_t>(number("source_port", UINT16_MAX));
  return out;
}

}  // namespace firestop::egress
