// A question that is taken is answered with a message that repeats it, fits where it should, and is never
// taken for a question; its name is one that hosts cannot have, or the labels of the wire.
#include "check.h"
#include "codec/dns.h"

using namespace firestop::codec;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  const std::string refusal = refuse_dns(message, DnsCode::kFormErr);
  const auto query = parse_dns_query(message);
  if (!query) {
    FUZZ_CHECK(refusal.empty() == (query.error().code == "dns.no_question"));
    return 0;
  }
  FUZZ_CHECK(query->wire.size() <= kMostDnsName && message.substr(kDnsHeader).starts_with(query->wire));
  if (query->name.find('\\') == std::string::npos && !query->name.empty())
    FUZZ_CHECK(dns_wire_name(query->name).size() == query->wire.size());
  (void)reverse_address(query->name);
  for (const size_t most : {kDnsHeader, kDnsHeader + size_t{20}, udp_limit(*query)}) {
    for (const DnsAnswer& answer : {DnsAnswer{.address = Address::v4(1)},
                                    DnsAnswer{.code = DnsCode::kNxDomain}, DnsAnswer{.host = query->name}}) {
      const std::string out = write_dns_answer(*query, answer, most);
      FUZZ_CHECK(out.size() <= most && out.size() >= kDnsHeader);
      FUZZ_CHECK(!parse_dns_query(out) && refuse_dns(out, DnsCode::kFormErr).empty());
      FUZZ_CHECK(out[0] == message[0] && out[1] == message[1]);
    }
  }
  return 0;
}
