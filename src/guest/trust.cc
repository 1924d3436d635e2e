#include "guest/trust.h"

#include <fcntl.h>

#include "base/path.h"
#include "codec/java_trust.h"

namespace firestop::guest {
namespace {

// The first is made where an image has none of them.
constexpr const char* kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch; what the variables below name
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/ssl/cert.pem",       // Alpine
};
constexpr const char* kAlone = "/usr/local/share/ca-certificates/firestop.crt";

// Of Java runtimes, which look at nothing else: Debian, Fedora.
constexpr const char* kJavaStores[] = {"/etc/ssl/certs/java/cacerts",
                                       "/etc/pki/ca-trust/extracted/java/cacerts"};

// Who looks at which: OpenSSL, Go, Ruby; curl; git; Python's requests and pip; the AWS tools; cargo; Nix;
// gRPC.
constexpr const char* kBundleVariables[] = {
    "SSL_CERT_FILE", "CURL_CA_BUNDLE",    "GIT_SSL_CAINFO",    "REQUESTS_CA_BUNDLE",
    "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"};
constexpr const char* kAloneVariables[] = {"NODE_EXTRA_CA_CERTS", "DENO_CERT"};

Result<void> write_with_parents(const Inside& upper, const std::string& path, const std::string& bytes) {
  TRY(upper.make_directories(parent_path(path).substr(1), {}));
  return upper.write(path, bytes, 0644);
}

Result<void> write_java_trust(const channel::Start& start, const Inside& image, const Inside& upper) {
  for (const char* path : kJavaStores) {
    if (!image.exists(path)) continue;
    TRY_ASSIGN(const std::string bundle, image.read(kBundles[0]));
    TRY_ASSIGN(const std::string store, codec::java_trust_store(bundle + "\n" + start.authority));
    TRY(write_with_parents(upper, path, store));
  }
  return {};
}

}  // namespace

Result<void> write_trust(const channel::Start& start, const Inside& image, const Inside& upper) {
  if (start.authority.empty()) return {};
  for (const char* path : kBundles) {
    TRY_ASSIGN(std::string bundle, image.read(path));
    if (bundle.empty() && path != kBundles[0]) continue;
    if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
    TRY(write_with_parents(upper, path, bundle + start.authority));
  }
  TRY(write_java_trust(start, image, upper));
  // Where update-ca-certificates finds it again, and what OpenSSL looks for in a folder of certificates.
  TRY(write_with_parents(upper, kAlone, start.authority));
  if (!start.authority_hash.empty())
    TRY(write_with_parents(upper, "/etc/ssl/certs/" + start.authority_hash + ".0", start.authority));
  // For shells that begin without the environment that the command had.
  std::string profile;
  for (const std::string& variable : trust_environment(start)) {
    const std::string name = variable.substr(0, variable.find('='));
    profile += ": \"${" + name + ":=" + variable.substr(name.size() + 1) + "}\"; export " + name + "\n";
  }
  return write_with_parents(upper, "/etc/profile.d/firestop.sh", profile);
}

std::vector<std::string> trust_environment(const channel::Start& start) {
  std::vector<std::string> out;
  if (start.authority.empty()) return out;
  for (const char* name : kBundleVariables) out.push_back(std::string(name) + "=" + kBundles[0]);
  for (const char* name : kAloneVariables) out.push_back(std::string(name) + "=" + kAlone);
  return out;
}

}  // namespace firestop::guest
