// Refusals in git's own protocol, so that the user of git reads a sentence instead of "HTTP 403".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/git_commands.h"
#include "http/denial.h"

namespace firestop::egress {

enum class GitService { kFetch, kPush };  // git-upload-pack, git-receive-pack
std::string_view program_of(GitService service);

struct GitRefRefusal {
  std::string ref, reason;
};

// Of GET .../info/refs?service=...: git prints "fatal: remote error: TEXT".
http::Denial::Answer refuse_git_refs(GitService service, std::string_view text);
// Of POST .../git-upload-pack, in every version of the protocol: the same.
http::Denial::Answer refuse_git_fetch(std::string_view text);
// Of POST .../git-receive-pack: each line of `text` after "remote: ", then "[remote rejected]" with its
// reason for each ref. Nothing for a client that reads neither (gitprotocol-capabilities(5)).
std::optional<http::Denial::Answer> refuse_git_push(const GitPush& push, std::string_view text,
                                                    const std::vector<GitRefRefusal>& refs);

}  // namespace firestop::egress
