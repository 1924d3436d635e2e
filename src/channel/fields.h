// Writes and reads the members of messages from one description of them (messages.cc), so that the two cannot
// differ. Writer and Reader have the same methods; both check ranges.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "codec/json.h"

namespace firestop::channel {

enum class Unknown { kIgnore, kRefuse };  // members that the description does not name

struct Range {
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();
};

class Writer {
 public:
  template <typename T>
  using Ref = const T&;

  // Numbers: T is an integer type; its value must lie in the range.
  template <typename T>
  void integer(const char* name, T value, Range range) {
    if (!std::in_range<int64_t>(value)) return complain(name, "out of range");
    put_integer(name, static_cast<int64_t>(value), range);
  }
  void real(const char* name, double value, double high);
  void boolean(const char* name, bool value);
  void token(const char* name, const std::string& value, size_t max);     // UTF-8, no control characters
  void text(const char* name, const std::string& value);                  // for people: cut, made printable
  void bytes(const char* name, const std::string& value, size_t max);     // as base64
  void c_string(const char* name, const std::string& value, size_t max);  // as base64, without NUL

  // Lists of the above, and of structures: `each` describes one.
  template <typename T, typename F>
  void objects(const char* name, const std::vector<T>& list, size_t max, F each) {
    if (list.size() > max) return complain(name, "too many");
    codec::JsonArray array;
    for (const T& element : list) {
      Writer inner;
      each(inner, element);
      if (!inner.fault_.empty()) complain(name, inner.fault_);
      array.emplace_back(std::move(inner.members_));
    }
    put(name, std::move(array));
  }
  void tokens(const char* name, const std::vector<std::string>& list, size_t max_count, size_t max);
  void c_strings(const char* name, const std::vector<std::string>& list, size_t max_count, size_t max);
  void integers(const char* name, const std::vector<uint32_t>& list, size_t max_count);

  void put(const char* name, codec::Json value) { members_.insert_or_assign(name, std::move(value)); }
  codec::JsonObject take() { return std::move(members_); }
  const std::string& fault() const { return fault_; }

 private:
  void complain(std::string_view name, std::string_view what);
  void put_integer(const char* name, int64_t value, Range range);

  codec::JsonObject members_;
  std::string fault_;
};

// Reads from an object that must outlive it. After the first fault it reads nothing more.
class Reader {
 public:
  template <typename T>
  using Ref = T&;

  Reader(const codec::Json& object, Unknown unknown);

  template <typename T>
  void integer(const char* name, T& value, Range range) {
    int64_t wide = 0;
    if (!get_integer(name, wide, range)) return;
    if (!std::in_range<T>(wide)) return complain(name, "out of range");
    value = static_cast<T>(wide);
  }
  void real(const char* name, double& value, double high);
  void boolean(const char* name, bool& value);
  void token(const char* name, std::string& value, size_t max);
  void text(const char* name, std::string& value);
  void bytes(const char* name, std::string& value, size_t max);
  void c_string(const char* name, std::string& value, size_t max);

  template <typename T, typename F>
  void objects(const char* name, std::vector<T>& list, size_t max, F each) {
    const codec::JsonArray* array = get_array(name, max);
    if (!array) return;
    for (const codec::Json& element : *array) {
      Reader inner(element, unknown_);
      each(inner, list.emplace_back());
      inner.finish();
      if (!inner.fault_.empty()) return complain(name, inner.fault_);
    }
  }
  void tokens(const char* name, std::vector<std::string>& list, size_t max_count, size_t max);
  void c_strings(const char* name, std::vector<std::string>& list, size_t max_count, size_t max);
  void integers(const char* name, std::vector<uint32_t>& list, size_t max_count);

  void finish();  // complains of members that nobody asked for, if they are refused
  const std::string& fault() const { return fault_; }

 private:
  const codec::Json* get(const char* name);
  const std::string* get_string(const char* name);
  const codec::JsonArray* get_array(const char* name, size_t max_count);
  bool get_integer(const char* name, int64_t& value, Range range);
  void complain(std::string_view name, std::string_view what);

  const codec::Json& object_;
  Unknown unknown_;
  std::vector<std::string_view> known_;
  std::string fault_;
};

}  // namespace firestop::channel
