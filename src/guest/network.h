// The containers' network namespace: one for the whole run. It has a loopback device that is up; and where
// the host gave the machine a network device, that, with its one address, its one neighbour and a default
// route to it. PID 1 itself keeps no network.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

struct Network {
  UniqueFd space;       // for setns(2)
  bool device = false;  // whether there is one beside loopback
};

// As the host's end has them (src/egress/seam.h), the same for every sandbox.
inline constexpr char kAddress[] = "192.0.0.2", kGateway[] = "192.0.0.1", kResolver[] = "192.0.0.1";
inline constexpr unsigned char kGatewayMac[] = {0x02, 0x66, 0x73, 0, 0, 1};

// Makes it and comes back. Before "ready", since it costs more than all other namespaces together and a
// snapshot template can hold it.
Result<Network> make_container_network();

}  // namespace firestop::guest
