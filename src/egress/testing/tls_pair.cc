#include "egress/testing/tls_pair.h"

#include <openssl/err.h>

#include <cstdlib>

namespace firestop::egress::testing {
namespace {

constexpr int kMostTurns = 20;

bool one_byte(SSL* from, SSL* to) {
  char byte = 'x';
  size_t size = 0;
  if (SSL_write_ex(from, &byte, 1, &size) != 1) return false;
  return SSL_read_ex(to, &byte, 1, &size) == 1;
}

}  // namespace

Handshake shake_hands(SSL* client, SSL* server) {
  BIO *a = nullptr, *b = nullptr;
  if (BIO_new_bio_pair(&a, 1 << 16, &b, 1 << 16) != 1) std::abort();
  SSL_set_bio(client, a, a);
  SSL_set_bio(server, b, b);
  Handshake out;
  int done = 0;
  for (int turn = 0; turn < kMostTurns && done != 3; ++turn) {
    if (SSL_do_handshake(client) == 1) done |= 1;
    if (SSL_do_handshake(server) == 1) done |= 2;
  }
  out.verified = SSL_get_verify_result(client);
  out.ok = done == 3 && one_byte(client, server) && one_byte(server, client);
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(client, &name, &size);
  out.protocol.assign(name, name + size);
  out.resumed = SSL_session_reused(client) == 1;
  if (out.ok) {
    SSL_shutdown(client);
    SSL_shutdown(server);
  }
  ERR_clear_error();
  return out;
}

}  // namespace firestop::egress::testing
