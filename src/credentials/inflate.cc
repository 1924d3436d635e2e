#include "credentials/inflate.h"

#include <brotli/decode.h>
#include <malloc.h>
#include <zlib.h>

#include <array>
#include <cstdlib>

#include "http/message.h"

namespace firestop::credentials {
namespace {

constexpr size_t kPiece = 16u << 10;

Unexpected bad(const char* why) {
  return fail("inflate.bad", why);
}

class Zlib : public Inflate {
 public:
  // 15 bits of window; +32 tells gzip from zlib by itself; raw deflate is tried when it is neither.
  explicit Zlib(bool deflate) : may_be_raw_(deflate) { ready_ = ::inflateInit2(&stream_, 15 + 32) == Z_OK; }
  ~Zlib() override { ::inflateEnd(&stream_); }
  Zlib(const Zlib&) = delete;
  Zlib& operator=(const Zlib&) = delete;

  Result<void> feed(std::string_view bytes, const Sink& sink) override {
    if (!ready_) return bad("no memory");
    size_t made = 0;
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (true) {
      if (ended_) {
        if (stream_.avail_in == 0) return {};
        // Members may follow each other (RFC 1952, section 2.2).
        if (::inflateReset(&stream_) != Z_OK) return bad("cannot go on");
        ended_ = false;
      }
      stream_.next_out = piece_.data();
      stream_.avail_out = static_cast<uInt>(piece_.size());
      int status = ::inflate(&stream_, Z_NO_FLUSH);
      if (status == Z_DATA_ERROR && may_be_raw_ && !any_) {
        if (::inflateReset2(&stream_, -15) != Z_OK) return bad("cannot go on");
        stream_.next_in =
            reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
        stream_.avail_in = static_cast<uInt>(bytes.size());
        may_be_raw_ = false;
        status = ::inflate(&stream_, Z_NO_FLUSH);
      }
      const size_t got = piece_.size() - stream_.avail_out;
      if (got > 0) {
        any_ = true;
        made += got;
        if (made > kMostOfOneFeed) return bad("it grows too much");
        sink({reinterpret_cast<const char*>(piece_.data()), got});
      }
      if (status == Z_STREAM_END) {
        ended_ = true;
        continue;
      }
      if (status != Z_OK && status != Z_BUF_ERROR) return bad("it is malformed");
      if (stream_.avail_in == 0 && stream_.avail_out > 0) return {};
    }
  }
  bool ended() const override { return ended_; }
  size_t memory() const override { return size_t{1} << 15; }

 private:
  z_stream stream_{};
  std::array<Bytef, kPiece> piece_{};
  bool ready_ = false, ended_ = false, any_ = false, may_be_raw_;
};

class Brotli : public Inflate {
 public:
  Brotli() : state_(::BrotliDecoderCreateInstance(&take, &give, this)) {}
  ~Brotli() override { ::BrotliDecoderDestroyInstance(state_); }
  Brotli(const Brotli&) = delete;
  Brotli& operator=(const Brotli&) = delete;

  Result<void> feed(std::string_view bytes, const Sink& sink) override {
    if (!state_) return bad("no memory");
    size_t left = bytes.size(), made = 0;
    const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
    while (true) {
      if (ended()) return left == 0 ? Result<void>() : bad("something follows its end");
      size_t room = piece_.size();
      uint8_t* out = piece_.data();
      const auto status = ::BrotliDecoderDecompressStream(state_, &left, &in, &room, &out, nullptr);
      const size_t got = piece_.size() - room;
      made += got;
      if (made > kMostOfOneFeed) return bad("it grows too much");
      if (got > 0) sink({reinterpret_cast<const char*>(piece_.data()), got});
      if (status == BROTLI_DECODER_RESULT_ERROR) return bad("it is malformed");
      if (status == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return {};
    }
  }
  bool ended() const override { return state_ && ::BrotliDecoderIsFinished(state_); }
  size_t memory() const override { return memory_; }

 private:
  // Its allocator, which counts.
  static void* take(void* self, size_t bytes) {
    void* out = std::malloc(bytes);
    if (out) static_cast<Brotli*>(self)->memory_ += ::malloc_usable_size(out);
    return out;
  }
  static void give(void* self, void* memory) {
    if (memory) static_cast<Brotli*>(self)->memory_ -= ::malloc_usable_size(memory);
    std::free(memory);
  }

  size_t memory_ = 0;
  BrotliDecoderState* state_;
  std::array<uint8_t, kPiece> piece_{};
};

}  // namespace

bool Inflate::knows(std::string_view coding) {
  for (const std::string_view one : {"gzip", "x-gzip", "deflate", "br"})
    if (http::same_name(coding, one)) return true;
  return false;
}

std::unique_ptr<Inflate> Inflate::make(std::string_view coding) {
  if (!knows(coding)) return nullptr;
  if (http::same_name(coding, "br")) return std::make_unique<Brotli>();
  return std::make_unique<Zlib>(http::same_name(coding, "deflate"));
}

}  // namespace firestop::credentials
