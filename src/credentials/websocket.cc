#include "credentials/websocket.h"

#include <algorithm>
#include <deque>

namespace firestop::credentials {
namespace {

using http::Denial;

constexpr size_t kMostHeld = 64u << 10;
constexpr size_t kMostPieces = 4096;  // frames that wait behind payload that is held back

// Of the two streams of text within one of frames: control frames (RFC 6455, section 5.5) stand anywhere
// between the pieces of a message, and are no part of it.
enum Text : size_t { kMessage, kControl, kTexts };

Text text_of(std::string_view head) {
  return (static_cast<unsigned char>(head.front()) & 0x08) != 0 ? kControl : kMessage;
}

class OutFilter : public http::Filter {
 public:
  explicit OutFilter(WebsocketFilters detectors) : detectors_(std::move(detectors)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    std::optional<Denial> denial;
    reader_.feed(
        bytes, [&](std::string_view head) { text_ = text_of(head); },
        [&](std::string_view payload) {
          shown_ += payload.size();
          if (!denial) denial = detector(text_).feed(payload, passed_);
        });
    if (denial) return denial;
    held_.append(bytes);
    // What a detector holds back of the payload holds back the frames that it came in.
    returned_ += passed_.size();
    passed_.clear();
    if (returned_ == shown_ || held_.size() > kMostHeld) {
      out += held_;
      held_.clear();
    }
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    for (const Text text : {kMessage, kControl})
      if (auto denial = detector(text).finish(passed_)) return denial;
    out += held_;
    held_.clear();
    return {};
  }
  size_t held() const override { return held_.size(); }

 private:
  http::Filter& detector(Text text) { return text == kControl ? *detectors_.control : *detectors_.message; }

  FrameReader reader_;
  WebsocketFilters detectors_;
  Text text_ = kMessage;
  std::string held_, passed_;
  uint64_t shown_ = 0, returned_ = 0;
};

class InFilter : public http::Filter {
 public:
  InFilter(WebsocketFilters scrubbers, std::function<Denial(const std::string&)> bad)
      : scrubbers_(std::move(scrubbers)), bad_(std::move(bad)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    std::optional<Denial> denial;
    reader_.feed(
        bytes,
        [&](std::string_view head) {
          text_ = text_of(head);
          pieces_.push_back({text_, 0, std::string(head)});
          if (pieces_.size() > kMostPieces) weave(out);
          if (pieces_.size() > kMostPieces && !denial)
            denial = bad_("more frames than can wait for the end of what may be a credential's value");
        },
        [&](std::string_view payload) {
          if (denial) return;
          pieces_.back().payload += payload.size();
          denial = scrubber(text_).feed(payload, clean_[text_]);
        });
    if (denial) return denial;
    weave(out);
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    for (const Text text : {kMessage, kControl})
      if (auto denial = scrubber(text).finish(clean_[text])) return denial;
    weave(out);
    return {};
  }
  size_t held() const override {
    return scrubbers_.message->held() + scrubbers_.control->held() + pieces_.size() * sizeof(Piece);
  }

 private:
  struct Piece {  // of a frame: its head, while that has not gone out, and payload
    Text text = kMessage;
    uint64_t payload = 0;
    std::string head;
  };

  http::Filter& scrubber(Text text) { return text == kControl ? *scrubbers_.control : *scrubbers_.message; }

  // Frames go out in the order in which they came, as far as the scrubbers have given them back.
  void weave(std::string& out) {
    size_t used[kTexts] = {};
    while (!pieces_.empty()) {
      Piece& first = pieces_.front();
      out += first.head;
      first.head.clear();
      std::string& clean = clean_[first.text];
      size_t& at = used[first.text];
      const auto count = static_cast<size_t>(std::min<uint64_t>(first.payload, clean.size() - at));
      out.append(clean, at, count);
      at += count;
      first.payload -= count;
      // The last one may still be read.
      if (first.payload > 0 || pieces_.size() == 1) break;
      pieces_.pop_front();
    }
    for (const Text text : {kMessage, kControl}) clean_[text].erase(0, used[text]);
  }

  FrameReader reader_;
  WebsocketFilters scrubbers_;
  std::function<Denial(const std::string&)> bad_;
  Text text_ = kMessage;
  std::deque<Piece> pieces_;
  std::string clean_[kTexts];
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

std::unique_ptr<http::Filter> websocket_detector(WebsocketFilters detectors) {
  return std::make_unique<OutFilter>(std::move(detectors));
}

std::unique_ptr<http::Filter> websocket_scrubber(WebsocketFilters scrubbers,
                                                 std::function<Denial(const std::string&)> bad) {
  return std::make_unique<InFilter>(std::move(scrubbers), std::move(bad));
}

}  // namespace firestop::credentials
