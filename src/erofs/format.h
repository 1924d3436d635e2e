// EROFS on disk, as far as the writer needs it: Linux fs/erofs/erofs_fs.h (6.1). Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace firestop::erofs {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kBlock = 4096;
inline constexpr unsigned kBlockBits = 12;
inline constexpr uint64_t kSuperOffset = 1024;
inline constexpr uint32_t kMagic = 0xE0F5E1E2;
inline constexpr uint32_t kCompatChecksum = 0x1;
inline constexpr uint32_t kCompatMtime = 0x2;
inline constexpr uint64_t kSlot = 32;  // a node id counts slots from the start of the metadata
inline constexpr size_t kNameMax = 255;

enum class DataLayout : uint16_t {
  kPlain = 0,   // all in blocks of its own
  kInline = 2,  // whole blocks of its own, the rest right behind the inode and in the inode's block
};

struct [[gnu::packed]] SuperBlock {
  uint32_t magic;
  uint32_t checksum;
  uint32_t feature_compat;
  uint8_t block_bits;
  uint8_t extension_slots;
  uint16_t root_nid;
  uint64_t inodes;
  uint64_t build_time;
  uint32_t build_time_nsec;
  uint32_t blocks;
  uint32_t meta_block;
  uint32_t xattr_block;
  uint8_t uuid[16];
  uint8_t volume_name[16];
  uint32_t feature_incompat;
  uint8_t unused[44];
};
static_assert(sizeof(SuperBlock) == 128);

struct [[gnu::packed]] ExtendedInode {
  uint16_t format;  // bit 0: extended; bits 1 to 3: DataLayout
  uint16_t xattr_count;
  uint16_t mode;
  uint16_t reserved;
  uint64_t size;
  uint32_t block_or_rdev;
  uint32_t serial;  // what 32-bit stat shows
  uint32_t uid;
  uint32_t gid;
  int64_t mtime;
  uint32_t mtime_nsec;
  uint32_t links;
  uint8_t reserved2[16];
};
static_assert(sizeof(ExtendedInode) == 64);

// A directory block is an array of these, then the names; the first name's offset gives their number.
// Entries are in order of memcmp over the names, "." and ".." among them.
struct [[gnu::packed]] DirectoryEntry {
  uint64_t nid;
  uint16_t name_offset;
  uint8_t file_type;
  uint8_t reserved;
};
static_assert(sizeof(DirectoryEntry) == 12);

}  // namespace firestop::erofs
