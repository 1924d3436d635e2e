// What a head says, once its lines are read: framing, connection, authority.
#include <algorithm>

#include "codec/http1.h"

namespace firestop::codec {
namespace {

Unexpected malformed(const std::string& what) {
  return fail("http.malformed", "malformed HTTP/1 message: " + what);
}

// The fields that say how this message is read, taken out of the others. Each may stand once.
struct Control {
  std::optional<uint64_t> length;
  bool chunked = false;
  std::optional<HttpAuthority> host;
  std::vector<std::string> connection;  // its tokens
  std::string upgrade;
  bool expects_continue = false;
  bool te_trailers = false;
};

bool has_token(const std::vector<std::string>& tokens, std::string_view token) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const std::string& t) { return same_name(t, token); });
}

Result<void> read_connection(const HttpField& field, Control& control) {
  const auto tokens = parse_token_list(field.value);
  if (!tokens) return malformed("Connection is no list of tokens");
  for (std::string_view token : *tokens) {
    for (std::string_view kept : {"host", "content-length", "transfer-encoding", "authorization", "cookie"}) {
      if (same_name(token, kept)) return malformed("Connection names a header that is not its own");
    }
    control.connection.emplace_back(token);
  }
  return {};
}

Result<void> read_te(const HttpField& field, Control& control) {
  const auto tokens = parse_token_list(field.value);
  // Other codings, with weights, are wishes that nobody must grant.
  control.te_trailers =
      control.te_trailers || (tokens && std::any_of(tokens->begin(), tokens->end(),
                                                    [](auto t) { return same_name(t, "trailers"); }));
  return {};
}

// True: the field was taken.
Result<bool> read_control(const HttpField& field, Control& control) {
  if (is_disguised(field.name)) return malformed("a framing header written with an underscore");
  if (same_name(field.name, "content-length")) {
    if (control.length) return malformed("more than one Content-Length");
    control.length = parse_content_length(field.value);
    if (!control.length) return malformed("a Content-Length that is no plain number");
  } else if (same_name(field.name, "transfer-encoding")) {
    if (control.chunked || !same_name(field.value, "chunked")) {
      return malformed("a Transfer-Encoding other than \"chunked\"");
    }
    control.chunked = true;
  } else if (same_name(field.name, "host")) {
    if (control.host) return malformed("more than one Host");
    control.host = parse_authority(field.value);
    if (!control.host) return malformed("a Host that is no host");
  } else if (same_name(field.name, "connection")) {
    TRY(read_connection(field, control));
  } else if (same_name(field.name, "upgrade")) {
    control.upgrade += control.upgrade.empty() ? field.value : ", " + field.value;
  } else if (same_name(field.name, "te")) {
    TRY(read_te(field, control));
  } else if (same_name(field.name, "expect")) {
    if (!same_name(field.value, "100-continue"))
      return fail("http.expectation", "an Expect that is not known");
    control.expects_continue = true;
  } else {
    return same_name(field.name, "keep-alive") || same_name(field.name, "proxy-connection");
  }
  return true;
}

// The end-to-end fields of `fields`; what is left out stands in `control`.
Result<HttpFields> separate(HttpFields fields, Control& control) {
  HttpFields out;
  out.reserve(fields.size());
  for (HttpField& field : fields) {
    TRY_ASSIGN(const bool taken, read_control(field, control));
    if (!taken) out.push_back(std::move(field));
  }
  if (control.te_trailers) out.push_back({"TE", "trailers"});
  for (const std::string& token : control.connection) {
    if (same_name(token, "te")) continue;
    std::erase_if(out, [&](const HttpField& field) { return same_name(field.name, token); });
  }
  if (control.length && control.chunked) return malformed("both Content-Length and Transfer-Encoding");
  return out;
}

bool asks_for_websocket(const Control& control) {
  return same_name(control.upgrade, "websocket") && has_token(control.connection, "upgrade");
}

bool keeps_alive(const Control& control, bool version_1_0) {
  if (has_token(control.connection, "close")) return false;
  return !version_1_0 || has_token(control.connection, "keep-alive");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "HTTP/1.0" or "HTTP/1.1"; true for 1.0.
Result<bool> read_version(std::string_view text) {
  if (text == "HTTP/1.1") return false;
  if (text == "HTTP/1.0") return true;
  if (text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
      is_digit(text[7])) {
    return fail("http.version", "a version other than HTTP/1.0 and 1.1");
  }
  return malformed("no HTTP version where one belongs");
}

Result<void> read_absolute_form(std::string_view target, Http1Request& request) {
  const size_t colon = target.find("://");
  if (colon == std::string_view::npos) return malformed("a target that is no path and no URL");
  const std::string_view scheme = target.substr(0, colon);
  if (!same_name(scheme, "http") && !same_name(scheme, "https"))
    return malformed("a URL that is neither http nor https");
  request.scheme = scheme.size() == 4 ? "http" : "https";
  const std::string_view rest = target.substr(colon + 3);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  const auto authority = parse_authority(rest.substr(0, end));
  if (!authority) return malformed("a URL whose host is no host");
  request.authority = *authority;
  request.target = rest.substr(end);
  if (request.target.empty()) request.target = request.method == "OPTIONS" ? "*" : "/";
  if (request.target.starts_with('?')) request.target.insert(0, "/");
  if (request.target != "*" && !is_origin_form(request.target))
    return malformed("a URL with bytes that none has");
  return {};
}

Result<void> read_target(std::string_view target, Http1Request& request) {
  if (request.method == "CONNECT") {
    const auto authority = parse_authority(target);
    if (!authority || authority->port == 0) return malformed("a CONNECT without host and port");
    request.authority = *authority;
    return {};
  }
  if (target == "*") {
    if (request.method != "OPTIONS") return malformed("\"*\" as target of another method than OPTIONS");
  } else if (!target.starts_with('/')) {
    return read_absolute_form(target, request);
  } else if (!is_origin_form(target)) {
    return malformed("a target with bytes that none has");
  }
  request.target = target;
  return {};
}

uint16_t port_or(const HttpAuthority& authority, std::string_view scheme) {
  if (authority.port != 0) return authority.port;
  return scheme == "https" ? 443 : 80;
}

// Host against what the request line named.
Result<void> join_authority(const HttpAuthority& host, Http1Request& request) {
  if (request.authority.host.empty()) {
    request.authority = host;
    return {};
  }
  const bool connect = request.method == "CONNECT";
  // CONNECT's Host may leave the port out; some clients do.
  const bool same_port = connect
                             ? host.port == 0 || host.port == request.authority.port
                             : port_or(host, request.scheme) == port_or(request.authority, request.scheme);
  if (host.host != request.authority.host || !same_port)
    return malformed("Host and request line name two hosts");
  return {};
}

}  // namespace

Result<void> Http1RequestReader::read_start_line(std::string_view line) {
  request_ = {};
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return malformed("a request line that has not three parts");
  if (!is_method(line.substr(0, first))) return malformed("a method that is none");
  request_.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.empty() || target.find(' ') != std::string_view::npos)
    return malformed("a space in the request line");
  TRY_ASSIGN(request_.version_1_0, read_version(line.substr(last + 1)));
  return read_target(target, request_);
}

Result<Http1Framing> Http1RequestReader::finish_head(HttpFields fields) {
  Control control;
  TRY_ASSIGN(request_.fields, separate(std::move(fields), control));
  if (!control.host) return malformed("no Host");
  TRY(join_authority(*control.host, request_));
  if (control.chunked && request_.version_1_0) return malformed("Transfer-Encoding in HTTP/1.0");
  Http1Framing framing;
  if (control.length) framing = {Http1Framing::Kind::kLength, *control.length};
  if (control.chunked) framing.kind = Http1Framing::Kind::kChunked;
  const bool has_framing = control.length || control.chunked;
  if (request_.method == "CONNECT" && has_framing) return malformed("a CONNECT with a body");
  const bool has_body = control.chunked || framing.length > 0;
  request_.framing = framing;
  request_.keep_alive = keeps_alive(control, request_.version_1_0);
  request_.expects_continue = control.expects_continue && !request_.version_1_0 && has_body;
  if (asks_for_websocket(control) && request_.method == "GET" && !request_.version_1_0 && !has_body) {
    request_.upgrade = "websocket";
  }
  return framing;
}

void Http1ResponseReader::expect(std::string_view method, bool upgrade) {
  expected_ = method == "HEAD" ? Expected::kNoBody : Expected::kBody;
  upgrade_ = upgrade;
}

Result<void> Http1ResponseReader::read_start_line(std::string_view line) {
  response_ = {};
  if (expected_ == Expected::kNothing) return malformed("an answer to nothing");
  TRY_ASSIGN(version_1_0_, read_version(line.substr(0, 8)));
  if (line.size() < 12 || line[8] != ' ' || !is_digit(line[9]) || !is_digit(line[10]) ||
      !is_digit(line[11])) {
    return malformed("a status line without a status");
  }
  response_.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (response_.status < 100 || response_.status > 599) return malformed("a status that is none");
  // Without a reason the space before it is often left out.
  if (line.size() > 12 && line[12] != ' ') return malformed("a status line without a space");
  const std::string_view reason = line.substr(std::min<size_t>(line.size(), 13));
  if (std::any_of(reason.begin(), reason.end(),
                  [](char c) { return static_cast<uint8_t>(c) < 0x20 && c != '\t'; })) {
    return malformed("a control character in the status line");
  }
  return {};
}

Result<Http1Framing> Http1ResponseReader::finish_head(HttpFields fields) {
  Control control;
  // Mean nothing in an answer.
  std::erase_if(fields, [](const HttpField& field) {
    return same_name(field.name, "host") || same_name(field.name, "expect") || same_name(field.name, "te");
  });
  TRY_ASSIGN(response_.fields, separate(std::move(fields), control));
  if (control.chunked && version_1_0_) return malformed("Transfer-Encoding in HTTP/1.0");
  const int status = response_.status;
  const bool interim = status < 200;
  if (interim && version_1_0_) return malformed("an interim answer in HTTP/1.0");
  if (status == 101 && (!upgrade_ || !asks_for_websocket(control)))
    return malformed("a 101 that was not asked for");
  if ((interim || status == 204) && (control.chunked || control.length.value_or(0) != 0)) {
    return malformed("a body where none can be");
  }
  Http1Framing framing{Http1Framing::Kind::kUntilClose, 0};
  if (control.length) framing = {Http1Framing::Kind::kLength, *control.length};
  if (control.chunked) framing = {Http1Framing::Kind::kChunked, 0};
  response_.has_body = !interim && status != 204 && status != 304 && expected_ == Expected::kBody;
  if (interim || status == 204 || (!response_.has_body && framing.kind == Http1Framing::Kind::kUntilClose))
    framing = {};
  response_.framing = framing;
  response_.keep_alive =
      keeps_alive(control, version_1_0_) && framing.kind != Http1Framing::Kind::kUntilClose;
  if (!interim) expected_ = Expected::kNothing;
  if (status == 101) become_tunnel();
  set_interim(interim);
  return response_.has_body ? framing : Http1Framing{};
}

}  // namespace firestop::codec
