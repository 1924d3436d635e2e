#include "report/manifest_text.h"

#include <algorithm>
#include <utility>

#include "codec/json.h"

namespace firestop::report {
namespace {

size_t indent_of(std::string_view line) {
  const size_t at = line.find_first_not_of(' ');
  return at == std::string_view::npos ? line.size() : at;
}

bool is_blank_or_comment(std::string_view line) {
  const size_t at = line.find_first_not_of(" \t\r");
  return at == std::string_view::npos || line[at] == '#';
}

bool starts_item(std::string_view line) {
  const auto rest = line.substr(indent_of(line));
  return rest == "-" || rest.starts_with("- ");
}

// Where the mapping's keys stand: behind "- " of an item.
size_t key_column(std::string_view line) {
  size_t at = indent_of(line);
  if (starts_item(line)) at = std::min(line.find_first_not_of(' ', at + 1), line.size());
  return at;
}

bool has_key_at(std::string_view line, size_t column, std::string_view key) {
  if (column >= line.size()) return false;
  auto rest = line.substr(column);
  if (!rest.starts_with(key)) return false;
  rest.remove_prefix(key.size());
  return rest == ":" || rest.starts_with(": ") || rest.starts_with(":\t");
}

// The end of a flow value that begins at `at`: at a comma or a bracket of what is around it.
size_t flow_value_end(std::string_view line, size_t at) {
  int depth = 0;
  char quote = '\0';
  for (; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != '\0') {
      if (c == '\\' && quote == '"')
        ++at;
      else if (c == quote)
        quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (depth-- == 0) return at;
    } else if (depth == 0 && (c == ',' || (c == '#' && at > 0 && line[at - 1] == ' '))) {
      return at;
    }
  }
  return line.size();
}

// "key:" as a key of the flow mapping that opens at `open`; npos if it has none.
size_t flow_key(std::string_view line, size_t open, std::string_view key) {
  for (size_t at = open + 1; at < line.size();) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    if (has_key_at(line, at, key)) return at;
    at = flow_value_end(line, at);
    if (at >= line.size() || line[at] != ',') return std::string_view::npos;
    ++at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string yaml_text(std::string_view text) {
  const bool plain =
      !text.empty() &&
      (text[0] == '/' || (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z')) &&
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
          "/_.~*+=@%-") == std::string_view::npos;
  if (plain) return std::string(text);
  std::string out;
  codec::append_json_string(out, text);
  return out;
}

std::string yaml_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + yaml_text(item);
  return out + "]";
}

ManifestText::ManifestText(std::string_view text) : ends_with_newline_(text.ends_with('\n')) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines_.push_back({std::string(text.substr(0, end)), false, false});
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

std::string ManifestText::text() const {
  std::string out;
  for (const Line& line : lines_)
    if (!line.removed) out += line.text + "\n";
  if (!ends_with_newline_ && !out.empty()) out.pop_back();
  return out;
}

bool ManifestText::changed() const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [](const Line& line) { return line.added || line.removed; });
}

std::string ManifestText::diff(const std::string& before, const std::string& after) const {
  constexpr size_t kContext = 3;
  if (!changed()) return {};
  std::string out = "--- " + before + "\n+++ " + after + "\n";
  size_t old_line = 0, new_line = 0, at = 0;  // lines before `at`
  while (at < lines_.size()) {
    size_t first = at;
    while (first < lines_.size() && !lines_[first].added && !lines_[first].removed) ++first;
    if (first == lines_.size()) break;
    const size_t from = std::max(at, first - std::min(first, kContext));
    old_line += from - at;
    new_line += from - at;
    // Up to where six unchanged lines follow.
    size_t last = first, to = first;
    for (; to < lines_.size() && to <= last + 2 * kContext; ++to)
      if (lines_[to].added || lines_[to].removed) last = to;
    to = std::min(lines_.size(), last + 1 + kContext);
    size_t old_count = 0, new_count = 0;
    std::string body, added;  // of a run of changes, what goes stands first
    for (size_t i = from; i < to; ++i) {
      const Line& line = lines_[i];
      if (line.added && line.removed) continue;  // taken back
      old_count += line.added ? 0 : 1;
      new_count += line.removed ? 0 : 1;
      if (line.added) {
        added += "+" + line.text + "\n";
        continue;
      }
      if (!line.removed) body += std::exchange(added, {});
      body += (line.removed ? "-" : " ") + line.text + "\n";
    }
    body += added;
    const auto range = [](size_t before_it, size_t count) {
      return std::to_string(before_it + (count > 0 ? 1 : 0)) + "," + std::to_string(count);
    };
    out += "@@ -" + range(old_line, old_count) + " +" + range(new_line, new_count) + " @@\n" + body;
    old_line += old_count;
    new_line += new_count;
    at = to;
  }
  return out;
}

size_t ManifestText::lines() const {
  return static_cast<size_t>(
      std::count_if(lines_.begin(), lines_.end(), [](const Line& line) { return !line.removed; }));
}

size_t ManifestText::index_of(size_t line) const {
  for (size_t i = 0; i < lines_.size(); ++i)
    if (!lines_[i].removed && line-- == 0) return i;
  return lines_.size();
}

std::optional<ManifestText::Block> ManifestText::block_at(size_t line) const {
  const size_t count = lines();
  if (line >= count || is_blank_or_comment(at(line))) return {};
  const size_t indent = indent_of(at(line));
  const bool item = starts_item(at(line));
  Block block{line, line + 1};
  for (size_t next = line + 1; next < count; ++next) {
    const std::string& text = at(next);
    if (is_blank_or_comment(text)) continue;
    const size_t own = indent_of(text);
    // A list may stand as deep as its key.
    if (own < indent || (own == indent && (item || !starts_item(text)))) break;
    block.to = next + 1;
  }
  return block;
}

std::optional<ManifestText::Block> ManifestText::top_level(std::string_view key) const {
  const size_t count = lines();
  for (size_t line = 0; line < count; ++line)
    if (has_key_at(at(line), 0, key)) return block_at(line);
  return {};
}

std::optional<ManifestText::Block> ManifestText::member(const Block& mapping, std::string_view key) const {
  size_t column = key_column(at(mapping.from));
  size_t line = mapping.from;
  if (!starts_item(at(mapping.from)) && at(mapping.from).ends_with(':')) {  // "key:" and its mapping below
    for (++line; line < mapping.to && is_blank_or_comment(at(line)); ++line) {
    }
    if (line >= mapping.to) return {};
    column = indent_of(at(line));
  }
  for (; line < mapping.to; ++line) {
    if (is_blank_or_comment(at(line)) || key_column(at(line)) != column || !has_key_at(at(line), column, key))
      continue;
    Block out{line, line + 1};
    for (size_t next = line + 1; next < mapping.to; ++next) {
      if (is_blank_or_comment(at(next))) continue;
      const size_t own = indent_of(at(next));
      if (own < column || (own == column && !starts_item(at(next)))) break;
      out.to = next + 1;
    }
    return out;
  }
  return {};
}

void ManifestText::replace_line(size_t line, std::string text) {
  const size_t index = index_of(line);
  if (lines_[index].text == text) return;
  lines_[index].removed = true;
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(index) + 1, Line{std::move(text), true, false});
}

void ManifestText::insert(size_t before, const std::string& line) {
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(index_of(before)), Line{line, true, false});
}

void ManifestText::remove(const Block& block) {
  size_t from = block.from;
  const size_t indent = indent_of(at(from));
  while (from > 0 && is_blank_or_comment(at(from - 1)) && at(from - 1).find('#') == indent) --from;
  for (size_t line = from; line < block.to; ++line) lines_[index_of(from)].removed = true;
}

bool ManifestText::set_in_flow(size_t line, std::string_view key, const std::string* value) {
  std::string text = at(line);
  const size_t open = text.find('{');
  if (open == std::string::npos) return false;
  size_t found = flow_key(text, open, key);
  if (found == std::string::npos) {
    if (!value) return true;
    // Before the brace that closes it; a mapping on several lines has none here.
    size_t end = flow_value_end(text, open + 1);
    while (end < text.size() && text[end] == ',') end = flow_value_end(text, end + 1);
    if (end >= text.size()) return false;
    text.insert(end, ", " + std::string(key) + ": " + *value);
  } else {
    const size_t end = flow_value_end(text, found);
    if (value) {
      text.replace(found, end - found, std::string(key) + ": " + *value);
    } else if (end < text.size() && text[end] == ',') {
      text.erase(found, std::min(text.find_first_not_of(' ', end + 1), text.size()) - found);
    } else {
      const size_t comma = text.rfind(',', found);
      const size_t from = comma == std::string::npos || comma < open ? found : comma;
      text.erase(from, end - from);
    }
  }
  replace_line(line, std::move(text));
  return true;
}

bool ManifestText::set_member(const Block& mapping, std::string_view key, const std::string& value) {
  if (const auto known = member(mapping, key)) {
    const std::string first = at(known->from);
    const std::string line = first.substr(0, first.find(':', key_column(first)) + 1) + " " + value;
    size_t comment = first.find(" #");
    while (comment != std::string::npos && comment > 0 && first[comment - 1] == ' ') --comment;
    for (size_t i = known->from + 1; i < known->to; ++i) lines_[index_of(known->from + 1)].removed = true;
    replace_line(known->from, line + (comment == std::string::npos ? "" : first.substr(comment)));
    return true;
  }
  const std::string& first = at(mapping.from);
  const size_t column = key_column(first);
  if (column < first.size() && first[column] == '{') return set_in_flow(mapping.from, key, &value);
  if (!starts_item(first) && first.find('{') != std::string::npos)
    return set_in_flow(mapping.from, key, &value);
  if (!starts_item(first)) return false;
  insert(mapping.from + 1, std::string(column, ' ') + std::string(key) + ": " + value);
  return true;
}

bool ManifestText::remove_member(const Block& mapping, std::string_view key) {
  if (const auto known = member(mapping, key)) {
    if (known->from == mapping.from) return false;  // it carries the "- "
    remove(*known);
    return true;
  }
  return set_in_flow(mapping.from, key, nullptr);
}

bool ManifestText::replace_value(const Block& block, std::string_view key, const std::string& value,
                                 std::string_view behind) {
  bool reached = behind.empty();
  for (size_t line = block.from; line < block.to; ++line) {
    std::string text = at(line);
    if (is_blank_or_comment(text)) continue;
    size_t from = 0;
    if (!reached) {
      from = text.find(std::string(behind) + ":");
      if (from == std::string::npos) continue;
      from += behind.size() + 1;
      reached = true;
    }
    for (size_t found = text.find(std::string(key) + ":", from); found != std::string::npos;
         found = text.find(std::string(key) + ":", found + 1)) {
      if (found > 0 && std::string_view(" ,{").find(text[found - 1]) == std::string_view::npos) continue;
      const size_t begin = std::min(text.find_first_not_of(' ', found + key.size() + 1), text.size());
      const size_t end = std::min(text.find_first_of(" ,}#\r", begin), text.size());
      text.replace(begin, end - begin, value);
      replace_line(line, std::move(text));
      return true;
    }
  }
  return false;
}

}  // namespace firestop::report
