// Finds placeholders where they do not belong: in a name, a head, a body on its way out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "credentials/finder.h"
#include "credentials/placeholder.h"
#include "http/filter.h"

namespace firestop::credentials {

// Makes the denial for a placeholder of this credential; nothing: it may stand there.
using OnFound = std::function<std::optional<http::Denial>(const std::string& credential)>;

class Detector {
 public:
  explicit Detector(const std::vector<Placeholder>& placeholders);

  bool empty() const { return credentials_.empty(); }
  // The credential whose placeholder stands in the text in any form, or null.
  const std::string* find(std::string_view text);
  // In a name as DNS has it: case is lost, and a long text is split by dots.
  const std::string* find_in_name(std::string_view host);

  // For a body on its way out, with its Content-Encoding ("" for none). Bytes pass as they are; a placeholder
  // ends it, and no more than its known prefix and four characters have left by then. At most kMostHeld bytes
  // are held back. A coding that it cannot read is looked at as it is; a body that is not of its coding, and
  // a bomb, is `bad`.
  std::unique_ptr<http::Filter> body_filter(std::string_view content_encoding, OnFound found,
                                            std::function<http::Denial(const std::string& why)> bad) const;
  static constexpr size_t kMostHeld = 64u << 10;

 private:
  std::shared_ptr<const Matcher> matcher_, name_matcher_;
  std::shared_ptr<const std::vector<std::string>> of_text_;  // credential of a text of matcher_
  std::vector<std::string> credentials_;                     // of a text of name_matcher_
  std::unique_ptr<Finder> finder_;                           // of find()
};

}  // namespace firestop::credentials
