#include "manifest/reader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "base/units.h"

namespace firestop::manifest {

using codec::in_quotes;
using codec::ScalarType;
using codec::YamlNode;

namespace {

// Bounded and printable, for numbers that a document may spell with any number of digits.
std::string shown(std::string_view text) {
  const std::string out = in_quotes(text);
  return out.substr(1, out.size() - 2);
}

}  // namespace

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kInvalid:
      return "invalid";
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMapping:
      return "a mapping";
    case YamlNode::Kind::kScalar:
      break;
  }
  switch (codec::type_of(node)) {
    case ScalarType::kNull:
      return "empty";
    case ScalarType::kBool:
      return "the truth value " + node.text;
    case ScalarType::kInteger:
    case ScalarType::kFloat:
      return "the number " + shown(node.text);
    case ScalarType::kText:
      break;
  }
  return "the text " + in_quotes(node.text);
}

std::string listed(Keys words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string_view closest(std::string_view word, Keys candidates) {
  if (word.empty() || word.size() > 40) return {};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (word.size() >= 3)
    for (const auto candidate : candidates)
      if (candidate.starts_with(word)) return candidate;
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto candidate : candidates) {
    // Edit distance with swaps of neighbours, row by row.
    std::vector<size_t> before(candidate.size() + 1), last(candidate.size() + 1), row(candidate.size() + 1);
    std::iota(last.begin(), last.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const bool same = lower(word[i - 1]) == lower(candidate[j - 1]);
        row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
        if (i > 1 && j > 1 && lower(word[i - 1]) == lower(candidate[j - 2]) &&
            lower(word[i - 2]) == lower(candidate[j - 1]))
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
      before = last;
      last = row;
    }
    if (last.back() < best_distance && last.back() < candidate.size()) {
      best_distance = last.back();
      best = candidate;
    }
  }
  return best;
}

void Reader::fault(Position where, std::string field, std::string wrong, std::string expected) {
  faults_.push_back({file_, where, std::move(field), std::move(wrong), std::move(expected)});
}

void Reader::fault(const Place& place, std::string wrong, std::string expected) {
  fault(place.where(), place.field, std::move(wrong), std::move(expected));
}

std::vector<Diagnostic> Reader::take_faults() {
  std::sort(faults_.begin(), faults_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.line, a.where.column, a.field, a.wrong) <
           std::tie(b.where.line, b.where.column, b.field, b.wrong);
  });
  if (faults_.size() > kMostFaults) {
    const size_t more = faults_.size() - kMostFaults;
    faults_.resize(kMostFaults);
    faults_.push_back({file_, {}, "", std::to_string(more) + " more faults", "mend these first"});
  }
  return std::move(faults_);
}

bool Reader::is(const Place& place, YamlNode::Kind kind, std::string_view expected) {
  if (place.node->kind == kind) return true;
  if (place.node->kind != YamlNode::Kind::kInvalid)
    fault(place, "is " + describe(*place.node), "expected " + std::string(expected));
  return false;
}

bool Reader::few(const Place& place, size_t count, size_t most) {
  if (count <= most) return true;
  fault(place,
        "has " + std::to_string(count) + (place.node->kind == YamlNode::Kind::kMapping ? " keys" : " items"),
        "expected at most " + std::to_string(most));
  return false;
}

std::vector<Member> Reader::members(const Place& place, std::string_view expected, size_t most) {
  std::vector<Member> out;
  if (!is(place, YamlNode::Kind::kMapping, expected) || !few(place, place.node->members.size(), most))
    return out;
  for (const auto& member : place.node->members) {
    Member next;
    next.node = &member.value;
    next.field = codec::child_path(place.field, member.key);
    next.key = member.key;
    next.key_where = member.where;
    out.push_back(std::move(next));
  }
  return out;
}

std::vector<Place> Reader::items(const Place& place, std::string_view expected, size_t most) {
  std::vector<Place> out;
  if (!is(place, YamlNode::Kind::kSequence, expected) || !few(place, place.node->items.size(), most))
    return out;
  for (size_t i = 0; i < place.node->items.size(); ++i)
    out.push_back({&place.node->items[i], codec::item_path(place.field, i)});
  return out;
}

std::optional<std::string> Reader::text(const Place& place, std::string_view expected, Empty empty) {
  if (!is(place, YamlNode::Kind::kScalar, expected)) return std::nullopt;
  const auto& node = *place.node;
  if (codec::type_of(node) != ScalarType::kText) {
    fault(place, "is " + describe(node),
          "expected " + std::string(expected) + "; write \"" + shown(node.text) + "\" in quotes");
    return std::nullopt;
  }
  if (node.text.find('\0') != std::string::npos) {
    fault(place, "contains NUL", "expected " + std::string(expected));
    return std::nullopt;
  }
  if (node.text.empty() && empty == Empty::kRefuse) {
    fault(place, "is empty", "expected " + std::string(expected));
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::vector<std::string>> Reader::texts(const Place& place, std::string_view expected,
                                                      Empty empty) {
  if (!is(place, YamlNode::Kind::kSequence, expected) || !few(place, place.node->items.size(), kMostItems))
    return std::nullopt;
  std::vector<std::string> out;
  bool good = true;
  for (const auto& item : items(place, expected)) {
    auto value = text(item, "text", empty);
    good = good && value.has_value();
    if (value) out.push_back(std::move(*value));
  }
  if (!good) return std::nullopt;
  return out;
}

std::optional<bool> Reader::boolean(const Place& place) {
  constexpr std::string_view kExpected = "true or false";
  if (!is(place, YamlNode::Kind::kScalar, kExpected)) return std::nullopt;
  const auto& node = *place.node;
  if (codec::type_of(node) == ScalarType::kBool) return node.text[0] == 't' || node.text[0] == 'T';
  constexpr std::string_view kYaml11[] = {"yes", "no", "on", "off", "y", "n"};
  const bool old = closest(node.text, kYaml11) == node.text;
  fault(place, "is " + describe(node),
        old ? "expected true or false; in YAML 1.2 this word is text" : "expected true or false");
  return std::nullopt;
}

std::optional<std::string> Reader::plain_number(const Place& place, std::string_view expected) {
  if (!is(place, YamlNode::Kind::kScalar, expected)) return std::nullopt;
  const auto type = codec::type_of(*place.node);
  if (type == ScalarType::kInteger || type == ScalarType::kFloat) return place.node->text;
  fault(place, "is " + describe(*place.node), "expected " + std::string(expected));
  return std::nullopt;
}

std::optional<int64_t> Reader::integer(const Place& place, int64_t least, int64_t most) {
  const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto written = plain_number(place, expected);
  if (!written) return std::nullopt;
  std::string_view digits = *written;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const std::string_view magnitude = digits.substr(digits.starts_with('-') ? 1 : 0);
  if (magnitude.size() > 1 && magnitude[0] == '0' &&
      magnitude.find_first_not_of("01234567") == std::string_view::npos) {
    fault(place,
          "the leading zero of " + shown(*written) + " means octal to some readers and decimal to others",
          "expected " + expected + ", without it");
    return std::nullopt;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < least || value > most) {
    const bool whole = magnitude.find_first_not_of("0123456789") == std::string_view::npos;
    const char* why =
        whole ? (digits.starts_with('-') || (value < least && error == std::errc()) ? " is too small"
                                                                                    : " is too large")
              : " is not a whole decimal number";
    fault(place, shown(*written) + why, "expected " + expected);
    return std::nullopt;
  }
  return value;
}

std::optional<double> Reader::number(const Place& place, double least, double most) {
  const auto decimal = [](double value) {
    std::string out = std::to_string(value);
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
    return out;
  };
  const std::string expected = "a number from " + decimal(least) + " to " + decimal(most);
  const auto written = plain_number(place, expected);
  if (!written) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(written->data(), written->data() + written->size(), value);
  // Comparisons are false for NaN. At most three decimals, so that every reader has the same value.
  const size_t point = written->find('.');
  const bool exact = point == std::string::npos || written->size() - point <= 4;
  const bool read = error == std::errc() && end == written->data() + written->size() && exact &&
                    written->find_first_of("eExoin") == std::string::npos;
  if (!read || !(value >= least && value <= most)) {
    fault(place,
          shown(*written) + (!read           ? " is not accepted"
                             : value < least ? " is too small"
                                             : " is too large"),
          "expected " + expected + ", with at most three decimals");
    return std::nullopt;
  }
  return value;
}

namespace {

// What is wrong with a quantity, as far as one can guess.
std::string unit_hint(const YamlNode& node, std::string_view text) {
  if (text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9') return ", which is negative";
  if (node.kind == YamlNode::Kind::kScalar && codec::type_of(node) == ScalarType::kInteger &&
      text[0] != '-' && text[0] != '+')
    return ", without a unit";
  return {};
}

}  // namespace

std::optional<uint64_t> Reader::bytes(const Place& place, uint64_t least, uint64_t most) {
  const std::string range = "a size from " + format_bytes(least) + " to " + format_bytes(most);
  if (!is(place, YamlNode::Kind::kScalar, range)) return std::nullopt;
  const auto& node = *place.node;
  if (const auto value = parse_bytes(node.text); value && node.text.find('\0') == std::string::npos) {
    if (*value >= least && *value <= most) return value;
    fault(place, node.text + (*value < least ? " is too small" : " is too large"), "expected " + range);
    return std::nullopt;
  }
  fault(place, "is " + describe(node) + unit_hint(node, node.text),
        "expected a size with its unit, such as 512MiB (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)");
  return std::nullopt;
}

std::optional<uint64_t> Reader::rate(const Place& place, uint64_t least, uint64_t most) {
  const std::string range = "a rate from " + format_bytes(least) + "/s to " + format_bytes(most) + "/s";
  if (!is(place, YamlNode::Kind::kScalar, range)) return std::nullopt;
  const auto& node = *place.node;
  if (const auto value = parse_rate(node.text)) {
    if (*value >= least && *value <= most) return value;
    fault(place, node.text + (*value < least ? " is too small" : " is too large"), "expected " + range);
    return std::nullopt;
  }
  fault(place, "is " + describe(node) + unit_hint(node, node.text),
        "expected a rate with its unit, such as 50MiB/s or 20Mbit/s");
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> Reader::duration(const Place& place, std::chrono::milliseconds least,
                                                          std::chrono::milliseconds most) {
  const std::string range = "a time from " + format_duration(least) + " to " + format_duration(most);
  if (!is(place, YamlNode::Kind::kScalar, range)) return std::nullopt;
  const auto& node = *place.node;
  if (const auto value = parse_duration(node.text)) {
    if (*value >= least && *value <= most) return value;
    fault(place, node.text + (*value < least ? " is too short" : " is too long"), "expected " + range);
    return std::nullopt;
  }
  fault(place, "is " + describe(node) + unit_hint(node, node.text),
        "expected a time with its unit, such as 45m, 90s or 1h30m (d, h, m, s, ms)");
  return std::nullopt;
}

std::optional<size_t> Reader::word(const Place& place, Keys words) {
  const auto value = text(place, listed(words));
  if (!value) return std::nullopt;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == *value) return i;
  const auto near = closest(*value, words);
  fault(place, "is " + in_quotes(*value),
        near.empty() ? "expected " + listed(words) : "did you mean '" + std::string(near) + "'?");
  return std::nullopt;
}

Fields::Fields(Reader& reader, const Place& place, Keys keys, std::string_view what)
    : reader_(reader), place_(place) {
  const auto members = reader.members(place, "a mapping with " + listed(keys));
  valid_ = place.node->kind == YamlNode::Kind::kMapping;
  for (const auto& member : members) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    const auto near = closest(member.key, keys);
    reader.fault(member.key_where, member.field,
                 "unknown key " + in_quotes(member.key) + " in " + std::string(what),
                 near.empty() ? "expected " + listed(keys) : "did you mean '" + std::string(near) + "'?");
  }
}

std::optional<Place> Fields::get(std::string_view key) const {
  const auto* member = place_.node->find(key);
  if (!member) return std::nullopt;
  return Place{&member->value, codec::child_path(place_.field, key)};
}

std::optional<Place> Fields::require(std::string_view key, std::string_view expected) const {
  auto place = get(key);
  if (!place && valid_)
    reader_.fault(place_.where(), codec::child_path(place_.field, key), "is missing",
                  "expected " + std::string(expected));
  return place;
}

Position Fields::key_position(std::string_view key) const {
  const auto* member = place_.node->find(key);
  return member ? member->where : place_.where();
}

}  // namespace firestop::manifest
