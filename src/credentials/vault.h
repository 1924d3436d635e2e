// Where values come from, as seen by who puts them into requests: asked for when needed, never listed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "credentials/secret.h"

namespace firestop::credentials {

class Vault {
 public:
  // Codes of errors: "credential.unavailable" and, for the record, why.
  using Done = std::function<void(Result<SharedSecret>)>;

  virtual ~Vault() = default;
  // `done` comes once: at once, or later on the loop's thread.
  virtual void get(const std::string& credential, Done done) = 0;
  // Values that were given out and may still be in an answer: the last few of the credential.
  virtual std::vector<SharedSecret> given(const std::string& credential) const = 0;
  // Another number after each change of what was given, of any credential.
  virtual uint64_t changes() const = 0;
};

}  // namespace firestop::credentials
