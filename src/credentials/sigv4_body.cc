#include "credentials/sigv4_body.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/digest.h"

namespace firestop::credentials {
namespace {

using http::Denial;

constexpr size_t kMostLine = 1024;     // "SIZE;chunk-signature=HEX", a line of the trailer
constexpr size_t kMostTrailer = 8192;  // bytes of a trailer
constexpr std::string_view kSignature = ";chunk-signature=", kTrailerSignature = "x-amz-trailer-signature:";

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

class Chunks : public http::Filter {
 public:
  Chunks(const SigV4& theirs, const AwsKey& placeholder, const SigV4& ours, const AwsKey& real,
         BadSignature bad)
      : sigv4_(theirs),
        placeholder_(placeholder),
        real_(real),
        their_last_(theirs.signature()),
        our_last_(ours.signature()),
        bad_(std::move(bad)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    while (!bytes.empty()) {
      if (state_ == State::kData) {
        const size_t count = std::min(bytes.size(), left_);
        data_.append(bytes.substr(0, count));
        bytes.remove_prefix(count);
        left_ -= count;
        if (left_ == 0) state_ = State::kDataEnd;
        continue;
      }
      if (state_ == State::kEnd) return bad_("something follows its last chunk");
      line_ += bytes.front();
      bytes.remove_prefix(1);
      if (line_.size() > kMostLine) return bad_("a line of it is too long");
      if (!line_.ends_with('\n')) continue;
      if (!line_.ends_with("\r\n")) return bad_("a line of it ends without CR");
      const std::string line = line_.substr(0, line_.size() - 2);
      line_.clear();
      if (auto denial = take_line(line, out)) return denial;
    }
    return {};
  }

  std::optional<Denial> finish(std::string&) override {
    if (state_ != State::kEnd) return bad_("it ends too early");
    return {};
  }
  size_t held() const override { return data_.capacity(); }

 private:
  enum class State { kHead, kData, kDataEnd, kTrailer, kEnd };

  std::optional<Denial> take_line(const std::string& line, std::string& out) {
    switch (state_) {
      case State::kHead:
        return take_head(line, out);
      case State::kDataEnd:
        if (!line.empty()) return bad_("a chunk is longer than it says");
        return end_chunk(out);
      case State::kTrailer:
        return take_trailer(line, out);
      case State::kData:
      case State::kEnd:
        break;
    }
    return bad_("it is malformed");
  }

  std::optional<Denial> take_head(const std::string& line, std::string& out) {
    const size_t semicolon = line.find(';');
    if (semicolon == std::string::npos || semicolon == 0 || semicolon > 8 ||
        line.substr(semicolon, kSignature.size()) != kSignature)
      return bad_("a chunk has no signature");
    size_t size = 0;
    for (const char c : line.substr(0, semicolon)) {
      const size_t digit =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) return bad_("a chunk has no size");
      size = size * 16 + digit;
    }
    if (size > kMostSignedChunk) return bad_("a chunk has more than 8 MiB");
    size_text_ = line.substr(0, semicolon);
    signature_ = line.substr(semicolon + kSignature.size());
    data_.clear();
    left_ = size;
    if (size > 0) {
      state_ = State::kData;
      return {};
    }
    return end_chunk(out);
  }

  std::optional<Denial> end_chunk(std::string& out) {
    if (!same(sigv4_.sign_chunk(placeholder_, their_last_, data_), signature_))
      return bad_("the signature of a chunk is not right");
    their_last_ = signature_;
    our_last_ = sigv4_.sign_chunk(real_, our_last_, data_);
    out += size_text_;
    out += kSignature;
    out += our_last_ + "\r\n";
    const bool last = data_.empty();
    if (!last) out.append(data_).append("\r\n");
    data_ = {};
    state_ = last ? State::kTrailer : State::kHead;
    return {};
  }

  // Lines after the last chunk: the trailer's, whose signature is the last of them, and an empty one.
  std::optional<Denial> take_trailer(const std::string& line, std::string& out) {
    if (line.empty()) {
      const bool wants = sigv4_.payload() == SigV4::Payload::kChunksAndTrailer;
      if (wants != trailer_signed_ || (!wants && !trailer_.empty())) return bad_("its trailer is not signed");
      out += "\r\n";
      state_ = State::kEnd;
      return {};
    }
    if (trailer_signed_) return bad_("something follows the signature of its trailer");
    if (!line.starts_with(kTrailerSignature)) {
      trailer_ += line + "\n";
      if (trailer_.size() > kMostTrailer) return bad_("its trailer is too long");
      out += line + "\r\n";
      return {};
    }
    if (!same(sigv4_.sign_trailer(placeholder_, their_last_, trailer_),
              line.substr(kTrailerSignature.size())))
      return bad_("the signature of its trailer is not right");
    out += kTrailerSignature;
    out += sigv4_.sign_trailer(real_, our_last_, trailer_) + "\r\n";
    trailer_signed_ = true;
    return {};
  }

  SigV4 sigv4_;
  AwsKey placeholder_, real_;
  std::string their_last_, our_last_;
  BadSignature bad_;
  State state_ = State::kHead;
  std::string line_, size_text_, signature_, data_, trailer_;
  size_t left_ = 0;
  bool trailer_signed_ = false;
};

class WholeBody : public http::Filter {
 public:
  WholeBody(std::function<std::optional<Denial>(std::string_view)> sign, BadSignature bad)
      : sign_(std::move(sign)), bad_(std::move(bad)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string&) override {
    if (body_.size() + bytes.size() > kMostSignedBody) return bad_("it has more than 8 MiB");
    body_.append(bytes);
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    if (auto denial = sign_(sigv4_body_hash(body_))) return denial;
    if (out.empty())
      out = std::exchange(body_, {});
    else
      out += std::exchange(body_, {});
    return {};
  }
  size_t held() const override { return body_.capacity(); }
  bool decides() const override { return true; }

 private:
  std::function<std::optional<Denial>(std::string_view)> sign_;
  BadSignature bad_;
  std::string body_;
};

}  // namespace

std::unique_ptr<http::Filter> sigv4_chunks(const SigV4& theirs, const AwsKey& placeholder, const SigV4& ours,
                                           const AwsKey& real, BadSignature bad) {
  return std::make_unique<Chunks>(theirs, placeholder, ours, real, std::move(bad));
}

std::unique_ptr<http::Filter> sigv4_body(std::function<std::optional<Denial>(std::string_view)> sign,
                                         BadSignature bad) {
  return std::make_unique<WholeBody>(std::move(sign), std::move(bad));
}

std::string sigv4_body_hash(std::string_view body) {
  return sha256_hex(body);
}

}  // namespace firestop::credentials
