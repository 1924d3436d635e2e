#include <algorithm>
#include <array>

#include "codec/http1.h"

namespace firestop::codec {
namespace {

Unexpected unwritable(const std::string& what) {
  return fail("http.unwritable", "no such HTTP/1 message can be written: " + what);
}

// What append_* itself writes, or never does.
bool is_reserved(std::string_view name) {
  static constexpr std::string_view kReserved[] = {
      "host",    "content-length", "transfer-encoding", "connection",
      "upgrade", "keep-alive",     "proxy-connection"};
  return std::any_of(std::begin(kReserved), std::end(kReserved),
                     [&](std::string_view reserved) { return same_name(reserved, name); });
}

Result<void> append_fields(std::string& out, const HttpFields& fields) {
  for (const HttpField& field : fields) {
    if (!is_token(field.name)) return unwritable("a header name that is no token");
    if (!is_field_value(field.value))
      return unwritable("a header value with control characters or outer blanks");
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return {};
}

Result<void> append_head(std::string& out, const HttpFields& fields, const Http1Framing& framing,
                         Http1Connection connection) {
  bool te = false;
  for (const HttpField& field : fields) {
    if (is_reserved(field.name)) return unwritable("\"" + field.name + "\" is not the caller's to say");
    te = te || same_name(field.name, "te");
  }
  TRY(append_fields(out, fields));
  if (framing.kind == Http1Framing::Kind::kLength) {
    out.append("Content-Length: ").append(std::to_string(framing.length)).append("\r\n");
  } else if (framing.kind == Http1Framing::Kind::kChunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
  switch (connection) {
    case Http1Connection::kKeep:
      out.append(te ? "Connection: TE\r\n" : "");
      break;
    case Http1Connection::kClose:
      out.append(te ? "Connection: close, TE\r\n" : "Connection: close\r\n");
      break;
    case Http1Connection::kUpgrade:
      out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n");
      break;
  }
  out.append("\r\n");
  return {};
}

// Runs `write` on the end of `out`, which is as before if it fails.
template <typename Write>
Result<void> all_or_nothing(std::string& out, Write write) {
  const size_t before = out.size();
  auto written = write();
  if (!written) out.resize(before);
  return written;
}

}  // namespace

Result<void> append_http1_request(std::string& out, const Http1RequestLine& line, const HttpFields& fields,
                                  const Http1Framing& framing, Http1Connection connection) {
  const bool connect = line.method == "CONNECT";
  const bool asterisk = line.method == "OPTIONS" && line.target == "*";
  if (!is_method(line.method)) return unwritable("a method that is none");
  if (!connect && !asterisk && !is_origin_form(line.target)) return unwritable("a target that is no path");
  if (!parse_authority(line.host) || (connect && line.target != line.host))
    return unwritable("a Host that is no host");
  if (framing.kind == Http1Framing::Kind::kUntilClose)
    return unwritable("a request until the connection's end");
  return all_or_nothing(out, [&]() -> Result<void> {
    out.append(line.method).append(" ").append(line.target).append(" HTTP/1.1\r\nHost: ");
    out.append(line.host).append("\r\n");
    return append_head(out, fields, framing, connection);
  });
}

Result<void> append_http1_response(std::string& out, int status, const HttpFields& fields,
                                   const Http1Framing& framing, Http1Connection connection) {
  if (status < 100 || status > 599) return unwritable("a status that is none");
  const bool bodiless = status < 200 || status == 204;
  if (bodiless && framing.kind != Http1Framing::Kind::kNone) return unwritable("a body where none can be");
  if ((status == 101) != (connection == Http1Connection::kUpgrade))
    return unwritable("101 is an upgrade and nothing else is");
  return all_or_nothing(out, [&]() -> Result<void> {
    out.append("HTTP/1.1 ")
        .append(std::to_string(status))
        .append(" ")
        .append(http1_reason(status))
        .append("\r\n");
    return append_head(out, fields, framing, connection);
  });
}

void append_http1_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;  // would be the last one
  std::array<char, 16> digits{};
  size_t count = 0;
  for (size_t size = bytes.size(); size > 0; size >>= 4) digits[count++] = "0123456789abcdef"[size & 15];
  out.append(digits.rend() - static_cast<ptrdiff_t>(count), digits.rend());
  out.append("\r\n").append(bytes).append("\r\n");
}

Result<void> append_http1_last_chunk(std::string& out, const HttpFields& trailers) {
  for (const HttpField& field : trailers) {
    if (is_forbidden_trailer(field.name)) return unwritable("\"" + field.name + "\" as a trailer");
  }
  return all_or_nothing(out, [&]() -> Result<void> {
    out.append("0\r\n");
    TRY(append_fields(out, trailers));
    out.append("\r\n");
    return {};
  });
}

std::string_view http1_reason(int status) {
  struct Known {
    int status;
    std::string_view reason;
  };
  static constexpr Known kKnown[] = {{100, "Continue"},
                                     {101, "Switching Protocols"},
                                     {103, "Early Hints"},
                                     {200, "OK"},
                                     {201, "Created"},
                                     {202, "Accepted"},
                                     {204, "No Content"},
                                     {206, "Partial Content"},
                                     {301, "Moved Permanently"},
                                     {302, "Found"},
                                     {303, "See Other"},
                                     {304, "Not Modified"},
                                     {307, "Temporary Redirect"},
                                     {308, "Permanent Redirect"},
                                     {400, "Bad Request"},
                                     {401, "Unauthorized"},
                                     {403, "Forbidden"},
                                     {404, "Not Found"},
                                     {405, "Method Not Allowed"},
                                     {406, "Not Acceptable"},
                                     {407, "Proxy Authentication Required"},
                                     {408, "Request Timeout"},
                                     {409, "Conflict"},
                                     {410, "Gone"},
                                     {411, "Length Required"},
                                     {412, "Precondition Failed"},
                                     {413, "Content Too Large"},
                                     {414, "URI Too Long"},
                                     {415, "Unsupported Media Type"},
                                     {416, "Range Not Satisfiable"},
                                     {417, "Expectation Failed"},
                                     {421, "Misdirected Request"},
                                     {422, "Unprocessable Content"},
                                     {426, "Upgrade Required"},
                                     {429, "Too Many Requests"},
                                     {431, "Request Header Fields Too Large"},
                                     {500, "Internal Server Error"},
                                     {501, "Not Implemented"},
                                     {502, "Bad Gateway"},
                                     {503, "Service Unavailable"},
                                     {504, "Gateway Timeout"},
                                     {505, "HTTP Version Not Supported"}};
  for (const Known& known : kKnown) {
    if (known.status == status) return known.reason;
  }
  return "";
}

}  // namespace firestop::codec
