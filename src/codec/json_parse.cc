#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "codec/json.h"
#include "codec/utf8.h"

namespace firestop::codec {
namespace {

namespace bj = boost::json;
using bj::error_code;
using View = bj::string_view;

// Builds the value bottom up. Every callback answers false to stop, with `wrong` saying why.
class Builder {
 public:
  // Boost.JSON's own limits: none; the text is bounded by its caller.
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return open(JsonArray{}); }
  bool on_array_end(size_t, error_code&) { return close(); }
  bool on_object_begin(error_code&) { return open(JsonObject{}); }
  bool on_object_end(size_t, error_code&) { return close(); }
  bool on_string_part(View s, size_t, error_code&) { return collect(s); }
  bool on_string(View s, size_t, error_code&) {
    collect(s);
    return add(std::exchange(text_, {}));
  }
  bool on_key_part(View s, size_t, error_code&) { return collect(s); }
  bool on_key(View s, size_t, error_code& ec) {
    collect(s);
    Level& level = levels_.back();
    level.key = std::exchange(text_, {});
    return !level.value.find(level.key) || stop("duplicate key", ec);
  }
  bool on_number_part(View s, error_code&) { return collect(s); }
  bool on_int64(int64_t i, View, error_code&) {
    text_.clear();
    return add(i);
  }
  bool on_uint64(uint64_t u, View, error_code&) {
    text_.clear();
    return add(u);
  }
  // Boost.JSON 1.81 rounds doubles wrongly in the last place: its own value is not used.
  bool on_double(double, View s, error_code& ec) {
    collect(s);
    double value = 0;
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    bool whole = end == text_.data() + text_.size();
    text_.clear();
    if (error != std::errc{} || !whole || !std::isfinite(value)) return stop("number out of range", ec);
    return add(value);
  }
  bool on_bool(bool b, error_code&) { return add(b); }
  bool on_null(error_code&) { return add(Json()); }
  bool on_comment_part(View, error_code&) { return true; }
  bool on_comment(View, error_code&) { return true; }

  Json take() { return std::move(root_); }
  const char* wrong() const { return wrong_; }

 private:
  struct Level {
    Json value;
    std::string key;  // of an object: the member that comes next
  };

  bool stop(const char* wrong, error_code& ec) {
    wrong_ = wrong;
    ec = bj::make_error_code(bj::error::exception);
    return false;
  }
  bool collect(View s) {
    text_.append(s.data(), s.size());
    return true;
  }
  bool open(Json container) {
    levels_.push_back({std::move(container), {}});
    return true;
  }
  bool close() {
    Json done = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(done));
  }
  bool add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (JsonArray* array = levels_.back().value.as_array()) {
      array->push_back(std::move(value));
    } else {
      levels_.back().value.as_object()->emplace(std::move(levels_.back().key), std::move(value));
    }
    return true;
  }

  Json root_;
  std::vector<Level> levels_;
  std::string text_;  // of the string, key or number that is being read
  const char* wrong_ = nullptr;
};

std::string position(std::string_view before) {
  size_t line = 1, column = 1;
  for (char c : before) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((c & 0xc0) != 0x80) {
      ++column;
    }
  }
  return std::to_string(line) + ":" + std::to_string(column) + ": ";
}

const char* describe(const error_code& ec) {
  switch (static_cast<bj::error>(ec.value())) {
    case bj::error::extra_data:
      return "something after the end of the document";
    case bj::error::incomplete:
      return "the document is not complete";
    case bj::error::exponent_overflow:
      return "number out of range";
    case bj::error::too_deep:
      return "nested too deeply";
    case bj::error::illegal_leading_surrogate:
    case bj::error::illegal_trailing_surrogate:
      return "a surrogate without its other half";
    case bj::error::expected_hex_digit:
      return "expected a hexadecimal digit";
    default:
      return "syntax error";
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  // Boost.JSON checks strings only; a stray byte elsewhere is a syntax error anyway.
  bj::parse_options options;
  options.max_depth = kMaxJsonDepth;
  bj::basic_parser<Builder> parser(options);
  error_code ec;
  size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = bj::make_error_code(bj::error::extra_data);
  if (!ec) return parser.handler().take();
  const char* wrong = parser.handler().wrong();
  return fail("json.bad", position(text.substr(0, used)) + (wrong ? wrong : describe(ec)));
}

}  // namespace firestop::codec
