// Results instead of exceptions. `Result<T>` is an alias, so that it can become std::expected later.
//
//   Result<int> parse(std::string_view text);
//   Result<void> use() {
//     TRY_ASSIGN(int n, parse("7"));   // returns the error to the caller
//     TRY(write(n));
//     return {};
//   }
#pragma once

#include <source_location>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace firestop {

// What went wrong. `code` is stable and for programs ("git.not_found"); `message` says what happened and
// where; `hint`, if any, says what to do.
struct Error {
  std::string code;
  std::string message;
  std::string hint;
  int sys_errno = 0;  // 0, or the errno behind it

  // The message with the hint on a line of its own.
  std::string to_string() const;
};

template <typename T>
using Result = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

[[nodiscard]] Unexpected fail(std::string_view code, std::string message, std::string hint = {});
// `what` followed by strerror(errno); reads errno first.
[[nodiscard]] Unexpected fail_errno(std::string_view code, std::string what, std::string hint = {});
// The same error with "context: " before its message.
[[nodiscard]] Unexpected wrap(Error error, std::string_view context);

}  // namespace firestop

#define FS_CONCAT_(a, b) a##b
#define FS_CONCAT(a, b) FS_CONCAT_(a, b)

#define TRY(expr)                                                                \
  do {                                                                           \
    if (auto fs_result_ = (expr); !fs_result_) [[unlikely]]                      \
      return ::tl::unexpected<::firestop::Error>(std::move(fs_result_).error()); \
  } while (false)

#define TRY_ASSIGN(decl, expr) TRY_ASSIGN_(FS_CONCAT(fs_result_, __LINE__), decl, expr)
#define TRY_ASSIGN_(tmp, decl, expr)                                    \
  auto tmp = (expr);                                                    \
  if (!tmp) [[unlikely]]                                                \
    return ::tl::unexpected<::firestop::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)
