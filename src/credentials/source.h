// Reads a value from where its binding says it is. For the source process alone (source_process.h): nobody
// else runs the operator's commands, reads the operator's files, or has the operator's environment.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/result.h"
#include "credentials/bindings.h"
#include "credentials/secret.h"

namespace firestop::credentials {

// The value of a source, a line end behind it taken off. "credential.unavailable": it is not there, the
// command failed or took longer than kLongestCommand, or what it said is no value: shorter than kLeastSecret,
// longer than kMostSecret, or other than printable ASCII. No error has anything of the value or of the
// command's output.
inline constexpr std::chrono::seconds kLongestCommand{30};
Result<Secret> read_source(const Source& source);

// Values by name, read again when their time is over.
class Sources {
 public:
  explicit Sources(Bindings bindings);
  ~Sources();

  // Once, before the run starts: every environment variable, file and command. Tokens of oauth are fetched
  // when they are first needed.
  Result<void> check();

  struct Value {
    const Secret* secret = nullptr;     // until the next get()
    std::chrono::milliseconds valid{};  // how long it need not be asked for again
  };
  Result<Value> get(const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  struct Cached {
    Secret secret;
    Clock::time_point until;
  };
  Result<Value> fetch(const std::string& name, const Binding& binding);
  Result<Value> fetch_token(const std::string& name, const OAuth& oauth);
  Value keep(const std::string& name, Secret secret, std::chrono::milliseconds valid);

  Bindings bindings_;
  std::map<std::string, Cached> cached_;
  std::map<std::string, Secret> refresh_;  // tokens that servers gave in the place of those of the sources
};

}  // namespace firestop::credentials
