#include "credentials/matcher.h"

#include <algorithm>
#include <limits>

namespace firestop::credentials {
namespace {

constexpr Matcher::State kMissing = std::numeric_limits<Matcher::State>::max();

std::vector<std::string_view> bytes_of(const std::vector<Matcher::Text>& texts) {
  std::vector<std::string_view> out;
  for (const auto& text : texts) out.emplace_back(text.bytes);
  return out;
}

}  // namespace

Matcher::Matcher(const std::vector<Text>& texts) : prefilter_(bytes_of(texts)) {
  for (const auto& text : texts) {
    for (const char c : text.bytes)
      if (auto& class_of = class_of_[static_cast<unsigned char>(c)]; class_of == 0)
        class_of = static_cast<uint16_t>(classes_++);
    lengths_.push_back(text.bytes.size());
    longest_ = std::max(longest_, text.bytes.size());
  }

  // The tree of beginnings.
  nodes_.emplace_back();
  next_.assign(classes_, kMissing);
  for (size_t at = 0; at < texts.size(); ++at) {
    State state = kStart;
    const auto& bytes = texts[at].bytes;
    for (size_t length = 1; length <= bytes.size(); ++length) {
      const size_t edge = state * classes_ + class_of_[static_cast<unsigned char>(bytes[length - 1])];
      if (next_[edge] == kMissing) {
        next_[edge] = static_cast<State>(nodes_.size());
        nodes_.emplace_back();
        next_.resize(next_.size() + classes_, kMissing);
      }
      state = next_[edge];
      if (length >= texts[at].hold_from) nodes_[state].held = static_cast<uint32_t>(length);
    }
    nodes_[state].found = static_cast<int>(at);
  }

  // Level by level: where to go on when the next byte does not fit.
  std::vector<State> fallback(nodes_.size(), kStart), order{kStart};
  for (size_t at = 0; at < order.size(); ++at) {
    const State state = order[at];
    for (size_t edge = 0; edge < classes_; ++edge) {
      State& next = next_[state * classes_ + edge];
      const State other = state == kStart ? kStart : next_[fallback[state] * classes_ + edge];
      if (next == kMissing) {
        next = other;
        continue;
      }
      fallback[next] = state == kStart ? kStart : other;
      if (nodes_[next].found == kNone) nodes_[next].found = nodes_[fallback[next]].found;
      if (nodes_[next].held == 0) nodes_[next].held = nodes_[fallback[next]].held;
      order.push_back(next);
    }
  }
}

}  // namespace firestop::credentials
