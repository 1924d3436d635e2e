// What the egress process tells its sandbox about every attempt to cross: what was asked, which rule decided,
// what became of it. Never a credential's value; a header, body or query only where a field here names it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace firestop::egress {

struct Crossing {
  enum class Kind { kName, kConnection, kRequest, kDatagram, kAlarm };
  Kind kind{};
  std::string verdict;  // "allowed", "denied", "failed"
  std::string code;     // why not: docs/egress.md has the list, such as "egress.no_rule"; empty when allowed
  std::string rule;     // "egress[2]", empty when none
  std::string scheme;   // "https", "http", "tls", "tcp", "udp", "dns"
  std::string host;     // canonical name or address
  uint16_t port = 0;
  std::string address;       // that was dialled
  std::string method, path;  // path without query
  int status = 0;            // that the guest got
  std::string credential;    // its name
  std::string in_body;  // credentials whose placeholders stood in the body, as the rule allows: "model forge"
  std::string detail;   // for people; bounded by kMostDetail
  uint64_t bytes_out = 0, bytes_in = 0;
  int64_t started_us = 0, took_us = 0;  // started: microseconds since 1970
  uint16_t source_port = 0;             // of the guest's socket, to find its process
};

inline constexpr size_t kMostDetail = 1024;
using Recorder = std::function<void(const Crossing&)>;

}  // namespace firestop::egress
