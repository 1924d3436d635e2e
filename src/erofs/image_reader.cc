#include "erofs/image_reader.h"

#include <sys/stat.h>

#include <cstring>
#include <stdexcept>
#include <utility>

namespace firestop::erofs::testing {

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct Block {
  std::vector<std::pair<std::string, uint64_t>> entries;
  std::vector<uint8_t> types;
};

template <typename T>
T get(const std::string& data, size_t offset) {
  require(offset + sizeof(T) <= data.size(), "read beyond the end");
  T value;
  std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

Block parse_block(const std::string& block) {
  const auto first_name = get<uint16_t>(block, 8);
  require(first_name >= 12 && first_name % 12 == 0 && first_name < 4096, "bad first name offset");
  const size_t count = first_name / 12;
  Block out;
  for (size_t i = 0; i < count; ++i) {
    const size_t start = get<uint16_t>(block, i * 12 + 8);
    size_t end = i + 1 < count ? get<uint16_t>(block, (i + 1) * 12 + 8) : block.size();
    require(start < end && end <= block.size(), "bad name offset");
    if (i + 1 == count) end = start + strnlen(block.data() + start, end - start);
    require(end - start >= 1 && end - start <= 255, "bad name length");
    out.entries.emplace_back(block.substr(start, end - start), get<uint64_t>(block, i * 12));
    out.types.push_back(get<uint8_t>(block, i * 12 + 10));
  }
  return out;
}

std::vector<Block> parse_directory(const std::string& data) {
  std::vector<Block> blocks;
  for (size_t at = 0; at < data.size(); at += 4096) blocks.push_back(parse_block(data.substr(at, 4096)));
  return blocks;
}

uint8_t expected_type(uint16_t mode) {
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
    default:
      return 7;
  }
}

}  // namespace

ImageReader::ImageReader(std::string image) : image_(std::move(image)) {
  require(image_.size() % 4096 == 0, "not whole blocks");
  require(at<uint32_t>(1024) == 0xE0F5E1E2, "magic");
  require(at<uint8_t>(1024 + 12) == 12, "block size");
  root_ = at<uint16_t>(1024 + 14);
  inodes_ = at<uint64_t>(1024 + 16);
  require(uint64_t{at<uint32_t>(1024 + 36)} * 4096 == image_.size(), "block count");
  meta_ = uint64_t{at<uint32_t>(1024 + 40)} * 4096;
  require(at<uint32_t>(1024 + 80) == 0, "incompatible features");
}

template <typename T>
T ImageReader::at(uint64_t offset) const {
  return get<T>(image_, offset);
}

std::string ImageReader::raw_data(uint64_t nid) const {
  const uint64_t base = meta_ + nid * 32;
  const auto format = at<uint16_t>(base);
  require((format & 1) == 1, "compact inode");
  const unsigned layout = (format >> 1) & 7;
  require(layout == 0 || layout == 2, "layout");
  require(at<uint16_t>(base + 2) == 0, "extended attributes");
  const auto size = at<uint64_t>(base + 8);
  const uint64_t start = uint64_t{at<uint32_t>(base + 16)} * 4096;
  uint64_t outside = size;
  if (layout == 2) {
    require(size % 4096 != 0, "inline without a tail");
    outside = size / 4096 * 4096;
    require((base + 64) % 4096 + size % 4096 <= 4096 && (base + 64) / 4096 == base / 4096,
            "inline data cross a block's end");
  }
  std::string data;
  if (outside > 0) {
    require(start + outside <= image_.size(), "data beyond the end");
    data = image_.substr(start, outside);
  }
  if (layout == 2) data += image_.substr(base + 64, size % 4096);
  return data;
}

ReadInode ImageReader::inode(uint64_t nid) const {
  const uint64_t base = meta_ + nid * 32;
  ReadInode inode;
  inode.nid = nid;
  inode.mode = at<uint16_t>(base + 4);
  inode.uid = at<uint32_t>(base + 24);
  inode.gid = at<uint32_t>(base + 28);
  inode.mtime = at<int64_t>(base + 32);
  inode.mtime_nsec = at<uint32_t>(base + 40);
  inode.links = at<uint32_t>(base + 44);
  if (S_ISCHR(inode.mode) || S_ISBLK(inode.mode)) {
    inode.rdev = at<uint32_t>(base + 16);
  } else if (S_ISDIR(inode.mode)) {
    std::string before;
    for (const Block& block : parse_directory(raw_data(nid))) {
      for (size_t i = 0; i < block.entries.size(); ++i) {
        const auto& [name, child] = block.entries[i];
        require(before < name, "names out of order");
        before = name;
        require(block.types[i] == expected_type(at<uint16_t>(meta_ + child * 32 + 4)), "file type");
        if (name == ".") {
          require(child == nid, "'.'");
        } else if (name != "..") {
          inode.entries.emplace(name, child);
        }
      }
    }
    require(lookup(nid, ".") == nid && lookup(nid, "..") != 0, "'.' and '..'");
  } else if (S_ISREG(inode.mode) || S_ISLNK(inode.mode)) {
    inode.data = raw_data(nid);
  }
  return inode;
}

uint64_t ImageReader::lookup(uint64_t directory, const std::string& name) const {
  const std::string data = raw_data(directory);
  size_t low = 0, high = (data.size() + 4095) / 4096;  // the last block whose first name is <= name
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    const Block block = parse_block(data.substr(middle * 4096, 4096));
    (block.entries.front().first <= name ? low : high) = middle;
  }
  const Block block = parse_block(data.substr(low * 4096, 4096));
  size_t from = 0, to = block.entries.size();
  while (from < to) {
    const size_t middle = (from + to) / 2;
    const int order = block.entries[middle].first.compare(name);
    if (order == 0) return block.entries[middle].second;
    if (order < 0) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return 0;
}

std::map<std::string, ReadInode> ImageReader::everything() const {
  std::map<std::string, ReadInode> out;
  std::vector<std::pair<std::string, uint64_t>> open = {{"", root_}};
  while (!open.empty()) {
    const auto [path, nid] = open.back();
    open.pop_back();
    const ReadInode& read = out.emplace(path, inode(nid)).first->second;
    for (const auto& [name, child] : read.entries) open.emplace_back(path + "/" + name, child);
  }
  return out;
}

}  // namespace firestop::erofs::testing
