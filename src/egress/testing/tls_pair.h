// For tests: two sides of TLS that talk to each other in memory.
#pragma once

#include <openssl/ssl.h>

#include <string>

namespace firestop::egress::testing {

// Both have their state set. Handshake, one byte each way (so that tickets arrive), and an orderly end.
struct Handshake {
  bool ok = false;
  long verified = -1;  // X509_V_OK, of the client
  std::string protocol;
  bool resumed = false;
};
Handshake shake_hands(SSL* client, SSL* server);

}  // namespace firestop::egress::testing
