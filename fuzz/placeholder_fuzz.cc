// Any bytes, cut anywhere, through the detector and the scrubber: what they pass is what came in, except for
// placeholders, which do not leave, and values, which do not come back; both hold back a bounded part.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "credentials/detector.h"
#include "credentials/finder.h"
#include "credentials/scrubber.h"

using namespace firestop;
using namespace firestop::credentials;

namespace {

const std::string kText = "sk-0a1b2c3d4e5f6a7b8c9d0e1f2a";
const std::string kValue = "valuevalue0";

// The first byte of the input says how it is cut.
template <typename Feed>
void in_pieces(std::string_view bytes, uint8_t cut, Feed feed) {
  const size_t piece = cut % 31 + 1u;
  for (size_t at = 0; at < bytes.size(); at += piece) feed(bytes.substr(at, piece));
}

}  // namespace

// What is passed over quickly is nothing that would be found, and nothing of it was let go.
static void check_passed_over(std::string_view bytes, uint8_t cut) {
  static const auto matcher = std::make_shared<Matcher>(
      std::vector<Matcher::Text>{{kText, 1}, {kValue, 1}, {"c2stMGExYjJjM2Q0", 1}, {"%25", 1}});
  Finder quick(matcher, Finder::Hold::kEscapes), slow(matcher, Finder::Hold::kEscapes);
  std::vector<Finder::Hit> found, wanted;
  std::vector<std::pair<uint64_t, uint64_t>> held;
  in_pieces(bytes, cut, [&](std::string_view piece) {
    quick.feed(piece, found);
    for (const char& c : piece) slow.feed({&c, 1}, wanted);
    if (held.size() < 20) held.emplace_back(quick.position(), quick.held_from());
  });
  quick.finish(found);
  slow.finish(wanted);
  if (wanted.size() > 20) wanted.resize(20);
  for (const auto& hit : wanted) {
    FUZZ_CHECK(std::any_of(found.begin(), found.end(), [&](const Finder::Hit& one) {
      return one.begin <= hit.begin && one.end == hit.end;
    }));
    for (const auto& [position, from] : held) FUZZ_CHECK(hit.end <= position || hit.begin >= from);
  }
  FUZZ_CHECK(wanted.empty() || matcher->prefilter().may_have(bytes));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t cut = data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  static Detector detector({{.credential = "c", .variable = "V", .prefix = "sk-", .text = kText}});
  const auto found = [](const std::string&) { return std::optional<http::Denial>(http::Denial{}); };
  const auto bad = [](const std::string&) { return http::Denial{}; };
  for (const char* coding : {"", "gzip", "br"}) {
    const auto filter = detector.body_filter(coding, found, bad);
    std::string out;
    bool denied = false;
    in_pieces(bytes, cut, [&](std::string_view piece) {
      if (!denied) denied = filter->feed(piece, out).has_value();
    });
    if (!denied) denied = filter->finish(out).has_value();
    FUZZ_CHECK(bytes.starts_with(out));
    if (!denied) FUZZ_CHECK(out == bytes);
    FUZZ_CHECK(out.find(kText) == std::string::npos);
  }
  check_passed_over(bytes, cut);
  (void)detector.find(bytes);
  (void)detector.find_in_name(bytes);

  static const Scrubber scrubber(
      {{std::make_shared<const Secret>(Secret::copy(kValue).value()), "user", "sk-placeholder"}});
  for (const auto shape :
       {Scrubber::Shape{}, Scrubber::Shape{.same_length = true}, Scrubber::Shape{.live = true}}) {
    const auto filter = scrubber.body_filter("", shape, bad);
    std::string out;
    in_pieces(bytes, cut, [&](std::string_view piece) { FUZZ_CHECK(!filter->feed(piece, out)); });
    FUZZ_CHECK(!filter->finish(out));
    if (shape.same_length) FUZZ_CHECK(out.size() == bytes.size());
    if (!shape.live) FUZZ_CHECK(out.find(kValue) == std::string::npos);
  }
  for (const char* coding : {"gzip", "deflate", "br"}) {
    const auto filter = scrubber.body_filter(coding, {}, bad);
    std::string out;
    bool denied = false;
    in_pieces(bytes, cut, [&](std::string_view piece) {
      if (!denied) denied = filter->feed(piece, out).has_value();
    });
  }
  return 0;
}
