// A hostile client of our HTTP/2 server: whatever frames come, in whatever pieces, requests are whole, what
// is held is bounded, and every stream ends. The first byte chooses the size of the pieces.
#include <algorithm>
#include <memory>
#include <vector>

#include "check.h"
#include "http/h2_server.h"

using namespace firestop;
using namespace firestop::http;

namespace {

class Pieces : public ByteStream {
 public:
  Io read(char* buffer, size_t size) override {
    if (!given.empty()) {
      const size_t n = std::min(size, given.size());
      std::copy_n(given.data(), n, buffer);
      given.remove_prefix(n);
      return {State::kOk, n};
    }
    return {over ? State::kEnd : State::kWouldBlock, 0};
  }
  Io write(std::string_view bytes) override { return {State::kOk, bytes.size()}; }
  void shutdown_write() override {}
  void want(std::function<void()> read, std::function<void()>) override { readable = std::move(read); }
  void pause_reading(bool stop) override { paused = stop; }
  void wait_writable(bool) override {}

  std::string_view given;
  bool over = false, paused = false;
  std::function<void()> readable;
};

struct Request : StreamReceiver {
  void on_data(std::string_view bytes) override {
    FUZZ_CHECK(!ended && !bytes.empty());
    held += bytes.size();
    FUZZ_CHECK(held <= static_cast<size_t>(H2Session::kStreamWindow));
    if (held > 1000) {
      stream->consumed(held);
      held = 0;
    }
  }
  void on_end(Headers trailers) override {
    FUZZ_CHECK(!ended);
    ended = true;
    FUZZ_CHECK(!find_header(trailers, "content-length") && !find_header(trailers, "transfer-encoding"));
    stream->send_response({200, {{"x", "y"}}, {Body::Kind::kUnknown, 0}});
    stream->send_data("answer");
    stream->send_end({});
  }
  void on_abort(const std::string&) override { ended = true; }
  void on_writable() override {}

  std::unique_ptr<ServerStream> stream;
  size_t held = 0;
  bool ended = false;
};

struct Requests : RequestHandler {
  void on_request(RequestHead head, std::unique_ptr<ServerStream> stream) override {
    FUZZ_CHECK(!head.method.empty() && !head.authority.host.empty() && head.authority.port != 0);
    FUZZ_CHECK(head.target == "*" || head.target.starts_with('/'));
    for (const auto& header : head.headers) {
      FUZZ_CHECK(!header.name.empty() && header.name[0] != ':');
      FUZZ_CHECK(header.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
      FUZZ_CHECK(!same_name(header.name, "content-length") && !same_name(header.name, "host"));
    }
    auto request = std::make_unique<Request>();
    request->stream = std::move(stream);
    request->stream->set_receiver(request.get());
    all.push_back(std::move(request));
  }
  std::vector<std::unique_ptr<Request>> all;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 1) return 0;
  std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] == 0 ? input.size() : data[0];
  Loop loop;
  Requests requests;
  auto made = std::make_unique<Pieces>();
  Pieces& pieces = *made;
  bool closed = false;
  {
    H2Server server(loop, std::move(made), requests, [&](const std::string&) { closed = true; });
    while (!input.empty() && !pieces.paused) {
      pieces.given = input.substr(0, piece);
      input.remove_prefix(pieces.given.size());
      while (!pieces.given.empty() && !pieces.paused) pieces.readable();
      loop.run();
    }
    pieces.over = true;
    if (!pieces.paused) pieces.readable();
    loop.run();
    FUZZ_CHECK(closed);
    requests.all.clear();
  }
  return 0;
}
