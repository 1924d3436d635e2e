// Where everything of an image lies: metadata (inodes, each with its inline tail) from block 1, then data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "erofs/format.h"
#include "erofs/writer.h"

namespace firestop::erofs {

// One inode's place.
struct Place {
  Node* node = nullptr;
  size_t parent = 0;  // directories: index of the place of ".."
  uint32_t links = 0;
  uint64_t size = 0;          // of the content; directories: of their blocks
  uint64_t inode_offset = 0;  // bytes from the start of the image
  DataLayout layout = DataLayout::kPlain;
  uint32_t first_block = 0;
  uint64_t blocks = 0;  // of its own, without the inline tail

  uint64_t nid() const { return inode_offset / kSlot; }
};

struct Layout {
  std::vector<Place> places;  // the root first, then the children of each directory together
  uint64_t data_offset = 0;   // end of the metadata, a multiple of kBlock
  uint64_t total_bytes = 0;
};

struct NamedEntry {
  std::string_view name;
  const Node* node;
};

// The entries of a directory as they stand on disk: "." and ".." included, in order of bytes.
std::vector<NamedEntry> sorted_entries(const Node& directory, const Node& parent);
// How many entries from `first` on fit into one directory block, and the bytes they take.
struct BlockFill {
  size_t count = 0;
  uint64_t bytes = 0;
};
BlockFill fill_block(const std::vector<NamedEntry>& entries, size_t first);

Result<Layout> make_layout(Node* root);

}  // namespace firestop::erofs
