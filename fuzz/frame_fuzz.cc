// The decoder gives the same for the bytes at once and in pieces, and encoding what it gave makes the same
// bytes.
#include "check.h"
#include "codec/frame.h"

using namespace firestop::codec;

namespace {

// The frames, encoded again; "!" at the end for an error.
std::string decode(std::string_view bytes, size_t piece) {
  FrameDecoder decoder;
  std::string out;
  while (!bytes.empty()) {
    decoder.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      auto next = decoder.next();
      if (!next) return out + "!";
      const std::optional<Frame>& frame = *next;
      if (!frame) break;
      append_frame(out, frame->type, frame->stream, frame->payload);
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = decode(bytes, SIZE_MAX);
  FUZZ_CHECK(decode(bytes, data[0] + size_t{1}) == whole);
  const bool broken = whole.ends_with('!') && bytes.substr(0, whole.size()) != whole;
  FUZZ_CHECK(bytes.starts_with(std::string_view(whole).substr(0, whole.size() - (broken ? 1 : 0))));
  return 0;
}
