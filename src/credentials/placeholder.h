// What the sandbox holds instead of a credential: text of the shape that tools expect, fresh for each run, of
// characters that pass through headers, URLs and JSON as they are. It opens nothing anywhere.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "manifest/manifest.h"

namespace firestop::credentials {

struct Placeholder {
  std::string credential;  // its name
  std::string variable;    // in which the sandbox finds it
  std::string prefix;      // that `text` begins with, and that others may know
  std::string text;
};

// One a credential, and for sigv4 one more, of the access key's id, and of a session token where there is
// one. Different from each other and from every run before; the last 22 characters or more (of the key's id
// 16) are random.
std::vector<Placeholder> make_placeholders(const std::vector<manifest::Credential>& credentials);

// From the process that starts a run to the one that holds its doors.
codec::Json to_json(const std::vector<Placeholder>& placeholders);
Result<std::vector<Placeholder>> parse_placeholders(const codec::Json& json);

}  // namespace firestop::credentials
