#include "credentials/detector.h"

#include <algorithm>

#include "credentials/forms.h"
#include "credentials/inflate.h"

namespace firestop::credentials {
namespace {

using http::Denial;
using Bad = std::function<Denial(const std::string&)>;
using Names = std::shared_ptr<const std::vector<std::string>>;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

// Of what was found, the first that may not stand there.
std::optional<Denial> judge(const std::vector<Finder::Hit>& hits, const std::vector<std::string>& names,
                            const OnFound& found) {
  for (const auto& hit : hits)
    if (auto denial = found(names[static_cast<size_t>(hit.text)])) return denial;
  return {};
}

// A body as it is: what may become a placeholder waits.
class PlainFilter : public http::Filter {
 public:
  PlainFilter(std::shared_ptr<const Matcher> matcher, Names names, OnFound found)
      : finder_(std::move(matcher), Finder::Hold::kTextsOnly),
        names_(std::move(names)),
        found_(std::move(found)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    hits_.clear();
    finder_.feed(bytes, hits_);
    if (auto denial = judge(hits_, *names_, found_)) return denial;
    const uint64_t held_from = finder_.held_from();
    if (held_.empty() && held_from == finder_.position()) {
      out.append(bytes);
      return {};
    }
    held_.append(bytes);
    auto held = static_cast<size_t>(finder_.position() - held_from);
    // White space between its characters could make it as long as anybody likes.
    held = std::min({held, held_.size(), Detector::kMostHeld});
    out.append(held_, 0, held_.size() - held);
    held_.erase(0, held_.size() - held);
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    hits_.clear();
    finder_.finish(hits_);
    if (auto denial = judge(hits_, *names_, found_)) return denial;
    out += held_;
    held_.clear();
    return {};
  }
  size_t held() const override { return held_.size(); }

 private:
  Finder finder_;
  Names names_;
  OnFound found_;
  std::vector<Finder::Hit> hits_;
  std::string held_;
};

// A compressed body, which is looked at as it is, too: a coding has places for bytes that are no text, such
// as the name of a file in gzip. It goes by as it came, and waits as a whole where its text may become a
// placeholder.
class CodedFilter : public http::Filter {
 public:
  CodedFilter(std::shared_ptr<const Matcher> matcher, Names names, OnFound found,
              std::unique_ptr<Inflate> inflate, Bad bad)
      : raw_(matcher, Finder::Hold::kTextsOnly),
        finder_(std::move(matcher), Finder::Hold::kTextsOnly),
        names_(std::move(names)),
        found_(std::move(found)),
        inflate_(std::move(inflate)),
        bad_(std::move(bad)) {}

  std::optional<Denial> feed(std::string_view bytes, std::string& out) override {
    hits_.clear();
    raw_.feed(bytes, hits_);
    const auto read = inflate_->feed(bytes, [this](std::string_view text) { finder_.feed(text, hits_); });
    if (auto denial = judge(hits_, *names_, found_)) return denial;
    if (!read) return bad_(read.error().message);
    held_.append(bytes);
    const bool waits = finder_.held_from() != finder_.position() || raw_.held_from() != raw_.position();
    if (!waits || held_.size() > Detector::kMostHeld) {
      out += held_;
      held_.clear();
    }
    any_ = any_ || !bytes.empty();
    return {};
  }
  std::optional<Denial> finish(std::string& out) override {
    hits_.clear();
    raw_.finish(hits_);
    finder_.finish(hits_);
    if (auto denial = judge(hits_, *names_, found_)) return denial;
    if (any_ && !inflate_->ended()) return bad_("it ends too early");
    out += held_;
    held_.clear();
    return {};
  }
  size_t held() const override { return held_.size() + inflate_->memory(); }

 private:
  Finder raw_, finder_;
  Names names_;
  OnFound found_;
  std::unique_ptr<Inflate> inflate_;
  Bad bad_;
  std::vector<Finder::Hit> hits_;
  std::string held_;
  bool any_ = false;
};

}  // namespace

Detector::Detector(const std::vector<Placeholder>& placeholders) {
  std::vector<Matcher::Text> texts, names;
  std::vector<std::string> of_text;
  for (const auto& placeholder : placeholders) {
    for (auto& form : forms_of(placeholder.text, placeholder.prefix.size(), "")) {
      names.push_back({lower(form.bytes), 1});
      credentials_.push_back(placeholder.credential);
      texts.push_back({std::move(form.bytes), form.hold_from});
      of_text.push_back(placeholder.credential);
    }
    // Case and punctuation of a name are gone: what is left of the placeholder is still telling.
    std::string letters = lower(placeholder.text);
    std::erase_if(letters, [](char c) { return c == '.' || c == '_' || c == '-'; });
    names.push_back({std::move(letters), 1});
    credentials_.push_back(placeholder.credential);
  }
  if (texts.empty()) return;
  matcher_ = std::make_shared<Matcher>(texts);
  name_matcher_ = std::make_shared<Matcher>(names);
  of_text_ = std::make_shared<std::vector<std::string>>(std::move(of_text));
  finder_ = std::make_unique<Finder>(matcher_, Finder::Hold::kTextsOnly);
}

const std::string* Detector::find(std::string_view text) {
  if (!finder_ || !matcher_->prefilter().may_have(text)) return nullptr;
  std::vector<Finder::Hit> hits;
  finder_->reset();
  finder_->feed(text, hits);
  finder_->finish(hits);
  return hits.empty() ? nullptr : &(*of_text_)[static_cast<size_t>(hits.front().text)];
}

const std::string* Detector::find_in_name(std::string_view host) {
  if (!name_matcher_) return nullptr;
  auto state = Matcher::kStart, letters = Matcher::kStart;
  for (char c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c != '.') state = name_matcher_->step(state, static_cast<unsigned char>(c));
    if (c != '.' && c != '-' && c != '_')
      letters = name_matcher_->step(letters, static_cast<unsigned char>(c));
    for (const auto each : {state, letters})
      if (const int text = name_matcher_->found(each); text != Matcher::kNone)
        return &credentials_[static_cast<size_t>(text)];
  }
  return nullptr;
}

std::unique_ptr<http::Filter> Detector::body_filter(std::string_view content_encoding, OnFound found,
                                                    Bad bad) const {
  if (!matcher_) return nullptr;
  if (auto inflate = Inflate::make(content_encoding))
    return std::make_unique<CodedFilter>(matcher_, of_text_, std::move(found), std::move(inflate),
                                         std::move(bad));
  return std::make_unique<PlainFilter>(matcher_, of_text_, std::move(found));
}

}  // namespace firestop::credentials
