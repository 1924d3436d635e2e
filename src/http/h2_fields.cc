#include "http/h2_fields.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace firestop::http {
namespace {

// RFC 9113 section 8.2.2. `te` is handled apart.
constexpr std::array<std::string_view, 5> kOfConnections = {"connection", "keep-alive", "proxy-connection",
                                                            "transfer-encoding", "upgrade"};
// They frame or route a message, so they mean nothing behind it.
constexpr std::array<std::string_view, 10> kNotInTrailers = {
    "connection", "keep-alive", "proxy-connection", "transfer-encoding",
    "upgrade",    "te",         "content-length",   "host",
    "trailer",    "expect"};

constexpr size_t kOverhead = 32;  // RFC 7541 section 4.1

bool is_one_of(std::string_view name, const auto& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view other) { return same_name(name, other); });
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::optional<uint64_t> read_length(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_target(std::string_view target, std::string_view method) {
  return target == "*" ? method == "OPTIONS" : codec::is_origin_form(target);
}

// What both kinds of message have in common: fields that frame it become `body`, crumbs of cookies one field.
class Reader {
 public:
  Reader(const H2FieldList& list, std::string_view code) : list_(list), code_(code) {}

  Result<void> read(Headers& headers, Body& body, bool ended) {
    std::optional<uint64_t> length;
    for (const auto& field : list_.fields()) {
      if (field.name.starts_with(':')) continue;
      if (codec::is_disguised(field.name)) return fail(code_, "a framing header written with an underscore");
      if (is_one_of(field.name, kOfConnections))
        return fail(code_, "HTTP/2 with the connection's header '" + field.name + "'");
      if (field.name == "content-length") {
        const auto value = codec::parse_content_length(field.value);
        if (!value || length) return fail(code_, "content-length is no number, or there are two");
        length = value;
      } else if (field.name == "cookie") {
        add_crumb(headers, field.value);
      } else if (field.name == "te" && field.value != "trailers") {
        return fail(code_, "HTTP/2 with te other than 'trailers'");
      } else {
        headers.push_back(field);
      }
    }
    if (length)
      body = {Body::Kind::kLength, *length};
    else
      body.kind = ended ? Body::Kind::kNone : Body::Kind::kUnknown;
    return {};
  }

  const std::string* pseudo(std::string_view name) const {
    const Header* header = find_header(list_.fields(), name);
    return header ? &header->value : nullptr;
  }

 private:
  // RFC 9113 section 8.2.3
  static void add_crumb(Headers& headers, const std::string& value) {
    for (auto& header : headers)
      if (header.name == "cookie") {
        header.value += "; " + value;
        return;
      }
    headers.push_back({"cookie", value});
  }

  const H2FieldList& list_;
  std::string_view code_;
};

Result<Authority> authority_of(const Reader& reader, Headers& headers, std::string_view scheme) {
  const std::string* said = reader.pseudo(":authority");
  const Header* host = find_header(headers, "host");
  if (!said && !host) return fail("http.bad_request", "neither :authority nor host");
  if (host) {
    const auto hosts =
        std::count_if(headers.begin(), headers.end(), [](const Header& h) { return h.name == "host"; });
    if (hosts > 1) return fail("http.bad_request", "more than one host");
  }
  const uint16_t port = scheme == "https" ? 443 : 80;
  const auto authority = parse_authority(said ? *said : host->value, port);
  if (!authority) return fail("http.bad_request", ":authority is no host");
  if (said && host && parse_authority(host->value, port) != authority)
    return fail("http.bad_request", ":authority and host name two hosts");
  remove_headers(headers, "host");
  return *authority;
}

void append(Headers& out, const Headers& headers, const auto& without) {
  for (const auto& header : headers)
    if (!is_one_of(header.name, without)) out.push_back({lower_case(header.name), header.value});
}

}  // namespace

bool H2FieldList::add(std::string_view name, std::string_view value) {
  const size_t size = name.size() + value.size() + kOverhead;
  if (fields_.size() >= kMostFields || size > kMostBytes - bytes_) return false;
  fields_.push_back({std::string(name), std::string(value)});
  bytes_ += size;
  return true;
}

void H2FieldList::clear() {
  fields_.clear();
  bytes_ = 0;
}

Result<RequestHead> request_from_h2(const H2FieldList& list, bool ended) {
  const Reader reader(list, "http.bad_request");
  RequestHead head;
  const std::string* method = reader.pseudo(":method");
  const std::string* scheme = reader.pseudo(":scheme");
  const std::string* path = reader.pseudo(":path");
  if (!method || *method == "CONNECT") return fail("http.bad_request", "CONNECT is not offered over HTTP/2");
  if (!codec::is_method(*method)) return fail("http.bad_request", ":method is no method");
  if (!scheme || (*scheme != "https" && *scheme != "http"))
    return fail("http.bad_request", ":scheme is neither https nor http");
  if (!path || !is_target(*path, *method)) return fail("http.bad_request", ":path is no path");
  head.method = *method;
  head.scheme = *scheme;
  head.target = *path;
  TRY(Reader(list, "http.bad_request").read(head.headers, head.body, ended));
  TRY_ASSIGN(head.authority, authority_of(reader, head.headers, head.scheme));
  if (const Header* expect = find_header(head.headers, "expect")) {
    if (!same_name(expect->value, "100-continue"))
      return fail("http.bad_request", "expect is not 100-continue");
    head.expects_continue = true;
    remove_headers(head.headers, "expect");
  }
  return head;
}

Result<ResponseHead> response_from_h2(const H2FieldList& list, bool ended) {
  const Reader reader(list, "http.bad_response");
  ResponseHead head;
  const std::string* status = reader.pseudo(":status");
  const auto number = status && status->size() == 3 ? read_length(*status) : std::nullopt;
  if (!number || *number < 100 || *number > 599) return fail("http.bad_response", ":status is no status");
  if (*number == 101) return fail("http.bad_response", "101 over HTTP/2");
  head.status = static_cast<int>(*number);
  TRY(Reader(list, "http.bad_response").read(head.headers, head.body, ended));
  return head;
}

Headers trailers_from_h2(const H2FieldList& list) {
  Headers out;
  for (const auto& field : list.fields())
    if (!field.name.starts_with(':') && !is_one_of(field.name, kNotInTrailers)) out.push_back(field);
  return out;
}

Headers to_h2(const RequestHead& head) {
  const uint16_t port = head.scheme == "https" ? 443 : 80;
  Headers out{{":method", head.method},
              {":scheme", head.scheme},
              {":authority", to_string(head.authority, port)},
              {":path", head.target}};
  append(out, head.headers, kOfConnections);
  if (head.expects_continue) out.push_back({"expect", "100-continue"});
  if (head.body.kind == Body::Kind::kLength)
    out.push_back({"content-length", std::to_string(head.body.length)});
  return out;
}

Headers to_h2(const ResponseHead& head) {
  Headers out{{":status", std::to_string(head.status)}};
  append(out, head.headers, kOfConnections);
  if (head.body.kind == Body::Kind::kLength)
    out.push_back({"content-length", std::to_string(head.body.length)});
  return out;
}

Headers trailers_to_h2(const Headers& trailers) {
  Headers out;
  append(out, trailers, kNotInTrailers);
  return out;
}

}  // namespace firestop::http
