#include "http/message.h"

#include <algorithm>

namespace firestop::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

const Header* find_header(const Headers& headers, std::string_view name) {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return same_name(h.name, name); });
  return found == headers.end() ? nullptr : &*found;
}

void remove_headers(Headers& headers, std::string_view name) {
  std::erase_if(headers, [&](const Header& h) { return same_name(h.name, name); });
}

}  // namespace firestop::http
