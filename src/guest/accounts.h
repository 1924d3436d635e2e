// The declared accounts, written into the container's /etc; no NSS: the files are read and written as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "channel/messages.h"
#include "guest/inside.h"

namespace firestop::guest {

// The image's passwd(5) text with the accounts after it. Lines of the image with a declared name or uid go.
std::string passwd_with(const std::string& image, const std::vector<channel::Account>& accounts,
                        const std::string& shell);
// The image's group(5) text with the declared groups, and one group an account whose gid nobody declares.
std::string group_with(const std::string& image, const std::vector<channel::Account>& accounts,
                       const std::vector<channel::Group>& groups);
std::string home_of(const channel::Account& account);

// Writes both files into `upper`, after those of `image`, and makes the homes.
Result<void> write_accounts(const channel::Start& start, const Inside& image, const Inside& upper);

}  // namespace firestop::guest
