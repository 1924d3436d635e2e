#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace firestop {

std::string Error::to_string() const {
  return hint.empty() ? message : message + "\n  " + hint;
}

Unexpected fail(std::string_view code, std::string message, std::string hint) {
  return Unexpected(Error{std::string(code), std::move(message), std::move(hint), 0});
}

Unexpected fail_errno(std::string_view code, std::string what, std::string hint) {
  const int number = errno;
  return Unexpected(
      Error{std::string(code), std::move(what) + ": " + std::strerror(number), std::move(hint), number});
}

Unexpected wrap(Error error, std::string_view context) {
  error.message = std::string(context) + ": " + error.message;
  return Unexpected(std::move(error));
}

}  // namespace firestop
