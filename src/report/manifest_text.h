// A manifest's text, edited a line at a time so that what was not touched stays as its author wrote it, and
// the edits as a unified diff. Knows of YAML what it takes to find a key's lines; who edits has to read the
// result again and take it back if it does not say what was meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::report {

class ManifestText {
 public:
  explicit ManifestText(std::string_view text);

  std::string text() const;
  bool changed() const;
  // "--- a", "+++ b" and hunks with three lines of context.
  std::string diff(const std::string& before, const std::string& after) const;

  // Lines of the present text, from 0. [from, to)
  struct Block {
    size_t from = 0, to = 0;
  };
  size_t lines() const;
  // What begins in this line and all below it that stands deeper; not the comments and blank lines behind it.
  std::optional<Block> block_at(size_t line) const;
  std::optional<Block> top_level(std::string_view key) const;
  // The block of `key` directly within a mapping's block ("- " in front of its first line or not).
  std::optional<Block> member(const Block& mapping, std::string_view key) const;

  // With the comments directly above it.
  void remove(const Block& block);
  // Of a mapping in block or one-line flow style: sets a member (adds it if it is not there), or takes it
  // out.
  bool set_member(const Block& mapping, std::string_view key, const std::string& value);
  bool remove_member(const Block& mapping, std::string_view key);
  // The value behind "key:" anywhere in the block's lines, after `behind` if that is not empty.
  bool replace_value(const Block& block, std::string_view key, const std::string& value,
                     std::string_view behind = {});
  void insert(size_t before, const std::string& line);

 private:
  struct Line {
    std::string text;
    bool added = false, removed = false;
  };
  size_t index_of(size_t line) const;  // into lines_
  const std::string& at(size_t line) const { return lines_[index_of(line)].text; }
  void replace_line(size_t line, std::string text);
  bool set_in_flow(size_t line, std::string_view key, const std::string* value);

  std::vector<Line> lines_;
  bool ends_with_newline_ = true;
};

// As a YAML flow value: quoted where it has to be.
std::string yaml_text(std::string_view text);
std::string yaml_list(const std::vector<std::string>& items);  // "[a, b]"

}  // namespace firestop::report
