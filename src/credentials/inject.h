// Puts a credential's value into a request in the one place that its way of injection names. What stands
// there must be the placeholder and nothing else that a tool would not write; a placeholder anywhere else is
// not this file's: the detector stops it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "credentials/placeholder.h"
#include "credentials/secret.h"
#include "http/message.h"
#include "manifest/manifest.h"

namespace firestop::credentials {

// Where in a request the placeholder stands, ready to be replaced.
struct Slot {
  enum class Kind { kHeader, kQuery };
  Kind kind = Kind::kHeader;
  size_t header = 0;             // its index
  size_t begin = 0, length = 0;  // of the parameter's value in the target
};

// bearer, oauth: "Authorization: Bearer TEXT". basic: "Authorization: Basic base64(USER:TEXT)", or TEXT as
// the user. header: "NAME: TEXT" or "NAME: SCHEME TEXT". query: "NAME=TEXT". Once, not several times. Null
// when the request has no placeholder in its place.
std::optional<Slot> find_slot(const http::RequestHead& head, const manifest::Credential& credential,
                              std::string_view placeholder);

// The head without what stands in the slot, for looking at all the rest.
http::RequestHead without_slot(const http::RequestHead& head, const Slot& slot);

void put_value(http::RequestHead& head, const Slot& slot, const manifest::Credential& credential,
               const Secret& value);

}  // namespace firestop::credentials
