// The git index, version 2 (git's Documentation/gitformat-index.txt), with a cache-tree extension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::workspace {

struct IndexEntry {
  std::string path;    // as in the tree: bytes, '/' between components
  std::string id;      // binary object id
  uint32_t mode = 0;   // 0100644, 0100755, 0120000, 0160000
  uint32_t inode = 0;  // low 32 bits of st_ino
  uint32_t size = 0;   // low 32 bits of st_size
};

struct IndexStat {       // the same for every entry
  uint32_t seconds = 0;  // ctime and mtime
  uint32_t uid = 0, gid = 0;
};

// A tree of the commit, for the cache-tree: git then knows without looking that the index is HEAD's tree.
struct IndexTree {
  std::string path;  // "" is the root
  std::string id;    // binary
};

// Bytes that write_index() will give: known before inode numbers are.
uint64_t index_size(const std::vector<IndexEntry>& entries, const std::vector<IndexTree>& trees,
                    const std::string& object_format);
// `entries` in git's order (bytes of the path), `trees` in any; trees that hold no entry are left out.
Result<std::string> write_index(const std::vector<IndexEntry>& entries, const IndexStat& stat,
                                const std::vector<IndexTree>& trees, const std::string& object_format);

}  // namespace firestop::workspace
