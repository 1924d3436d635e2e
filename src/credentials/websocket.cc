#include "credentials/websocket.h"

#include <algorithm>
#include <deque>

namespace firestop::credentials {
namespace {

using http::Denial;

constexpr size_t kMostHeld = 64u << 10;

class OutFilter : public http::Filter {
 public:
  explicit OutFilter(std::unique_ptr<http::Filter> detector) : detector_(std::move(detector)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    std::optional<Denial> denial;
    reader_.feed(
        bytes, [](std::string_view) {},
        [&](std::string_view payload) {
          shown_ += payload.size();
          if (!denial) denial = detector_->feed(payload, passed_);
        });
    if (denial) return denial;
    held_.append(bytes);
    // What the detector holds back of the payload holds back the frames that it came in.
    returned_ += passed_.size();
    passed_.clear();
    if (returned_ == shown_ || held_.size() > kMostHeld) {
      out += held_;
      held_.clear();
    }
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    if (auto denial = detector_->finish(passed_)) return denial;
    out += held_;
    held_.clear();
    return {};
  }

 private:
  FrameReader reader_;
  std::unique_ptr<http::Filter> detector_;
  std::string held_, passed_;
  uint64_t shown_ = 0, returned_ = 0;
};

class InFilter : public http::Filter {
 public:
  explicit InFilter(std::unique_ptr<http::Filter> scrubber) : scrubber_(std::move(scrubber)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    std::optional<Denial> denial;
    reader_.feed(
        bytes, [&](std::string_view head) { heads_.push_back({taken_, std::string(head)}); },
        [&](std::string_view payload) {
          taken_ += payload.size();
          if (!denial) denial = scrubber_->feed(payload, clean_);
        });
    if (denial) return denial;
    weave(out);
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    if (auto denial = scrubber_->finish(clean_)) return denial;
    weave(out);
    return {};
  }

 private:
  struct Head {
    uint64_t at = 0;  // bytes of payload that stand before it
    std::string bytes;
  };

  // Heads go out where they stood, once all payload before them has.
  void weave(std::string& out) {
    size_t used = 0;
    while (!heads_.empty() && heads_.front().at <= given_ + (clean_.size() - used)) {
      const auto before = static_cast<size_t>(heads_.front().at - given_);
      out.append(clean_, used, before);
      used += before;
      given_ += before;
      out += heads_.front().bytes;
      heads_.pop_front();
    }
    out.append(clean_, used);
    given_ += clean_.size() - used;
    clean_.clear();
  }

  FrameReader reader_;
  std::unique_ptr<http::Filter> scrubber_;
  std::deque<Head> heads_;
  std::string clean_;
  uint64_t taken_ = 0, given_ = 0;
};

}  // namespace

// Whether the head is complete with this byte.
bool FrameReader::read_head(char c) {
  head_ += c;
  if (head_.size() < 2) return false;
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(head_[at]); };
  masked_ = (byte(1) & 0x80) != 0;
  const unsigned short_length = byte(1) & 0x7F;
  const size_t extended = short_length == 126 ? 2 : short_length == 127 ? 8 : 0;
  const size_t size = 2 + extended + (masked_ ? 4 : 0);
  if (head_.size() < size) return false;
  left_ = extended == 0 ? short_length : 0;
  for (size_t at = 0; at < extended; ++at) left_ = left_ << 8 | byte(2 + at);
  for (size_t at = 0; masked_ && at < 4; ++at) mask_[at] = byte(2 + extended + at);
  mask_at_ = 0;
  return true;
}

void FrameReader::feed(std::string_view bytes, const std::function<void(std::string_view)>& on_head,
                       const std::function<void(std::string_view)>& on_payload) {
  while (!bytes.empty()) {
    if (!in_payload_) {
      const bool complete = read_head(bytes.front());
      bytes.remove_prefix(1);
      if (!complete) continue;
      on_head(head_);
      head_.clear();
      in_payload_ = left_ > 0;
      continue;
    }
    const auto count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
    if (masked_) {
      unmasked_.assign(bytes.substr(0, count));
      for (char& c : unmasked_) c = static_cast<char>(static_cast<unsigned char>(c) ^ mask_[mask_at_++ & 3]);
      on_payload(unmasked_);
    } else {
      on_payload(bytes.substr(0, count));
    }
    bytes.remove_prefix(count);
    left_ -= count;
    in_payload_ = left_ > 0;
  }
}

std::unique_ptr<http::Filter> websocket_detector(std::unique_ptr<http::Filter> detector) {
  return std::make_unique<OutFilter>(std::move(detector));
}

std::unique_ptr<http::Filter> websocket_scrubber(std::unique_ptr<http::Filter> scrubber) {
  return std::make_unique<InFilter>(std::move(scrubber));
}

}  // namespace firestop::credentials
