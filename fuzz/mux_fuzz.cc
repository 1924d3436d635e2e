// A hostile other side: whatever comes, what this side holds is bounded by its windows, and nobody gets more
// data than was granted. The input is a sequence of steps: one byte of what to do, one of how much, then the
// bytes.
#include <map>

#include "channel/mux.h"
#include "check.h"

using namespace firestop::channel;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::map<uint16_t, size_t> received, consumed;
  size_t controls = 0;
  Mux mux({
      .on_control = [&](std::string_view json) { controls += json.size(); },
      .on_data =
          [&](uint16_t stream, std::string_view bytes) {
            FUZZ_CHECK(stream == 1 || stream == 2);
            FUZZ_CHECK(!bytes.empty());
            received[stream] += bytes.size();
          },
      .on_end = [](uint16_t stream) { FUZZ_CHECK(stream == 1 || stream == 2); },
      .on_writable = [](uint16_t stream) { FUZZ_CHECK(stream == 3); },
  });
  mux.open_receive(1);
  mux.open_receive(2);
  mux.open_send(3);
  static const std::string much(kWindow, 'x');
  bool broken = false;
  while (input.size() >= 2) {
    const auto step = static_cast<unsigned char>(input[0]) % 4;
    const auto amount = static_cast<unsigned char>(input[1]);
    input.remove_prefix(2);
    if (step == 0) {
      auto result = mux.receive(input.substr(0, amount));
      FUZZ_CHECK(!(broken && result));
      if (!result) broken = true;
      input.remove_prefix(std::min<size_t>(amount, input.size()));
    } else if (step == 1) {
      const auto stream = static_cast<uint16_t>(1 + amount % 2);
      const size_t bytes = std::min<size_t>(received[stream] - consumed[stream], amount * size_t{5000});
      mux.consumed(stream, bytes);
      consumed[stream] += bytes;
    } else if (step == 2) {
      const size_t credit = mux.credit(3), bytes = amount * size_t{5000};
      FUZZ_CHECK(mux.send(3, std::string_view(much).substr(0, bytes)) ==
                 std::min({credit, bytes, much.size()}));
      if (amount == 255) mux.send_end(3);
    } else {
      mux.written(amount * size_t{5000});
    }
    for (auto [stream, bytes] : received) FUZZ_CHECK(bytes - consumed[stream] <= kWindow);
    FUZZ_CHECK(mux.pending().size() <= 2 * size_t{kWindow});
  }
  return 0;
}
