// For tests: listeners and blocking clients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/loop.h"

namespace firestop::egress::testing {

// On every address, IPv4 alone or IPv4 and IPv6, at a port that is free (or at `port`); non-blocking.
UniqueFd bound(int type, uint16_t port = 0);
UniqueFd bound_v6(uint16_t port);
uint16_t port_of(const UniqueFd& socket);
// Connected and blocking; what does not come within some seconds does not come.
UniqueFd client(int type, uint16_t port, const char* address = "127.0.0.1");
UniqueFd accepted(const UniqueFd& listener);                        // waits for some seconds; blocking
std::string received(const UniqueFd& socket, size_t most);          // what one recv() gives
std::string received_exactly(const UniqueFd& socket, size_t size);  // less at the end
std::string received_until(const UniqueFd& socket, std::string_view end);
std::string received_all(const UniqueFd& socket);
void send_all(const UniqueFd& socket, std::string_view bytes);

// Runs `other` on a thread of its own and the loop on this one until it is done.
void run_beside(Loop& loop, const std::function<void()>& other);
// Runs the loop until `done` holds, for some seconds at most; whether it does.
bool run_until(Loop& loop, const std::function<bool()>& done);

}  // namespace firestop::egress::testing
