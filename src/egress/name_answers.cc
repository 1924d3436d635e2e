#include "egress/name_answers.h"

#include <chrono>

#include "egress/codes.h"

namespace firestop::egress {
namespace {

using codec::DnsAnswer;
using codec::DnsCode;
using codec::DnsType;

int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

DnsAnswer no_such_name() {
  return {.code = DnsCode::kNxDomain, .ttl = NameAnswers::kTtl};
}
DnsAnswer no_such_record() {
  return {.code = DnsCode::kNoError, .ttl = NameAnswers::kTtl};
}

}  // namespace

std::string NameAnswers::answer(std::string_view message, Transport transport, uint16_t source_port) {
  Crossing crossing;
  crossing.kind = Crossing::Kind::kName;
  crossing.scheme = "dns";
  crossing.started_us = now_us();
  crossing.source_port = source_port;

  const auto query = codec::parse_dns_query(message);
  std::string out;
  if (query) {
    const DnsAnswer answer = decide(*query, crossing);
    out = codec::write_dns_answer(
        *query, answer, transport == Transport::kUdp ? codec::udp_limit(*query) : codec::kMostDnsMessage);
  } else {
    crossing.verdict = "denied";
    crossing.code = codes::kBadRequest;
    crossing.detail = query.error().message;
    out =
        codec::refuse_dns(message, query.error().code == "dns.opcode" ? DnsCode::kNotImp : DnsCode::kFormErr);
  }
  crossing.bytes_out = message.size();
  crossing.bytes_in = out.size();
  crossing.took_us = now_us() - crossing.started_us;
  record_(crossing);
  return out;
}

DnsAnswer NameAnswers::decide(const codec::DnsQuery& query, Crossing& crossing) {
  crossing.host = query.name;
  crossing.detail = codec::to_string(query.type);
  if (query.type == DnsType::kPtr) {
    const auto address = codec::reverse_address(query.name);
    const std::string* host = address ? book_.name_of(*address) : nullptr;
    if (host) {
      crossing.verdict = "allowed";
      return {.host = *host, .ttl = kTtl};
    }
  }
  // The guard sees every name, also one that no host can have: it could carry a credential's placeholder.
  if (const auto denial = guard_.name(query.name)) {
    crossing.kind = denial->alarm ? Crossing::Kind::kAlarm : Crossing::Kind::kName;
    crossing.verdict = "denied";
    crossing.code = denial->code;
    crossing.rule = denial->rule;
    crossing.credential = denial->credential;
    crossing.detail += ": " + denial->message;
    crossing.detail.resize(std::min(crossing.detail.size(), kMostDetail));
    return no_such_name();
  }
  return of_host(query, crossing);
}

DnsAnswer NameAnswers::of_host(const codec::DnsQuery& query, Crossing& crossing) {
  crossing.verdict = "allowed";
  if (query.edns && query.edns->version != 0) return {.code = DnsCode::kBadVers};
  if (query.network_class != codec::DnsClass::kInternet) return no_such_record();
  if (query.type != DnsType::kA && query.type != DnsType::kAny) return no_such_record();
  const auto address = book_.address_of(query.name);
  if (!address) {
    crossing.verdict = "failed";
    crossing.code = codes::kLimitNames;
    crossing.detail += ": more names than a sandbox may have";
    return {.code = DnsCode::kServFail};
  }
  crossing.address = address->to_string();
  return {.address = address, .ttl = kTtl};
}

}  // namespace firestop::egress
