#include "egress/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "egress/codes.h"

namespace firestop::egress {
namespace {

using Answer = Result<std::vector<codec::Address>>;

std::optional<codec::Address> address_of(const sockaddr* socket_address) {
  if (socket_address->sa_family == AF_INET)
    return codec::Address::v4(ntohl(reinterpret_cast<const sockaddr_in*>(socket_address)->sin_addr.s_addr));
  if (socket_address->sa_family != AF_INET6) return std::nullopt;
  codec::Address::V6 bytes;
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(socket_address)->sin6_addr, bytes.size());
  return codec::Address::v6(bytes);
}

Unexpected unresolved(const std::string& name, int error) {
  const bool none = error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY;
  return fail(codes::kUnresolved,
              none ? name + " does not exist, says the host's resolver"
                   : "the host's resolver has no answer for " + name + ": " + ::gai_strerror(error));
}

// On a thread of its own; touches nothing of ours.
Answer ask_the_host(const std::string& name) {
  // Reads resolv.conf as it is now. What is set here is this thread's.
  if (::res_init() == 0) _res.options &= ~static_cast<unsigned long>(RES_DEFNAMES | RES_DNSRCH);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &list); error != 0)
    return unresolved(name, error);
  std::vector<codec::Address> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const auto address = address_of(one->ai_addr);
    if (address && addresses.size() < SystemResolver::kMostAddresses &&
        std::find(addresses.begin(), addresses.end(), *address) == addresses.end())
      addresses.push_back(*address);
  }
  ::freeaddrinfo(list);
  if (addresses.empty()) return unresolved(name, EAI_NODATA);
  return addresses;
}

}  // namespace

struct SystemResolver::Waiter {
  Done done;  // empty when nobody waits any more
};

std::unique_ptr<Resolver::Lookup> SystemResolver::look_up(const std::string& name, Done done) {
  class Waiting final : public Lookup {
   public:
    Waiting(std::shared_ptr<Waiter> waiter, Loop::Handle refusal)
        : waiter_(std::move(waiter)), refusal_(std::move(refusal)) {}
    ~Waiting() override { waiter_->done = nullptr; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::shared_ptr<Waiter> waiter_;
    Loop::Handle refusal_;
  };
  auto waiter = std::make_shared<Waiter>(Waiter{std::move(done)});
  auto found = pending_.find(name);
  if (found == pending_.end() && pending_.size() >= kMostLookups) {
    auto refuse = [waiter, name] {
      const Done call = std::exchange(waiter->done, nullptr);
      if (call)
        call(fail(codes::kUnresolved, "too many names are being looked up; " + name + " has to wait"));
    };
    return std::make_unique<Waiting>(waiter, loop_.once(std::chrono::milliseconds(0), std::move(refuse)));
  }
  if (found == pending_.end()) {
    found = pending_.emplace(name, Pending{}).first;
    const auto answer = std::make_shared<Answer>();
    found->second.work = loop_.offload([answer, name] { *answer = ask_the_host(name); },
                                       [this, answer, name] { finish(name, *answer); });
  }
  found->second.waiters.push_back(waiter);
  return std::make_unique<Waiting>(std::move(waiter), nullptr);
}

// Whoever is called may look up again, or end the look-ups of others.
void SystemResolver::finish(const std::string& name, const Answer& answer) {
  const auto node = pending_.extract(name);
  for (const auto& waiter : node.mapped().waiters)
    if (const Done done = std::exchange(waiter->done, nullptr)) done(answer);
}

std::vector<std::string> SystemResolver::files() {
  std::vector<std::string> out;
  for (const char* path :
       {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf"}) {
    char real[PATH_MAX];
    if (!::realpath(path, real)) continue;
    out.emplace_back(path);
    if (out.back() != real) out.emplace_back(real);
  }
  return out;
}

}  // namespace firestop::egress
