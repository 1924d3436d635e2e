// Connections to the outside: resolves by the host's resolver, checks every address against the ranges that
// are not public, dials the very address that was checked, through the host's own proxy (HTTPS_PROXY) where
// there is one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "egress/guard.h"

namespace firestop::egress {

struct Dialled {
  UniqueFd socket;      // connected, non-blocking, TCP_NODELAY
  std::string address;  // "192.0.2.1:443" that was dialled
};

class Dialer {
 public:
  // Destroying it ends the attempt; no callback afterwards.
  class Attempt {
   public:
    virtual ~Attempt() = default;
  };
  // Exactly one of the two.
  using Done = std::function<void(Dialled)>;
  using Failed = std::function<void(Denial)>;  // 502, 504 or, for an address that is not public, 403

  virtual ~Dialer() = default;
  virtual std::unique_ptr<Attempt> dial(const Route& route, Done done, Failed failed) = 0;
};

}  // namespace firestop::egress
