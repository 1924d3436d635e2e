// Below yaml.h: a tree from events, whoever parses. Duplicate keys, keys that are not text, depth and count
// are found here.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codec/yaml.h"

namespace firestop::codec {

class TreeBuilder {
 public:
  enum class Layout { kBlock, kFlow };

  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  // Each returns false when a limit is reached (a fault says which); then nothing may follow.
  bool leaf(YamlNode node);  // a scalar, null or invalid node
  bool begin(YamlNode::Kind kind, Position where, Layout layout);
  bool end();

  // A fault at the place that has been reached; false when there are too many.
  bool fault(Position where, std::string wrong, std::string expected);

  bool in_flow() const { return !open_.empty() && open_.back().layout == Layout::kFlow; }
  Position last_key() const;  // of the mapping that is open; {} outside of one
  bool complete() const { return done_; }
  YamlNode take_root() { return std::move(root_); }
  std::vector<Diagnostic> take_faults() { return std::move(faults_); }

 private:
  struct Open {
    YamlNode node;
    Layout layout;
    bool key_next = false;  // of a mapping
    bool keep = true;       // whether the value of the current key goes into the tree
    std::string key;
    Position key_where;
    std::unordered_map<std::string, Position> seen;
  };

  bool count(Position where);
  bool add(YamlNode node);
  bool take_key(YamlNode node);
  std::string path() const;

  YamlLimits limits_;
  std::vector<Open> open_;
  YamlNode root_;
  bool done_ = false;
  size_t nodes_ = 0;
  std::vector<Diagnostic> faults_;
};

// Strict JSON (RFC 8259) into `builder`; false if it is not JSON or a limit is reached: what was built is
// then void, and the YAML reader says what is wrong.
bool read_json(std::string_view text, TreeBuilder& builder);

}  // namespace firestop::codec
