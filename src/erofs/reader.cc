#include "erofs/reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "erofs/format.h"

namespace firestop::erofs {
namespace {

constexpr size_t kPiece = 1u << 20;

Unexpected bad(const std::string& what) {
  return fail("erofs.bad_image", "an EROFS image: " + what);
}

template <typename T>
T value_at(std::string_view bytes, size_t at) {
  T value{};
  if (at <= bytes.size() && bytes.size() - at >= sizeof value)
    std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Name {
  std::string name;
  uint64_t nid = 0;
};

// The names in one block of a directory.
Result<void> names_in(std::string_view block, std::vector<Name>& names) {
  const size_t first = value_at<DirectoryEntry>(block, 0).name_offset;
  const size_t count = first / sizeof(DirectoryEntry);
  if (count == 0 || first % sizeof(DirectoryEntry) != 0 || first >= block.size())
    return bad("a directory's block that is none");
  for (size_t i = 0; i < count; ++i) {
    const auto entry = value_at<DirectoryEntry>(block, i * sizeof(DirectoryEntry));
    const size_t begin = entry.name_offset;
    size_t end = i + 1 < count ? value_at<DirectoryEntry>(block, (i + 1) * sizeof(DirectoryEntry)).name_offset
                               : block.size();
    if (begin < first || begin >= end || end > block.size()) return bad("a name outside its block");
    std::string_view name = block.substr(begin, end - begin);
    if (i + 1 == count) name = name.substr(0, name.find('\0'));
    if (name.empty() || name.size() > kNameMax || name.find('/') != std::string_view::npos ||
        name.find('\0') != std::string_view::npos)
      return bad("a name that is none");
    if (name != "." && name != "..") names.push_back({std::string(name), entry.nid});
  }
  return {};
}

}  // namespace

struct Reader::Inode {
  uint16_t mode = 0;
  uint64_t size = 0, data = 0, whole = 0, tail = 0;  // `whole` bytes at `data`, the rest at `tail`
};

Result<void> Reader::bytes_at(uint64_t offset, char* into, size_t size) const {
  if (offset > size_ || size_ - offset < size) return bad("something lies beyond its end");
  while (size > 0) {
    const ssize_t got = ::pread(image_.get(), into, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("erofs.read", "cannot read an EROFS image");
    if (got == 0) return bad("it became shorter");
    offset += static_cast<uint64_t>(got);
    into += got;
    size -= static_cast<size_t>(got);
  }
  return {};
}

Result<Reader> Reader::open(UniqueFd image) {
  Reader reader(std::move(image));
  struct stat info{};
  if (::fstat(reader.image_.get(), &info) != 0)
    return fail_errno("erofs.read", "cannot look at an EROFS image");
  reader.size_ = static_cast<uint64_t>(info.st_size);
  SuperBlock super{};
  TRY(reader.bytes_at(kSuperOffset, reinterpret_cast<char*>(&super), sizeof super));
  if (super.magic != kMagic || super.block_bits != kBlockBits) return bad("it is none");
  if (super.feature_incompat != 0) return bad("of a kind that Firestop does not write");
  reader.meta_ = uint64_t{super.meta_block} * kBlock;
  reader.root_ = super.root_nid;
  return reader;
}

Result<Reader::Inode> Reader::inode_at(uint64_t nid) const {
  if (nid > size_ / kSlot) return bad("an inode beyond its end");
  const uint64_t at = meta_ + nid * kSlot;
  ExtendedInode raw{};
  TRY(bytes_at(at, reinterpret_cast<char*>(&raw), sizeof raw));
  const auto layout = static_cast<DataLayout>(raw.format >> 1 & 7);
  if ((raw.format & 1) == 0 || raw.xattr_count != 0 ||
      (layout != DataLayout::kPlain && layout != DataLayout::kInline))
    return bad("an inode of a kind that Firestop does not write");
  Inode out{.mode = raw.mode, .size = raw.size, .data = uint64_t{raw.block_or_rdev} * kBlock};
  out.whole = layout == DataLayout::kPlain ? raw.size : raw.size / kBlock * kBlock;
  out.tail = at + sizeof raw;
  if (raw.size > size_) return bad("a file larger than the image");
  return out;
}

Result<void> Reader::data_of(const Inode& inode,
                             const std::function<Result<void>(std::string_view)>& sink) const {
  std::string piece(std::min<uint64_t>(std::max<uint64_t>(inode.whole, kBlock), kPiece), '\0');
  for (uint64_t at = 0; at < inode.whole;) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(piece.size(), inode.whole - at));
    TRY(bytes_at(inode.data + at, piece.data(), size));
    TRY(sink({piece.data(), size}));
    at += size;
  }
  if (inode.whole == inode.size) return {};
  const auto rest = static_cast<size_t>(inode.size - inode.whole);  // less than a block
  TRY(bytes_at(inode.tail, piece.data(), rest));
  return sink({piece.data(), rest});
}

Result<void> Reader::each_file(const std::function<Result<void>(const File&)>& take) const {
  struct Open {
    std::string path;
    uint64_t nid = 0;
    unsigned depth = 0;
  };
  std::vector<Open> open{{"", root_, 0}};
  std::set<uint64_t> seen{root_};
  uint64_t entries = 0;
  while (!open.empty()) {
    const Open directory = std::move(open.back());
    open.pop_back();
    TRY_ASSIGN(const Inode inode, inode_at(directory.nid));
    if (!S_ISDIR(inode.mode) || inode.size > kMostDirectory || directory.depth > kMostDepth)
      return bad("a directory that is none, or too large, or too deep");
    std::string blocks;
    TRY(data_of(inode, [&blocks](std::string_view bytes) -> Result<void> {
      blocks += bytes;
      return {};
    }));
    std::vector<Name> names;
    for (size_t at = 0; at < blocks.size(); at += kBlock)
      TRY(names_in(std::string_view(blocks).substr(at, kBlock), names));
    for (const Name& name : names) {
      if (++entries > kMostEntries) return bad("more entries than an image has");
      TRY_ASSIGN(const Inode child, inode_at(name.nid));
      const std::string path = directory.path + "/" + name.name;
      if (S_ISDIR(child.mode)) {
        if (!seen.insert(name.nid).second) return bad("a directory with two names");
        open.push_back({path, name.nid, directory.depth + 1});
      } else if (S_ISREG(child.mode)) {
        TRY(take({path, child.mode, child.size, name.nid}));
      }
    }
  }
  return {};
}

Result<void> Reader::read(const File& file, const std::function<Result<void>(std::string_view)>& sink) const {
  TRY_ASSIGN(const Inode inode, inode_at(file.nid));
  return data_of(inode, sink);
}

}  // namespace firestop::erofs
