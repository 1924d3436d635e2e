#include "erofs/writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "erofs/format.h"
#include "erofs/layout.h"
#include "erofs/stream.h"

namespace firestop::erofs {

namespace {

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// CRC-32C (Castagnoli, RFC 3720 appendix B.4), seeded with ones and not inverted at the end, as the
// kernel computes it over the superblock.
uint32_t crc32c(std::string_view data) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : data) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82F63B78u : 0u);
  }
  return crc;
}

uint8_t file_type(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return 1;
    case S_IFDIR:
      return 2;
    case S_IFCHR:
      return 3;
    case S_IFBLK:
      return 4;
    case S_IFIFO:
      return 5;
    case S_IFSOCK:
      return 6;
    case S_IFLNK:
      return 7;
    default:
      return 0;
  }
}

std::string first_block(const Layout& layout) {
  SuperBlock super = {};
  super.magic = kMagic;
  super.feature_compat = kCompatChecksum | kCompatMtime;
  super.block_bits = kBlockBits;
  super.root_nid = static_cast<uint16_t>(layout.places.front().nid());  // the first slot of block 1
  super.inodes = layout.places.size();
  super.blocks = static_cast<uint32_t>(layout.total_bytes / kBlock);
  std::string block(kBlock, '\0');
  std::memcpy(block.data() + kSuperOffset, &super, sizeof super);
  super.checksum = crc32c(std::string_view(block).substr(kSuperOffset));
  std::memcpy(block.data() + kSuperOffset, &super, sizeof super);
  return block;
}

ExtendedInode inode_of(const Place& place, size_t serial) {
  const Node& node = *place.node;
  const bool device = S_ISCHR(node.mode) || S_ISBLK(node.mode);
  ExtendedInode inode = {};
  inode.format = static_cast<uint16_t>(1u | static_cast<unsigned>(place.layout) << 1);
  inode.mode = static_cast<uint16_t>(node.mode);
  inode.size = place.size;
  inode.block_or_rdev = device ? node.rdev : place.first_block;
  inode.serial = static_cast<uint32_t>(serial + 1);
  inode.uid = node.uid;
  inode.gid = node.gid;
  inode.mtime = node.mtime;
  inode.mtime_nsec = node.mtime_nsec;
  inode.links = place.links;
  return inode;
}

using Sink = std::function<Result<void>(std::string_view)>;

Result<void> emit_directory(const Node& directory, const Node& parent, const Sink& sink) {
  const std::vector<NamedEntry> entries = sorted_entries(directory, parent);
  for (size_t first = 0; first < entries.size();) {
    const BlockFill fill = fill_block(entries, first);
    std::string heads, names;
    for (size_t i = first; i < first + fill.count; ++i) {
      const size_t offset = fill.count * sizeof(DirectoryEntry) + names.size();
      const DirectoryEntry entry = {.nid = entries[i].node->inode_number,
                                    .name_offset = static_cast<uint16_t>(offset),
                                    .file_type = file_type(entries[i].node->mode),
                                    .reserved = 0};
      heads += bytes_of(entry);
      names += entries[i].name;
    }
    first += fill.count;
    if (first < entries.size()) names.resize(kBlock - heads.size());
    TRY(sink(heads));
    TRY(sink(names));
  }
  return {};
}

Result<void> emit_content(const Place& place, const Node& parent, const Sink& sink) {
  const Node& node = *place.node;
  if (S_ISDIR(node.mode)) return emit_directory(node, parent, sink);
  if (S_ISREG(node.mode) && node.source) return node.source(sink);
  if (S_ISREG(node.mode) || S_ISLNK(node.mode)) return sink(node.data);
  return {};
}

// Whole blocks go to `data`, an inline tail to `meta`; exactly the size that the layout knows.
Result<void> write_content(const Place& place, const Node& parent, Stream& meta, Stream& data) {
  const uint64_t outside = place.layout == DataLayout::kInline ? place.blocks * kBlock : place.size;
  uint64_t seen = 0;
  const Sink sink = [&](std::string_view part) -> Result<void> {
    if (part.size() > place.size - seen) {
      return fail("erofs.size_changed", "a file became longer than the " + std::to_string(place.size) +
                                            " bytes that it had when the image was laid out");
    }
    if (seen < outside) {
      const std::string_view head = part.substr(0, static_cast<size_t>(outside - seen));
      TRY(data.append(head));
      seen += head.size();
      part.remove_prefix(head.size());
    }
    seen += part.size();
    return meta.append(part);
  };
  TRY(emit_content(place, parent, sink));
  if (seen != place.size) {
    return fail("erofs.size_changed", "a file gave " + std::to_string(seen) + " bytes instead of the " +
                                          std::to_string(place.size) +
                                          " that it had when the image was laid out");
  }
  return data.pad_to((place.first_block + place.blocks) * kBlock);
}

}  // namespace

struct Writer::State {
  NodePtr root;
  Layout layout;
};

Writer::Writer(NodePtr root) : state_(std::make_shared<State>(State{std::move(root), {}})) {}

Result<void> Writer::layout() {
  TRY_ASSIGN(state_->layout, make_layout(state_->root.get()));
  return {};
}

Result<void> Writer::write(int fd) {
  const Layout& layout = state_->layout;
  if (layout.places.empty()) return fail("erofs.no_layout", "an image is written before it was laid out");
  if (::ftruncate(fd, 0) != 0 || ::ftruncate(fd, static_cast<off_t>(layout.total_bytes)) != 0) {
    return fail_errno("erofs.write", "making a file of " + std::to_string(layout.total_bytes) + " bytes");
  }
  Stream meta(fd, 0);
  Stream data(fd, layout.data_offset);
  TRY(meta.append(first_block(layout)));
  for (size_t i = 0; i < layout.places.size(); ++i) {
    const Place& place = layout.places[i];
    TRY(meta.pad_to(place.inode_offset));
    TRY(meta.append(bytes_of(inode_of(place, i))));
    TRY(write_content(place, *layout.places[place.parent].node, meta, data));
  }
  TRY(meta.finish());
  return data.finish();
}

uint64_t Writer::image_bytes() const {
  return state_->layout.total_bytes;
}

}  // namespace firestop::erofs
