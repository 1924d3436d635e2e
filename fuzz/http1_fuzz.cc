// Requests and responses read the same at once and in pieces; what was read can be written, and is read again
// as the same.
#include <string>

#include "check.h"
#include "codec/http1_testing.h"

using namespace firestop::codec;

namespace {

template <typename Reader>
std::string read(Reader& reader, std::string_view bytes, size_t piece, bool to_the_end) {
  Http1Transcript transcript(reader);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    transcript.feed(bytes.substr(0, piece));
  }
  if (to_the_end) transcript.end();
  return transcript.text();
}

std::string requests(std::string_view bytes, size_t piece) {
  Http1RequestReader reader;
  return read(reader, bytes, piece, true);
}

std::string responses(std::string_view bytes, size_t piece, int kind) {
  Http1ResponseReader reader;
  reader.expect(kind & 1 ? "HEAD" : "GET", kind & 2);
  return read(reader, bytes, piece, true);
}

// The first request of `bytes` written again and read again.
void check_again(std::string_view bytes) {
  Http1RequestReader reader;
  const auto step = reader.next(bytes);
  if (!step || step->event != Http1Reader::Event::kHead) return;
  const Http1Request request = reader.take_request();
  if (request.method == "CONNECT") return;
  std::string out;
  const std::string host = authority_text(request.authority.host, request.authority.port, 0);
  const auto connection = request.upgrade.empty() ? Http1Connection::kKeep : Http1Connection::kUpgrade;
  FUZZ_CHECK(append_http1_request(out, {request.method, request.target, host}, request.fields,
                                  request.framing, connection));
  Http1RequestReader second;
  std::string_view rest = out;
  const auto again = second.next(rest);
  FUZZ_CHECK(again && again->event == Http1Reader::Event::kHead);
  const Http1Request other = second.take_request();
  FUZZ_CHECK(other.method == request.method && other.target == request.target);
  FUZZ_CHECK(other.authority.host == request.authority.host && other.framing == request.framing);
  FUZZ_CHECK(fields_text(other.fields) == fields_text(request.fields) && other.upgrade == request.upgrade);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t piece = data[0] + size_t{1};
  const int kind = data[1];
  if (kind & 4) {
    FUZZ_CHECK(responses(bytes, SIZE_MAX, kind) == responses(bytes, piece, kind));
  } else {
    FUZZ_CHECK(requests(bytes, SIZE_MAX) == requests(bytes, piece));
    check_again(bytes);
  }
  return 0;
}
