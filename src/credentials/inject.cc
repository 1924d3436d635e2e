#include "credentials/inject.h"

#include <algorithm>

#include "codec/base64.h"

namespace firestop::credentials {
namespace {

using http::same_name;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const int high = text[at] == '%' && at + 2 < text.size() ? hex_value(text[at + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(text[at + 2]);
    out += low < 0 ? text[at] : static_cast<char>(high * 16 + low);
    if (low >= 0) at += 2;
  }
  return out;
}

void append_percent_encoded(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

// What follows "SCHEME " in a header's value, or nothing.
std::optional<std::string_view> after_scheme(std::string_view value, std::string_view scheme) {
  if (value.size() <= scheme.size() || !same_name(value.substr(0, scheme.size()), scheme)) return {};
  value.remove_prefix(scheme.size());
  if (value[0] != ' ') return {};
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

// USER:TEXT, or TEXT as the user's name with an empty password or the one that a forge's manual gives.
bool is_basic(std::string_view encoded, std::string_view placeholder) {
  std::string padded(encoded);
  while (padded.size() % 4 != 0) padded += '=';
  const auto text = codec::decode_base64(padded);
  if (!text) return false;
  const size_t colon = text->find(':');
  if (colon == std::string::npos) return false;
  const auto user = std::string_view(*text).substr(0, colon),
             password = std::string_view(*text).substr(colon + 1);
  if (password == placeholder) return user.find(placeholder) == std::string_view::npos;
  return user == placeholder && (password.empty() || password == "x-oauth-basic");
}

bool fits(std::string_view value, const manifest::Credential& credential, std::string_view placeholder) {
  if (credential.inject == "bearer" || credential.inject == "oauth")
    return after_scheme(value, "Bearer") == placeholder;
  if (credential.inject == "basic") {
    const auto encoded = after_scheme(value, "Basic");
    return encoded && is_basic(*encoded, placeholder);
  }
  if (value == placeholder) return true;
  return !credential.scheme.empty() && after_scheme(value, credential.scheme) == placeholder;
}

std::string_view header_of(const manifest::Credential& credential) {
  return credential.inject == "header" ? std::string_view(credential.header) : "Authorization";
}

std::optional<Slot> find_header(const http::RequestHead& head, const manifest::Credential& credential,
                                std::string_view placeholder) {
  std::optional<Slot> out;
  for (size_t at = 0; at < head.headers.size(); ++at) {
    const auto& header = head.headers[at];
    if (!same_name(header.name, header_of(credential))) continue;
    if (out || !fits(header.value, credential, placeholder)) return {};
    out = Slot{Slot::Kind::kHeader, at, 0, 0};
  }
  return out;
}

std::optional<Slot> find_parameter(const http::RequestHead& head, const manifest::Credential& credential,
                                   std::string_view placeholder) {
  std::optional<Slot> out;
  const std::string_view target = head.target;
  size_t at = target.find('?');
  if (at == std::string_view::npos) return {};
  for (++at; at <= target.size();) {
    const size_t end = std::min(target.find('&', at), target.size());
    const auto pair = target.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    if (percent_decoded(pair.substr(0, equals)) == credential.query) {
      const auto value = equals < pair.size() ? pair.substr(equals + 1) : std::string_view();
      if (out || percent_decoded(value) != placeholder) return {};
      out = Slot{Slot::Kind::kQuery, 0, at + equals + 1, value.size()};
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

std::optional<Slot> find_slot(const http::RequestHead& head, const manifest::Credential& credential,
                              std::string_view placeholder) {
  if (credential.inject == "query") return find_parameter(head, credential, placeholder);
  if (credential.inject == "sigv4") return {};
  return find_header(head, credential, placeholder);
}

http::RequestHead without_slot(const http::RequestHead& head, const Slot& slot) {
  http::RequestHead out = head;
  if (slot.kind == Slot::Kind::kHeader)
    out.headers.erase(out.headers.begin() + static_cast<std::ptrdiff_t>(slot.header));
  else
    out.target.erase(slot.begin, slot.length);
  return out;
}

void put_value(http::RequestHead& head, const Slot& slot, const manifest::Credential& credential,
               const Secret& value) {
  if (slot.kind == Slot::Kind::kQuery) {
    Wiped encoded;
    append_percent_encoded(encoded.text, value.reveal());
    head.target.replace(slot.begin, slot.length, encoded.text);
    return;
  }
  auto& text = head.headers[slot.header].value;
  if (credential.inject == "basic") {
    const Wiped pair(credential.user + ":" + std::string(value.reveal()));
    text = "Basic " + codec::encode_base64(pair.text);
  } else if (credential.inject == "header") {
    text = credential.scheme.empty() ? "" : credential.scheme + " ";
    text += value.reveal();
  } else {
    text = "Bearer ";
    text += value.reveal();
  }
}

}  // namespace firestop::credentials
