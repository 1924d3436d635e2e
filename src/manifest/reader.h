// Typed values out of a YAML tree, and the faults that are found on the way. Whatever is wrong becomes a
// fault with its position, field and expectation; the caller goes on with what was right.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "codec/yaml.h"
#include "manifest/keys.h"

namespace firestop::manifest {

// A value and the path of its field.
struct Place {
  const codec::YamlNode* node = nullptr;
  std::string field;

  Position where() const { return node->where; }
};

// A member of a mapping: its key too.
struct Member : Place {
  std::string key;
  Position key_where;
};

// Whether a scalar may be empty.
enum class Empty { kRefuse, kAccept };

class Reader {
 public:
  static constexpr size_t kMostFaults = 100;
  static constexpr size_t kMostItems = 1024;

  explicit Reader(std::string file) : file_(std::move(file)) {}

  void fault(Position where, std::string field, std::string wrong, std::string expected = {});
  void fault(const Place& place, std::string wrong, std::string expected = {});
  size_t fault_count() const { return faults_.size(); }
  // By position. At most kMostFaults, and then one that says how many more there are.
  std::vector<Diagnostic> take_faults();

  // The members of a mapping; a fault and nothing if it is something else or has more than `most`. Keys are
  // not looked at.
  std::vector<Member> members(const Place& place, std::string_view expected, size_t most = kMostItems);
  // The items of a list, likewise.
  std::vector<Place> items(const Place& place, std::string_view expected, size_t most = kMostItems);

  // Text without NUL. `expected` completes "expected ...".
  std::optional<std::string> text(const Place& place, std::string_view expected,
                                  Empty empty = Empty::kRefuse);
  std::optional<std::vector<std::string>> texts(const Place& place, std::string_view expected, Empty empty);
  std::optional<bool> boolean(const Place& place);
  std::optional<int64_t> integer(const Place& place, int64_t least, int64_t most);
  std::optional<double> number(const Place& place, double least, double most);
  std::optional<uint64_t> bytes(const Place& place, uint64_t least, uint64_t most);
  std::optional<uint64_t> rate(const Place& place, uint64_t least, uint64_t most);  // bytes a second
  std::optional<std::chrono::milliseconds> duration(const Place& place, std::chrono::milliseconds least,
                                                    std::chrono::milliseconds most);
  // The place of the word in `words`.
  std::optional<size_t> word(const Place& place, Keys words);

 private:
  bool is(const Place& place, codec::YamlNode::Kind kind, std::string_view expected);
  bool few(const Place& place, size_t count, size_t most);
  // The text of a scalar that is no quoted text and of a numeric type.
  std::optional<std::string> plain_number(const Place& place, std::string_view expected);

  std::string file_;
  std::vector<Diagnostic> faults_;
};

// A mapping with a fixed set of keys.
class Fields {
 public:
  // Faults for every key that is not in `keys`. `what` is how people call the mapping: "a git_repo entry".
  Fields(Reader& reader, const Place& place, Keys keys, std::string_view what);

  bool valid() const { return valid_; }
  std::optional<Place> get(std::string_view key) const;
  // As get; a fault if it is missing.
  std::optional<Place> require(std::string_view key, std::string_view expected) const;
  bool has(std::string_view key) const { return get(key).has_value(); }
  // Where the key stands, for faults about its being there at all.
  Position key_position(std::string_view key) const;

 private:
  Reader& reader_;
  Place place_;
  bool valid_ = false;
};

// How people call what stands there: "a list", "a number".
std::string describe(const codec::YamlNode& node);
// The candidate that `word` is most likely a slip of, or empty.
std::string_view closest(std::string_view word, Keys candidates);
// "a, b or c"
std::string listed(Keys words);

}  // namespace firestop::manifest
