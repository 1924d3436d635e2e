// Puts the placeholder back where an origin repeats the value: in heads and bodies on their way in. Finds the
// value, its escaped forms, its base64 (so Basic authentication) and hexadecimal; not what an origin makes of
// it otherwise: reversed, hashed, encrypted, in a compressed file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "credentials/finder.h"
#include "credentials/forms.h"
#include "credentials/secret.h"
#include "http/filter.h"

namespace firestop::credentials {

struct Known {
  SharedSecret value;
  std::string user;         // of Basic authentication, else ""
  std::string placeholder;  // stands for it inside
};

class Scrubber {
 public:
  explicit Scrubber(const std::vector<Known>& known);

  bool empty() const { return !matcher_; }
  // Whether there was something.
  bool scrub(std::string& text) const;

  // How a body may be changed.
  struct Shape {
    bool same_length =
        false;          // its length or its framing must stay: what is put in is cut or filled with '*'
    bool live = false;  // a stream of messages: the first three bytes of a value alone are not held back
  };
  // Undoes `coding` ("" for none; Inflate must know it). A body that is not of its coding is `bad`.
  std::unique_ptr<http::Filter> body_filter(std::string_view coding, Shape shape,
                                            std::function<http::Denial(const std::string& why)> bad) const;
  static constexpr size_t kMostHeld = 64u << 10;

 private:
  std::shared_ptr<const Matcher> matcher_, live_matcher_;
  std::shared_ptr<const std::vector<Form>> forms_;  // their bytes wiped
};

}  // namespace firestop::credentials
