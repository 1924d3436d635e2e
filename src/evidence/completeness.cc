#include "evidence/completeness.h"

#include <algorithm>

#include "codec/utf8.h"

namespace firestop::evidence {
namespace {

constexpr size_t kMostNames = 64, kMostShown = 200;

}  // namespace

void Completeness::take(const Event& event) {
  if (event.kind == "collectors") {
    spoke_ = true;
    const codec::Json* missing = event.data.find("missing");
    if (const codec::JsonArray* list = missing ? missing->as_array() : nullptr)
      for (const auto& one : *list)
        if (missing_.size() < kMostNames) missing_.push_back(bytes_of(one));
  } else if (event.kind == "collectors.done") {
    done_ = true;
  } else if (event.kind == "lost") {
    std::string what = event.data.string_or("what", "events");
    if (lost_.size() >= kMostNames && !lost_.contains(what)) what = "other events";
    uint64_t& sum = lost_[what];
    const auto count = static_cast<uint64_t>(std::max<int64_t>(1, event.data.int_or("count", 1)));
    sum = sum > UINT64_MAX - count ? UINT64_MAX : sum + count;
  } else if (event.kind == "record.end") {
    ended_ = true;
    said_complete_ = event.data.bool_or("complete", false);
  }
}

std::vector<std::string> Completeness::gaps() const {
  std::vector<std::string> out;
  if (!ended_) out.emplace_back("the record has no end");
  if (!spoke_) out.emplace_back("the guest's collectors never spoke: nothing was observed inside");
  for (const auto& one : missing_)
    out.push_back("a collector did not work: " + codec::printable(one, kMostShown));
  for (const auto& [what, count] : lost_)
    out.push_back("at least " + std::to_string(count) + " lost of: " + codec::printable(what, kMostShown));
  if (spoke_ && !done_) out.emplace_back("the guest's collectors did not come to their end");
  if (ended_ && !said_complete_ && out.empty()) out.emplace_back("the host says that not all was recorded");
  return out;
}

}  // namespace firestop::evidence
