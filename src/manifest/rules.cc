#include "manifest/rules.h"

#include <algorithm>
#include <cstddef>

#include "codec/base64.h"

namespace firestop::manifest {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kDigits = "0123456789";

// "%25" before two hexadecimal digits.
bool has_nested_escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEFabcdef";
  for (size_t at = 0; (at = text.find("%25", at)) != std::string_view::npos; at += 3)
    if (text.substr(at + 3).find_first_not_of(kHex) >= 2 && text.size() >= at + 5) return true;
  return false;
}

bool only(std::string_view text, std::initializer_list<std::string_view> sets) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](auto set) { return set.find(c) != std::string_view::npos; });
  });
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

std::string why_not_run_name(std::string_view name) {
  if (name.size() > 63) return "is longer than 63 characters";
  if (name.empty() || !only(name, {kLower, kDigits, "-"}) || name[0] == '-')
    return "has other characters than a-z, 0-9 and '-', or does not begin with a letter or digit";
  return {};
}

std::string why_not_account(std::string_view name) {
  if (name.size() > 32) return "is longer than 32 characters";
  if (name.empty() || !only(name, {kLower, kDigits, "_-"}) || !only(name.substr(0, 1), {kLower, "_"}))
    return "has other characters than a-z, 0-9, '_' and '-', or does not begin with a letter";
  if (name == "root") return "is the account that nothing in a sandbox gets";
  if (one_of(name, {"daemon", "bin",     "sys",     "sync",       "games",  "man",     "lp",      "mail",
                    "news",   "uucp",    "proxy",   "www-data",   "backup", "list",    "irc",     "gnats",
                    "nobody", "nogroup", "adm",     "tty",        "disk",   "kmem",    "dialout", "fax",
                    "voice",  "cdrom",   "floppy",  "tape",       "sudo",   "audio",   "dip",     "operator",
                    "src",    "shadow",  "utmp",    "video",      "sasl",   "plugdev", "staff",   "users",
                    "wheel",  "kvm",     "crontab", "messagebus", "sshd",   "_apt"}) ||
      name.starts_with("systemd-"))
    return "is an account or group of the system";
  return {};
}

std::string why_not_bind_name(std::string_view name) {
  if (name.size() > 63) return "is longer than 63 characters";
  if (name.empty() || !only(name, {kLower, kUpper, kDigits, "_-"}) || name[0] == '-' || name[0] == '_')
    return "has other characters than letters, digits, '_' and '-', or does not begin with a letter or digit";
  return {};
}

std::string why_not_variable(std::string_view name) {
  if (name.empty() || !only(name, {kLower, kUpper, kDigits, "_"}) ||
      kDigits.find(name[0]) != std::string_view::npos)
    return "has other characters than letters, digits and '_', or begins with a digit";
  if (name.size() > 255) return "is longer than 255 characters";
  if (one_of(name, {"HOME", "USER", "TERM"})) return "is set by Firestop from run_as and the terminal";
  if (name.starts_with("FIRESTOP_")) return "begins with FIRESTOP_, which Firestop keeps for itself";
  return {};
}

std::string why_not_ref(std::string_view ref) {
  if (ref.empty()) return "is empty";
  if (ref.size() > 255) return "is longer than 255 bytes";
  for (const char c : ref)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F) return "contains a space or control character";
  if (const size_t at = ref.find_first_of("~^:?*[\\"); at != std::string_view::npos)
    return std::string("contains '") + ref[at] + "'";
  if (ref.find("..") != std::string_view::npos) return "contains '..'";
  if (ref.find("@{") != std::string_view::npos || ref == "@") return "contains '@{', or is '@'";
  if (ref.find("//") != std::string_view::npos || ref.front() == '/' || ref.back() == '/')
    return "has an empty component";
  if (ref.front() == '-') return "begins with '-'";
  if (ref.back() == '.') return "ends with '.'";
  for (size_t at = 0; at < ref.size();) {
    const size_t end = std::min(ref.find('/', at), ref.size());
    const std::string_view part = ref.substr(at, end - at);
    if (part.front() == '.' || part.ends_with(".lock"))
      return "has a component that begins with '.' or ends with '.lock'";
    at = end + 1;
  }
  return {};
}

std::string why_not_image(std::string_view image) {
  if (!image.starts_with("oci:")) {
    if (image.find_first_of(":/@") != std::string_view::npos)
      return "looks like an image of a registry without 'oci:'";
    if (image.empty() || image.size() > 63 || !only(image, {kLower, kDigits, ".-"}) ||
        !only(image.substr(0, 1), {kLower, kDigits}) || image.find("..") != std::string_view::npos)
      return "is no name of a recipe";
    return {};
  }
  image.remove_prefix(4);
  const size_t at = image.find('@');
  if (at == std::string_view::npos) return "has no digest, and a tag can be moved to other content";
  const std::string_view name = image.substr(0, at), digest = image.substr(at + 1);
  if (!digest.starts_with("sha256:")) return "has a digest that is not sha256";
  if (digest.size() != 7 + 64 || !only(digest.substr(7), {kDigits, "abcdef"}))
    return "has a digest that is not 64 lower-case hexadecimal digits";
  if (name.empty() || name.size() > 255 || !only(name, {kLower, kDigits, "._-/:"}) || name.front() == '/' ||
      name.back() == '/' || name.find("//") != std::string_view::npos ||
      name.find("..") != std::string_view::npos)
    return "has no valid name before the digest";
  return {};
}

std::string why_not_request_path(std::string_view path) {
  if (path.empty() || path[0] != '/') return "does not begin with '/'";
  if (path.size() > 2048) return "is longer than 2048 bytes";
  for (const char c : path)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7F)
      return "contains a space, control character or non-ASCII character, which requests write as %HH";
  if (path.find_first_of("?#") != std::string_view::npos)
    return "contains '?' or '#'; a rule is about the path alone";
  if (path.find('\\') != std::string_view::npos) return "contains a backslash";
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    std::string part(path.substr(at, end - at));
    std::transform(part.begin(), part.end(), part.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    for (size_t dot; (dot = part.find("%2e")) != std::string::npos;) part.replace(dot, 3, ".");
    if (has_nested_escape(part)) return "contains an escape within an escape, which no request may have";
    if (part == "." || part == ".." || part.starts_with("..;")) return "contains '.' or '..'";
    if (part.empty() && end != path.size()) return "contains '//'";
    if (part.find("**") != std::string::npos && part != "**")
      return "has '**' beside other characters; it stands for whole components";
    at = end + 1;
  }
  return {};
}

std::string why_not_ref_pattern(std::string_view pattern) {
  if (!pattern.starts_with("refs/heads/") && !pattern.starts_with("refs/tags/"))
    return "does not begin with refs/heads/ or refs/tags/";
  std::string plain(pattern);
  for (size_t star; (star = plain.find('*')) != std::string::npos;) {
    const size_t end = std::min(plain.find('/', star), plain.size());
    const std::string_view part(plain.data() + plain.rfind('/', star) + 1, end - plain.rfind('/', star) - 1);
    if (part.find("**") != std::string_view::npos && part != "**")
      return "has '**' beside other characters; it stands for whole components";
    std::replace(plain.begin() + static_cast<std::ptrdiff_t>(star),
                 plain.begin() + static_cast<std::ptrdiff_t>(end), '*', 'x');
  }
  return why_not_ref(plain);
}

std::string why_not_push_option(std::string_view option) {
  if (option.empty()) return "is empty";
  if (option.size() > 255) return "is longer than 255 bytes";
  for (const char c : option)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F)
      return "contains a control character or one that is not ASCII";
  if (option.find('*') < option.size() - 1) return "has '*' elsewhere than at its end";
  return {};
}

std::string why_not_header(std::string_view name) {
  if (name.empty() || name.size() > 64 || !only(name, {kLower, kUpper, kDigits, "!#$%&'*+-.^_`|~"}))
    return "is no header name";
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (one_of(lower, {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade",
                     "expect", "keep-alive", "proxy-connection", "content-encoding", "content-type"}))
    return "is a header that frames or routes the request";
  if (one_of(lower,
             {"user-agent", "referer", "x-request-id", "origin", "x-forwarded-for", "forwarded", "via"}))
    return "is a header that origins write into logs and answers";
  return {};
}

std::string why_not_certificates(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----\n", kEnd = "-----END CERTIFICATE-----";
  size_t count = 0;
  while (pem.find_first_not_of(" \n") != std::string_view::npos) {
    pem.remove_prefix(pem.find_first_not_of(" \n"));
    if (!pem.starts_with(kBegin)) return "is no certificate in PEM form, or has other text beside it";
    pem.remove_prefix(kBegin.size());
    const size_t end = pem.find(kEnd);
    if (end == std::string_view::npos) return "has a certificate without its end";
    std::string body(pem.substr(0, end));
    std::erase(body, '\n');
    const auto der = codec::decode_base64(body);
    if (!der || der->size() < 64 || der->front() != 0x30)
      return "has a certificate that is not base64 of DER";
    pem.remove_prefix(end + kEnd.size());
    if (++count > 32) return "has more than 32 certificates";
  }
  return count == 0 ? "has no certificate" : "";
}

}  // namespace firestop::manifest
