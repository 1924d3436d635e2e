#include "codec/pkt_line.h"

#include <cstdlib>

namespace firestop::codec {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// The value of a hexadecimal digit of either case, or nothing.
std::optional<size_t> digit(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const size_t value = kDigits.find(c);
  return value == std::string_view::npos ? std::nullopt : std::optional(value);
}

std::optional<size_t> read_length(std::string_view header) {
  size_t length = 0;
  for (const char c : header) {
    const auto value = digit(c);
    if (!value) return std::nullopt;
    length = length << 4 | *value;
  }
  return length;
}

void append_length(std::string& out, size_t length) {
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(kDigits[length >> shift & 0xf]);
}

}  // namespace

std::string_view PktLine::text() const {
  return payload.ends_with('\n') ? payload.substr(0, payload.size() - 1) : payload;
}

void PktLineReader::feed(std::string_view bytes) {
  if (broken_) return;
  if (read_ > 0) {
    buffer_.erase(0, read_);
    read_ = 0;
  }
  buffer_.append(bytes);
}

Result<std::optional<PktLine>> PktLineReader::next() {
  const auto refuse = [&](const std::string& why) {
    broken_ = true;
    buffer_.clear();
    read_ = 0;
    return fail("pkt_line.bad", "malformed pkt-line: " + why);
  };
  if (broken_) return fail("pkt_line.bad", "the pkt-line before was malformed");
  const std::string_view rest = this->rest();
  if (rest.size() < kPktHeader) return std::nullopt;
  const auto length = read_length(rest.substr(0, kPktHeader));
  if (!length) return refuse("its length is not four hexadecimal digits");
  if (*length < kPktHeader) {
    if (*length > 2) return refuse("0003 means nothing");
    read_ += kPktHeader;
    constexpr PktLine::Kind kMarks[] = {PktLine::Kind::kFlush, PktLine::Kind::kDelimiter,
                                        PktLine::Kind::kResponseEnd};
    return PktLine{kMarks[*length], {}};
  }
  if (*length > kPktHeader + kMostPktPayload)
    return refuse("its length is " + std::to_string(*length) + ", more than 65520");
  if (rest.size() < *length) return std::nullopt;
  read_ += *length;
  return PktLine{PktLine::Kind::kData, rest.substr(kPktHeader, *length - kPktHeader)};
}

std::string_view PktLineReader::rest() const {
  return std::string_view(buffer_).substr(read_);
}

void append_pkt_line(std::string& out, std::string_view payload) {
  if (payload.size() > kMostPktPayload) std::abort();
  append_length(out, payload.size() + kPktHeader);
  out.append(payload);
}

void append_pkt_mark(std::string& out, PktLine::Kind mark) {
  switch (mark) {
    case PktLine::Kind::kData:
      std::abort();
    case PktLine::Kind::kFlush:
      return append_length(out, 0);
    case PktLine::Kind::kDelimiter:
      return append_length(out, 1);
    case PktLine::Kind::kResponseEnd:
      return append_length(out, 2);
  }
}

}  // namespace firestop::codec
