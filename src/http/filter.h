// What looks at, holds back or changes a body while it goes by.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http/denial.h"

namespace firestop::http {

// Bytes of a body on their way. Everything fed comes out again, changed or not, in order, after finish() at
// the latest; what is held back is bounded by the filter. After a denial nothing more is fed.
class Filter {
 public:
  virtual ~Filter() = default;
  virtual std::optional<Denial> feed(std::string_view bytes, std::string& out) = 0;
  virtual std::optional<Denial> finish(std::string& out) = 0;
  // The head must not leave before this filter gives its first byte, or finishes: a decision needs the body's
  // start.
  virtual bool decides() const { return false; }
  // Bytes that it holds back now, and what it needs to read them.
  virtual size_t held() const { return 0; }
  // For the record, of a body that passed: what it asked for, such as a push's refs; or "".
  virtual std::string detail() const { return {}; }
};

}  // namespace firestop::http
