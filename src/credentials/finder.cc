#include "credentials/finder.h"

#include <algorithm>
#include <bit>

namespace firestop::credentials {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\0';
}

}  // namespace

Finder::Finder(std::shared_ptr<const Matcher> matcher, Hold hold)
    : matcher_(std::move(matcher)), hold_(hold) {
  const size_t ring = std::bit_ceil(matcher_->longest() + 1);
  ring_mask_ = ring - 1;
  first_.begins.resize(ring);
  second_.begins.resize(ring);
}

void Finder::reset() {
  position_ = 0;
  plain_ = Matcher::kStart;
  for (View* view : {&first_, &second_}) {
    view->state = Matcher::kStart;
    view->count = 0;
    view->unescape = {};
  }
}

void Finder::take(View& view, const Unit& unit, std::vector<Hit>& hits) {
  if (is_blank(unit.byte)) return;
  view.begins[view.count++ & ring_mask_] = unit.begin;
  view.state = matcher_->step(view.state, static_cast<unsigned char>(unit.byte));
  const int text = matcher_->found(view.state);
  if (text == Matcher::kNone) return;
  hits.push_back({text, view.begins[(view.count - matcher_->length(text)) & ring_mask_], unit.end});
}

void Finder::take_first(const Unit& unit, std::vector<Hit>& hits) {
  take(first_, unit, hits);
  second_.unescape.feed(unit, [&](const Unit& twice) { take(second_, twice, hits); });
}

void Finder::feed(std::string_view bytes, std::vector<Hit>& hits) {
  for (size_t at = 0; at < bytes.size();) {
    if (idle()) {
      // Most bytes change nothing at all.
      const size_t from = at;
      at = matcher_->prefilter().find(bytes, from);
      position_ += at - from;
      if (at == bytes.size()) return;
    }
    feed_one(bytes[at++], hits);
  }
}

void Finder::feed_one(char c, std::vector<Hit>& hits) {
  plain_ = matcher_->step(plain_, static_cast<unsigned char>(c));
  if (const int text = matcher_->found(plain_); text != Matcher::kNone)
    hits.push_back({text, position_ + 1 - matcher_->length(text), position_ + 1});
  first_.unescape.feed(Unit{c, position_, position_ + 1}, [&](const Unit& unit) { take_first(unit, hits); });
  ++position_;
}

void Finder::finish(std::vector<Hit>& hits) {
  first_.unescape.finish([&](const Unit& unit) { take_first(unit, hits); });
  second_.unescape.finish([&](const Unit& unit) { take(second_, unit, hits); });
}

uint64_t Finder::held_from() const {
  uint64_t from = position_ - matcher_->held(plain_);
  for (const View* view : {&first_, &second_}) {
    if (const uint32_t held = matcher_->held(view->state); held > 0)
      from = std::min(from, view->begins[(view->count - held) & ring_mask_]);
    if (hold_ == Hold::kEscapes && view->unescape.waits()) from = std::min(from, view->unescape.waits_from());
  }
  return from;
}

}  // namespace firestop::credentials
