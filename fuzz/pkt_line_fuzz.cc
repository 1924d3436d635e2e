// The reader gives the same for the bytes at once and in pieces, and writing what it gave makes the same
// bytes but for the case of digits.
#include <algorithm>

#include "check.h"
#include "codec/pkt_line.h"

using namespace firestop::codec;

namespace {

struct Read {
  std::string out;  // written again
  bool broken = false;
};

Read read(std::string_view bytes, size_t piece) {
  PktLineReader reader;
  Read result;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      const auto next = reader.next();
      if (!next) return {result.out, true};
      if (!next->has_value()) break;
      const PktLine& line = **next;
      if (line.kind == PktLine::Kind::kData)
        append_pkt_line(result.out, line.payload);
      else
        append_pkt_mark(result.out, line.kind);
    }
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = read(bytes, SIZE_MAX);
  const Read pieces = read(bytes, data[0] + size_t{1});
  FUZZ_CHECK(whole.out == pieces.out && whole.broken == pieces.broken);
  FUZZ_CHECK(whole.out.size() <= bytes.size());
  const Read again = read(whole.out, SIZE_MAX);
  FUZZ_CHECK(!again.broken && again.out == whole.out);
  return 0;
}
