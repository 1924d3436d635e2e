// Why something did not cross: the codes of denials and of the record. Stable; docs/egress.md says of each
// what an agent can do about it.
#pragma once

namespace firestop::egress::codes {

inline constexpr const char* kNoRule = "egress.no_rule";              // no rule has this host and port
inline constexpr const char* kMethod = "egress.method";               // a rule has the host, not the method
inline constexpr const char* kPath = "egress.path";                   // nor the path
inline constexpr const char* kProtocol = "egress.protocol";           // not in this way: websocket, tls, tcp
inline constexpr const char* kHostMismatch = "egress.host_mismatch";  // two names in one request
inline constexpr const char* kPrivateAddress =
    "egress.private_address";  // the name leads to no public address
inline constexpr const char* kGitRepository = "egress.git_repository";
inline constexpr const char* kGitRef = "egress.git_ref";
inline constexpr const char* kGitService = "egress.git_service";
inline constexpr const char* kBadRequest = "egress.bad_request";  // two readers could read it differently
inline constexpr const char* kPlainText = "egress.plain_text";    // http:// where only TLS will do
inline constexpr const char* kUnresolved = "egress.unresolved";   // allowed, and no such name
inline constexpr const char* kUnreachable = "egress.unreachable";
inline constexpr const char* kUpstreamTls = "egress.upstream_tls";
inline constexpr const char* kCredentialUnavailable = "credential.unavailable";
inline constexpr const char* kCredentialElsewhere = "credential.elsewhere";  // an alarm
inline constexpr const char* kLimitConnections = "limit.connections";
inline constexpr const char* kLimitNames = "limit.names";
inline constexpr const char* kLimitBytes = "limit.bytes";
inline constexpr const char* kLimitHeld = "limit.held";  // all bodies that wait hold too much together

}  // namespace firestop::egress::codes
