#include "credentials/scrubber.h"

#include <algorithm>

#include "credentials/inflate.h"

namespace firestop::credentials {
namespace {

using http::Denial;
using Bad = std::function<Denial(const std::string&)>;
using Forms = std::shared_ptr<const std::vector<Form>>;

constexpr size_t kHoldLive = 4;
constexpr uint64_t kRestOfBase64 = 3;  // after the inside, the end of a whole form

// A text with values in it, in one piece or in many.
class Replacer {
 public:
  Replacer(std::shared_ptr<const Matcher> matcher, Forms forms, Scrubber::Shape shape)
      : finder_(std::move(matcher), shape.live ? Finder::Hold::kTextsOnly : Finder::Hold::kEscapes),
        forms_(std::move(forms)),
        same_length_(shape.same_length) {}

  void feed(std::string_view bytes, std::string& out) {
    hits_.clear();
    finder_.feed(bytes, hits_);
    merge();
    if (held_.empty() && waiting_.empty() && settled() == finder_.position()) {
      out.append(bytes);
      base_ = finder_.position();
      return;
    }
    held_.append(bytes);
    emit(settled(), out);
  }
  void finish(std::string& out) {
    hits_.clear();
    finder_.finish(hits_);
    merge();
    emit(finder_.position(), out);
  }
  bool replaced() const { return replaced_; }
  size_t held() const { return held_.size(); }

 private:
  const Form& form_of(const Finder::Hit& hit) const { return (*forms_)[static_cast<size_t>(hit.text)]; }

  // One occurrence shows as several hits; the one that covers the others counts.
  void merge() {
    for (const auto& hit : hits_) {
      while (!waiting_.empty() && hit.begin <= waiting_.back().begin) waiting_.pop_back();
      if (waiting_.empty() || hit.begin >= waiting_.back().end) waiting_.push_back(hit);
    }
  }

  uint64_t settled() const {
    uint64_t out = finder_.held_from();
    for (const auto& hit : waiting_)
      if (form_of(hit).kind == Form::Kind::kBase64Inside && finder_.position() < hit.end + kRestOfBase64)
        out = std::min(out, hit.begin);
    if (finder_.position() - out > Scrubber::kMostHeld) out = finder_.position() - Scrubber::kMostHeld;
    return out;
  }

  void emit(uint64_t until, std::string& out) {
    size_t done = 0;
    for (const auto& hit : waiting_) {
      if (hit.begin >= until) break;
      ++done;
      if (hit.end <= base_) continue;
      pass(std::max(hit.begin, base_), out);
      const auto length = static_cast<size_t>(hit.end - base_);
      std::string instead = form_of(hit).instead;
      if (same_length_) instead.resize(length, '*');
      out += instead;
      held_.erase(0, length);
      base_ = hit.end;
      replaced_ = true;
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
    if (until > base_) pass(until, out);
  }

  void pass(uint64_t until, std::string& out) {
    const auto length = static_cast<size_t>(until - base_);
    out.append(held_, 0, length);
    held_.erase(0, length);
    base_ = until;
  }

  Finder finder_;
  Forms forms_;
  bool same_length_;
  std::vector<Finder::Hit> hits_, waiting_;
  std::string held_;  // the stream from base_ on
  uint64_t base_ = 0;
  bool replaced_ = false;
};

class BodyFilter : public http::Filter {
 public:
  BodyFilter(Replacer replacer, std::unique_ptr<Inflate> inflate, Bad bad)
      : replacer_(std::move(replacer)), inflate_(std::move(inflate)), bad_(std::move(bad)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    if (!inflate_) {
      replacer_.feed(bytes, out);
      return {};
    }
    any_ = any_ || !bytes.empty();
    const auto read = inflate_->feed(bytes, [&](std::string_view text) { replacer_.feed(text, out); });
    if (!read) return bad_(read.error().message);
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    if (inflate_ && any_ && !inflate_->ended()) return bad_("it ends too early");
    replacer_.finish(out);
    return {};
  }
  size_t held() const override { return replacer_.held() + (inflate_ ? inflate_->memory() : 0); }

 private:
  Replacer replacer_;
  std::unique_ptr<Inflate> inflate_;
  Bad bad_;
  bool any_ = false;
};

}  // namespace

Scrubber::Scrubber(const std::vector<Known>& known) {
  std::vector<Form> forms;
  const auto add = [&](std::vector<Form> more) {
    for (auto& form : more) forms.push_back(std::move(form));
  };
  for (const auto& one : known) {
    const auto value = one.value->reveal();
    add(forms_of(value, 0, one.placeholder));
    add(base64_forms("", value, one.placeholder));
    if (!one.user.empty()) add(base64_forms(one.user + ":", value, one.placeholder));
  }
  if (forms.empty()) return;
  std::vector<Matcher::Text> texts, live;
  for (const auto& form : forms) {
    texts.push_back({form.bytes, 1});
    live.push_back({form.bytes, kHoldLive});
  }
  matcher_ = std::make_shared<Matcher>(texts);
  live_matcher_ = std::make_shared<Matcher>(live);
  for (auto* each : {&texts, &live})
    for (auto& text : *each) wipe(text.bytes);
  for (auto& form : forms) wipe(form.bytes);
  forms_ = std::make_shared<std::vector<Form>>(std::move(forms));
}

bool Scrubber::scrub(std::string& text) const {
  if (!matcher_ || !matcher_->prefilter().may_have(text)) return false;
  Replacer replacer(matcher_, forms_, {});
  std::string out;
  replacer.feed(text, out);
  replacer.finish(out);
  if (!replacer.replaced()) return false;
  wipe(text);
  text = std::move(out);
  return true;
}

std::unique_ptr<http::Filter> Scrubber::body_filter(std::string_view coding, Shape shape, Bad bad) const {
  if (!matcher_) return nullptr;
  return std::make_unique<BodyFilter>(Replacer(shape.live ? live_matcher_ : matcher_, forms_, shape),
                                      Inflate::make(coding), std::move(bad));
}

}  // namespace firestop::credentials
