// Names to addresses by the host's own resolver, without holding up the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "codec/address.h"

namespace firestop::egress {

class Resolver {
 public:
  // Destroying it: no call afterwards.
  class Lookup {
   public:
    virtual ~Lookup() = default;
  };
  // At least one address, in the order in which they should be tried; or "egress.unresolved". Never called
  // before look_up() has returned.
  using Done = std::function<void(const Result<std::vector<codec::Address>>&)>;

  virtual ~Resolver() = default;
  virtual std::unique_ptr<Lookup> look_up(const std::string& name, Done done) = 0;
};

// getaddrinfo(3), so /etc/hosts, nsswitch.conf and the order of RFC 6724 count as for every program of the
// host, and the second server is asked when the first is down. Names are looked up as they are: the search
// list does not apply, which would ask for others. Blocks threads of libuv, four at once; who asks for a name
// that is being looked up waits for that answer.
//
// What it needs in a process that has locked itself down: to read files(); IP sockets, and one of netlink to
// order addresses; to make threads. Make no thread before the lock-down, since Landlock and seccomp count for
// the thread that calls them and for those that it makes later: this class makes none before the first
// look-up. Modules of nsswitch.conf beside files and dns, which the C library would load, are then passed
// over.
class SystemResolver final : public Resolver {
 public:
  static constexpr size_t kMostLookups = 256;  // names at once; more fail
  static constexpr size_t kMostAddresses = 16;

  explicit SystemResolver(Loop& loop) : loop_(loop) {}
  SystemResolver(const SystemResolver&) = delete;
  SystemResolver& operator=(const SystemResolver&) = delete;

  std::unique_ptr<Lookup> look_up(const std::string& name, Done done) override;

  // Paths that the C library reads, those that exist, with what links among them lead to.
  static std::vector<std::string> files();

 private:
  struct Waiter;
  struct Pending {
    std::vector<std::shared_ptr<Waiter>> waiters;
    Loop::Handle work;
  };
  void finish(const std::string& name, const Result<std::vector<codec::Address>>& answer);

  Loop& loop_;
  std::map<std::string, Pending> pending_;
};

}  // namespace firestop::egress
