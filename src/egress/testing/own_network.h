// For tests: a network that nobody else is in, with addresses that are public, private and special, all of
// them on its loopback device; and a resolver configuration of its own.
#pragma once

#include <string>

namespace firestop::egress::testing {

// Moves this process, which must have one thread, into it, once. Empty, or why this host does not let it.
const std::string& enter_own_network();

inline constexpr const char* kPublic = "1.2.3.4";
inline constexpr const char* kOtherPublic = "1.2.3.5";
inline constexpr const char* kPrivate = "10.9.8.7";
inline constexpr const char* kMetadata = "169.254.169.254";
inline constexpr const char* kPublicV6 = "2606:4700::1";

// Bind-mounted over the host's, for this process. Call after enter_own_network().
void replace_file(const char* path, const std::string& content);

}  // namespace firestop::egress::testing
