#include "erofs/layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>

namespace firestop::erofs {

namespace {

// Block numbers are 32 bits wide, and 2^32-1 stands for "none".
constexpr uint64_t kMaxBlocks = 0xFFFFFFFE;
constexpr uint64_t kMaxBytes = kMaxBlocks * kBlock;

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

Unexpected too_large() {
  return fail("erofs.too_large", "the content does not fit into one image (16 TiB)");
}

Result<void> check_name(const std::string& name) {
  if (name.empty() || name.size() > kNameMax || name == "." || name == ".." ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return fail("erofs.bad_name",
                "a file name of " + std::to_string(name.size()) + " bytes that no file system can hold");
  }
  return {};
}

Result<uint64_t> content_size(const Node& node, const Node& parent) {
  switch (node.mode & S_IFMT) {
    case S_IFREG:
      return node.source ? node.size : node.data.size();
    case S_IFLNK:
      if (node.data.empty() || node.data.size() >= kBlock || node.data.find('\0') != std::string::npos) {
        return fail("erofs.bad_link", "a symbolic link's target must have 1 to 4095 bytes and no NUL");
      }
      return node.data.size();
    case S_IFDIR: {
      const std::vector<NamedEntry> entries = sorted_entries(node, parent);
      uint64_t size = 0;
      for (size_t first = 0; first < entries.size();) {
        const BlockFill fill = fill_block(entries, first);
        first += fill.count;
        size += first == entries.size() ? fill.bytes : kBlock;
      }
      return size;
    }
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
      return 0;
    default:
      return fail("erofs.bad_type", "a node without a file type");
  }
}

// Breadth first, so that the inodes that one `ls -l` reads lie side by side.
Result<std::vector<Place>> collect(Node* root) {
  std::vector<Place> places;
  std::unordered_map<const Node*, size_t> seen;
  places.push_back({.node = root, .parent = 0, .links = 2});
  seen.emplace(root, 0);
  for (size_t at = 0; at < places.size(); ++at) {
    Node* node = places[at].node;
    if (!S_ISDIR(node->mode)) continue;
    for (const auto& [name, child] : node->children) {
      TRY(check_name(name));
      if (!child) return fail("erofs.bad_tree", "a directory entry without a node");
      const bool directory = S_ISDIR(child->mode);
      const auto [found, is_new] = seen.emplace(child.get(), places.size());
      if (!is_new) {
        if (directory) return fail("erofs.bad_tree", "a directory with two names");
        ++places[found->second].links;
        continue;
      }
      places.push_back({.node = child.get(), .parent = at, .links = directory ? 2u : 1u});
      if (directory) ++places[at].links;
    }
  }
  return places;
}

// Puts the inode at or after `cursor` and says where its metadata ends. The tail goes behind the inode
// if that wastes less than a block of its own: it must not cross a block's end.
uint64_t place_inode(Place& place, uint64_t cursor) {
  const uint64_t tail = place.size % kBlock;
  cursor = round_up(cursor, kSlot);
  uint64_t room = kBlock - cursor % kBlock;
  if (room < sizeof(ExtendedInode)) {
    cursor += room;
    room = kBlock;
  }
  const uint64_t wanted = sizeof(ExtendedInode) + tail;
  if (tail != 0 && wanted > room && wanted <= kBlock && room <= kBlock - tail) {
    cursor += room;
    room = kBlock;
  }
  place.inode_offset = cursor;
  if (tail != 0 && wanted <= room) {
    place.layout = DataLayout::kInline;
    place.blocks = place.size / kBlock;
    return cursor + wanted;
  }
  place.layout = DataLayout::kPlain;
  place.blocks = round_up(place.size, kBlock) / kBlock;
  return cursor + sizeof(ExtendedInode);
}

}  // namespace

std::vector<NamedEntry> sorted_entries(const Node& directory, const Node& parent) {
  std::vector<NamedEntry> entries;
  entries.reserve(directory.children.size() + 2);
  for (const auto& [name, node] : directory.children) entries.push_back({name, node.get()});
  const auto add = [&entries](const NamedEntry& entry) {
    const auto before = std::lower_bound(entries.begin(), entries.end(), entry,
                                         [](const auto& a, const auto& b) { return a.name < b.name; });
    entries.insert(before, entry);
  };
  add({".", &directory});
  add({"..", &parent});
  return entries;
}

BlockFill fill_block(const std::vector<NamedEntry>& entries, size_t first) {
  BlockFill fill;
  while (first + fill.count < entries.size()) {
    const uint64_t more = sizeof(DirectoryEntry) + entries[first + fill.count].name.size();
    if (fill.bytes + more > kBlock) break;
    fill.bytes += more;
    ++fill.count;
  }
  return fill;
}

Result<Layout> make_layout(Node* root) {
  if (root == nullptr || !S_ISDIR(root->mode)) {
    return fail("erofs.bad_tree", "the root of an image must be a directory");
  }
  Layout layout;
  TRY_ASSIGN(layout.places, collect(root));
  uint64_t cursor = kBlock;
  for (Place& place : layout.places) {
    TRY_ASSIGN(place.size, content_size(*place.node, *layout.places[place.parent].node));
    if (place.size > kMaxBytes) return too_large();
    cursor = place_inode(place, cursor);
    place.node->inode_number = place.nid();
  }
  layout.data_offset = round_up(cursor, kBlock);
  uint64_t block = layout.data_offset / kBlock;
  for (Place& place : layout.places) {
    if (block + place.blocks > kMaxBlocks) return too_large();
    place.first_block = static_cast<uint32_t>(block);
    block += place.blocks;
  }
  layout.total_bytes = block * kBlock;
  return layout;
}

}  // namespace firestop::erofs
