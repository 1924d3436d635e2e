#include "codec/http1.h"

#include <algorithm>

namespace firestop::codec {
namespace {

Unexpected malformed(const std::string& what) {
  return fail("http.malformed", "malformed HTTP/1 message: " + what);
}

constexpr size_t kMostChunkDigits = 16;
constexpr size_t kUsualFields = 16;  // of a head

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<Http1Reader::Step> Http1Reader::next(std::string_view& bytes) {
  if (state_ == State::kBroken) return malformed("after an error");
  auto result = step(bytes);
  if (!result) state_ = State::kBroken;
  return result;
}

Result<Http1Reader::Step> Http1Reader::step(std::string_view& bytes) {
  while (true) {
    if (state_ == State::kEnd) {
      state_ = State::kStart;
      return Step{Event::kEnd, {}};
    }
    if (state_ == State::kLength || state_ == State::kUntilClose || state_ == State::kChunkData ||
        state_ == State::kTunnel) {
      return take_body(bytes);
    }
    TRY_ASSIGN(const std::optional<std::string_view> line, take_line(bytes));
    if (!line) return Step{Event::kMore, {}};
    TRY_ASSIGN(const std::optional<Event> event, read_line(*line));
    if (event) return Step{*event, {}};
  }
}

Http1Reader::Step Http1Reader::take_body(std::string_view& bytes) {
  if (bytes.empty()) return {Event::kMore, {}};
  if (state_ == State::kUntilClose || state_ == State::kTunnel) {
    return {Event::kData, std::exchange(bytes, {})};
  }
  const size_t size = left_ < bytes.size() ? static_cast<size_t>(left_) : bytes.size();
  const std::string_view data = bytes.substr(0, size);
  bytes.remove_prefix(size);
  left_ -= size;
  if (left_ == 0) state_ = state_ == State::kLength ? State::kEnd : State::kChunkEnd;
  return {Event::kData, data};
}

Result<std::optional<std::string_view>> Http1Reader::take_line(std::string_view& bytes) {
  if (line_done_) {
    line_.clear();
    line_done_ = false;
  }
  const bool chunk = state_ == State::kChunkSize || state_ == State::kChunkEnd;
  const size_t most = chunk ? kMostChunkDigits + kMostChunkExtension + 2
                            : std::min(kMostHttpLine, kMostHttpHead - head_bytes_);
  const size_t newline = bytes.find('\n');
  const bool complete = newline != std::string_view::npos;
  const size_t taken = complete ? newline + 1 : bytes.size();
  if (line_.size() + taken > most) return fail("http.too_large", "a line or a head is too long");
  std::string_view line = bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  if (!complete || !line_.empty()) line_.append(line);
  if (!complete) return std::nullopt;
  if (!line_.empty()) {
    line = line_;
    line_done_ = true;
  }
  if (!chunk) head_bytes_ += line.size();
  line.remove_suffix(1);
  if (!line.ends_with('\r')) return malformed("a line ends without CR");
  line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos) return malformed("a bare CR");
  return line;
}

Result<std::optional<Http1Reader::Event>> Http1Reader::read_line(std::string_view line) {
  switch (state_) {
    case State::kStart:
      trailers_.clear();
      fields_.clear();
      fields_.reserve(kUsualFields);
      extension_bytes_ = 0;
      TRY(read_start_line(line));
      state_ = State::kFields;
      return std::nullopt;
    case State::kFields: {
      if (!line.empty()) {
        TRY(read_field(line, fields_));
        return std::nullopt;
      }
      TRY_ASSIGN(const Event event, end_head());
      return event;
    }
    case State::kTrailers:
      if (!line.empty()) {
        TRY(read_field(line, trailers_));
        if (is_forbidden_trailer(trailers_.back().name))
          return malformed("a trailer that belongs into the head");
        return std::nullopt;
      }
      head_bytes_ = 0;
      state_ = State::kStart;
      return Event::kEnd;
    case State::kChunkSize:
      return read_chunk_size(line);
    case State::kChunkEnd:
      if (!line.empty()) return malformed("a chunk is longer than its size");
      state_ = State::kChunkSize;
      return std::nullopt;
    default:
      return malformed("no line is expected here");
  }
}

Result<void> Http1Reader::read_field(std::string_view line, HttpFields& into) {
  if (into.size() >= kMostHttpFields) return fail("http.too_large", "too many header fields");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return malformed("a header line without a colon");
  const std::string_view name = line.substr(0, colon);
  // Also refuses a folded line and space before the colon.
  if (!is_token(name)) return malformed("a header name that is no token");
  std::string_view value = line.substr(colon + 1);
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!value.empty() && blank(value.front())) value.remove_prefix(1);
  while (!value.empty() && blank(value.back())) value.remove_suffix(1);
  if (!is_field_value(value)) return malformed("a control character in a header value");
  into.push_back({std::string(name), std::string(value)});
  return {};
}

Result<Http1Reader::Event> Http1Reader::end_head() {
  head_bytes_ = 0;
  TRY_ASSIGN(const Http1Framing framing, finish_head(std::move(fields_)));
  fields_.clear();
  left_ = framing.length;
  switch (framing.kind) {
    case Http1Framing::Kind::kNone:
      state_ = tunnel_ ? State::kTunnel : interim_ ? State::kStart : State::kEnd;
      break;
    case Http1Framing::Kind::kLength:
      state_ = left_ == 0 ? State::kEnd : State::kLength;
      break;
    case Http1Framing::Kind::kChunked:
      state_ = State::kChunkSize;
      break;
    case Http1Framing::Kind::kUntilClose:
      state_ = State::kUntilClose;
      break;
  }
  return Event::kHead;
}

Result<std::optional<Http1Reader::Event>> Http1Reader::read_chunk_size(std::string_view line) {
  uint64_t size = 0;
  size_t digits = 0;
  while (digits < line.size() && hex_value(line[digits]) >= 0) {
    if (digits == kMostChunkDigits || size >> 59 != 0) return malformed("a chunk size that is too large");
    size = size << 4 | static_cast<uint64_t>(hex_value(line[digits]));
    ++digits;
  }
  if (digits == 0) return malformed("a chunk size that is no number");
  const std::string_view extension = line.substr(digits);
  if (!extension.empty() && extension[0] != ';') return malformed("something behind a chunk size");
  if (!is_field_value(extension)) return malformed("a control character in a chunk extension");
  extension_bytes_ += extension.size();
  if (extension.size() > kMostChunkExtension || extension_bytes_ > kMostChunkExtensions) {
    return fail("http.too_large", "chunk extensions are too long");
  }
  left_ = size;
  state_ = size == 0 ? State::kTrailers : State::kChunkData;
  return std::nullopt;
}

void Http1Reader::become_tunnel() {
  tunnel_ = true;
  if (state_ == State::kEnd) state_ = State::kTunnel;
}

Result<Http1Reader::Step> Http1Reader::end_of_input() {
  if (state_ == State::kBroken) return malformed("after an error");
  if (state_ == State::kUntilClose || state_ == State::kTunnel || state_ == State::kEnd) {
    state_ = State::kStart;
    return Step{Event::kEnd, {}};
  }
  if (idle()) return Step{Event::kMore, {}};
  state_ = State::kBroken;
  return fail("http.truncated", "the connection ended within an HTTP/1 message");
}

bool is_forbidden_trailer(std::string_view name) {
  static constexpr std::string_view kForbidden[] = {"content-length",
                                                    "transfer-encoding",
                                                    "host",
                                                    "connection",
                                                    "keep-alive",
                                                    "proxy-connection",
                                                    "upgrade",
                                                    "te",
                                                    "trailer",
                                                    "expect",
                                                    "range",
                                                    "authorization",
                                                    "proxy-authorization",
                                                    "cookie",
                                                    "set-cookie",
                                                    "content-encoding",
                                                    "content-type",
                                                    "content-range",
                                                    "cache-control",
                                                    "location"};
  return std::any_of(std::begin(kForbidden), std::end(kForbidden),
                     [&](std::string_view forbidden) { return same_name(forbidden, name); });
}

}  // namespace firestop::codec
