// The file in which a Java runtime keeps whom it trusts: a Java KeyStore, version 2, of certificates only.
// Every Java reads it in place of its own (the "JKS" of java.security.KeyStore).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::codec {

// Of the certificates in `pem` (RFC 7468), in their order, under the names "firestop0", "firestop1", ...,
// with the password "changeit", which is what Java's own has. "java_trust.bad": an armour that does not
// close, or what lies in it is no base64.
Result<std::string> java_trust_store(std::string_view pem);

}  // namespace firestop::codec
