// For tests and fuzzers: what a reader makes of bytes, as text.
#pragma once

#include <string>
#include <string_view>

#include "codec/http1.h"

namespace firestop::codec {

inline std::string framing_text(const Http1Framing& framing) {
  switch (framing.kind) {
    case Http1Framing::Kind::kNone:
      return "none";
    case Http1Framing::Kind::kLength:
      return "length " + std::to_string(framing.length);
    case Http1Framing::Kind::kChunked:
      return "chunked";
    case Http1Framing::Kind::kUntilClose:
      return "until close";
  }
  return "?";
}

inline std::string fields_text(const HttpFields& fields) {
  std::string out;
  for (const HttpField& field : fields) out += " " + field.name + "=" + field.value;
  return out;
}

inline std::string head_text(Http1RequestReader& reader) {
  const Http1Request request = reader.take_request();
  return request.method + " " + request.scheme + " " + request.authority.host + " " +
         std::to_string(request.authority.port) + " " + request.target + " |" + fields_text(request.fields) +
         " | " + framing_text(request.framing) + (request.keep_alive ? " keep" : " close") +
         (request.expects_continue ? " continue" : "") +
         (request.upgrade.empty() ? "" : " " + request.upgrade) + "\n";
}

inline std::string head_text(Http1ResponseReader& reader) {
  const Http1Response response = reader.take_response();
  return std::to_string(response.status) + " |" + fields_text(response.fields) + " | " +
         framing_text(response.framing) + (response.has_body ? " body" : "") +
         (response.keep_alive ? " keep" : " close") + "\n";
}

// Heads, bodies and ends as lines of text; the code of the error at the end, if there is one.
template <typename Reader>
class Http1Transcript {
 public:
  explicit Http1Transcript(Reader& reader) : reader_(reader) {}

  void feed(std::string_view bytes) {
    while (!failed_) {
      const auto step = reader_.next(bytes);
      if (!take(step)) break;
    }
  }
  void end() {
    if (!failed_) take(reader_.end_of_input());
  }
  bool failed() const { return failed_; }
  const std::string& text() const { return text_; }

 private:
  bool take(const Result<Http1Reader::Step>& step) {
    if (!step) {
      failed_ = true;
      close_data();
      text_ += step.error().code + "\n";
      return false;
    }
    if (step->event == Http1Reader::Event::kMore) return false;
    if (step->event == Http1Reader::Event::kData) {
      if (!in_data_) text_ += "'";
      in_data_ = true;
      text_ += step->data;
      return true;
    }
    close_data();
    text_ += step->event == Http1Reader::Event::kHead ? head_text(reader_)
                                                      : "end" + fields_text(reader_.take_trailers()) + "\n";
    return true;
  }
  void close_data() {
    if (in_data_) text_ += "'\n";
    in_data_ = false;
  }

  Reader& reader_;
  std::string text_;
  bool in_data_ = false, failed_ = false;
};

}  // namespace firestop::codec
