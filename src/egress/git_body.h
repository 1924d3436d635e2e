// The bodies of git's two requests, read while they pass.
#pragma once

#include <memory>
#include <string>

#include "egress/git_rules.h"

namespace firestop::egress {

// Bytes that are discarded behind a refused push before the client is interrupted: most read their answer
// only when they have sent all of theirs.
inline constexpr size_t kMostDiscarded = 64u << 20;
// Of a body with a content coding, what is decoded at most to find out what it asks for.
inline constexpr size_t kMostFetchRequest = 64u << 20;

// `coding` is empty or "gzip"; `git` outlives the body.
std::unique_ptr<GitBody> make_push_body(const manifest::EgressRule::Git& git, const std::string& rule,
                                        const std::string& coding);
std::unique_ptr<GitBody> make_fetch_body(const std::string& rule, const std::string& coding);

}  // namespace firestop::egress
