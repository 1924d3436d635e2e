// Where this host's credentials come from: $XDG_CONFIG_HOME/firestop/credentials.yaml, the operator's,
// outside of every repository. A manifest names credentials; here names get sources, and the hosts that a
// value may go to whatever a manifest says.
//
//   model:
//     hosts: [api.example.com]
//     env: API_KEY                      # or
//   forge:
//     hosts: [git.example.com]
//     file: /run/secrets/forge          # absolute, or relative to the file's folder; or
//   registry:
//     hosts: ["*.registry.example.com"]
//     command: [secret-tool, lookup, service, registry]
//     cache: 10m                        # then it runs again; without it, once a run
//   mail:
//     hosts: [mail.example.com]
//     oauth:
//       token_url: https://login.example.com/token
//       client_id: firestop
//       client_secret: {env: CLIENT_SECRET}     # if the server wants one
//       refresh_token: {file: mail-refresh-token}
//       rotates: true                           # the server gives new ones, which are written to that file
//       scope: read
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "manifest/manifest.h"

namespace firestop::credentials {

struct Source {
  enum class Kind { kEnv, kFile, kCommand };
  Kind kind = Kind::kEnv;
  std::string place;                  // variable, or absolute path
  std::vector<std::string> command;   // program and arguments
  std::chrono::milliseconds cache{};  // of a command; 0: once a run
};

struct OAuth {
  std::string token_url;  // https://, or http:// to this host itself
  std::string client_id, scope;
  std::optional<Source> client_secret;
  Source refresh_token;
  bool rotates = false;  // new refresh tokens are written to the file that the first one came from
  std::string ca;        // path of PEM certificates that are trusted for it besides the host's own; or ""
};

struct Binding {
  std::vector<std::string> hosts;  // patterns as in manifests
  Source source;                   // or
  std::optional<OAuth> oauth;
};
using Bindings = std::map<std::string, Binding, std::less<>>;  // by the credential's name

// Strict, as manifests are; every fault with its line and a caret ("credentials.bad").
Result<Bindings> parse_bindings(std::string_view text, const std::string& file);
// None if there is no such file. "credentials.exposed" if others may read it or it is somebody else's,
// "credentials.unreadable" if it cannot be read.
Result<Bindings> load_bindings();
Result<Bindings> load_bindings(const std::string& file);
std::string bindings_path();

// Before anything is started: those of `bindings` that the manifest needs. "credentials.unbound": a
// credential has none, or one of another kind; "credentials.host": a rule would send it to a host that its
// binding does not have.
Result<Bindings> bind_credentials(const manifest::Manifest& manifest, const Bindings& bindings);

// For the process that reads the sources.
codec::Json to_json(const Bindings& bindings);
Result<Bindings> bindings_from_json(const codec::Json& json);

}  // namespace firestop::credentials
