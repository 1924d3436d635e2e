#include "http/denial.h"

#include <algorithm>

#include "codec/json.h"

namespace firestop::http {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool wants_json(std::string_view accept) {
  const std::string text = lower_case(accept);
  return text.find("application/json") != std::string::npos || text.find("+json") != std::string::npos;
}

std::string as_json(const Denial& denial, const DenialContext& context) {
  codec::JsonObject error{{"code", denial.code}, {"message", denial.message}};
  if (!context.host.empty()) {
    error["host"] = context.host;
    error["port"] = int{context.port};
  }
  if (!denial.rule.empty()) error["rule"] = denial.rule;
  if (!denial.what_to_do.empty()) error["what_to_do"] = denial.what_to_do;
  return codec::write_json(codec::JsonObject{{"firestop", std::move(error)}}) + "\n";
}

std::string as_text(const Denial& denial, const DenialContext& context) {
  std::string out = "firestop: " + denial.code + "\n" + denial.message + "\n";
  if (!context.host.empty())
    out += "host: " + std::string(context.host) + "\nport: " + std::to_string(context.port) + "\n";
  if (!denial.rule.empty()) out += "rule: " + denial.rule + "\n";
  if (!denial.what_to_do.empty()) out += "what to do: " + denial.what_to_do + "\n";
  return out;
}

}  // namespace

Denial::Answer answer_to(const Denial& denial, const DenialContext& context) {
  if (denial.answer) return *denial.answer;
  Denial::Answer out;
  out.status = denial.status;
  const bool json = wants_json(context.accept);
  out.body = json ? as_json(denial, context) : as_text(denial, context);
  out.headers = {{"Content-Type", json ? "application/json" : "text/plain; charset=utf-8"},
                 {"Cache-Control", "no-store"},
                 {std::string(kDenialCodeHeader), denial.code}};
  return out;
}

}  // namespace firestop::http
