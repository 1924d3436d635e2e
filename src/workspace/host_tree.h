// Folders and files of the host as nodes of an image. Links are never followed: what is read lies below the
// folder that was named, whatever its content is made to look like.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "erofs/writer.h"
#include "workspace/workspace.h"

namespace firestop::workspace {

// What all sources of one image may have together.
struct TreeBudget {
  uint64_t bytes = 64ull << 30;  // apparent sizes: a sparse file counts whole
  uint64_t nodes = 2'000'000;
};

// The folder behind `folder` (kept open for as long as the nodes live), named `label` in errors. Permission
// bits without setuid, setgid and sticky; times; hard links inside the folder stay hard links. Errors:
// "entries.link_out" (a link that is absolute or leaves the folder), "entries.special" (fifo, device,
// socket), "entries.too_large", "entries.unreadable".
Result<erofs::NodePtr> read_folder(UniqueFd folder, const std::string& label, const Owner& owner,
                                   TreeBudget& budget);
// A regular file.
Result<erofs::NodePtr> read_single_file(UniqueFd file, const std::string& label, const Owner& owner,
                                        TreeBudget& budget);

// Whether a link at `path` ("a/b", relative to a root) that points to `target` stays below that root, as the
// text goes: not absolute, and never above the root on its way.
bool link_stays_inside(std::string_view path, std::string_view target);

}  // namespace firestop::workspace
