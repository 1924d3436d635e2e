#include "guest/export_tar.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace firestop::guest {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kBuffer = 64u << 10;
constexpr uint64_t kMaxOctalSize = 077777777777;

// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
void put_record(std::string& out, std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) ++length;
  out += std::to_string(length) + " ";
  out.append(key).append("=").append(value).append("\n");
}

// Octal with leading zeros, one less than the field has bytes.
template <size_t N>
void put_octal(char (&field)[N], uint64_t value) {
  for (size_t i = N - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

struct Header {  // ustar
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
      version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(Header) == kBlock);

}  // namespace

Result<void> TarWriter::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t take = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (buffer_.size() < kBuffer) return {};
    TRY(sink_(buffer_));
    buffer_.clear();
  }
  return {};
}

Result<void> TarWriter::put_zeros(uint64_t count) {
  static constexpr char kZeros[4096] = {};
  for (; count > 0; count -= std::min<uint64_t>(count, sizeof kZeros))
    TRY(put(std::string_view(kZeros, static_cast<size_t>(std::min<uint64_t>(count, sizeof kZeros)))));
  return {};
}

Result<void> TarWriter::put_header(char type, const std::string& name, uint64_t size,
                                   const TarMember& member) {
  Header header{};
  ::memcpy(header.name, name.data(), std::min(name.size(), sizeof header.name));
  ::memcpy(header.link, member.target.data(), std::min(member.target.size(), sizeof header.link));
  put_octal(header.mode, member.mode & 0777);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_octal(header.size, size > kMaxOctalSize ? 0 : size);
  put_octal(header.mtime,
            static_cast<uint64_t>(std::clamp<int64_t>(member.mtime, 0, static_cast<int64_t>(kMaxOctalSize))));
  header.type = type;
  ::memcpy(header.magic, "ustar", 6);
  ::memcpy(header.version, "00", 2);
  ::memset(header.checksum, ' ', sizeof header.checksum);
  uint64_t sum = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  for (size_t i = 0; i < sizeof header; ++i) sum += bytes[i];
  char digits[7] = {};
  put_octal(digits, sum);
  ::memcpy(header.checksum, digits, 6);
  header.checksum[6] = '\0';
  return put(std::string_view(reinterpret_cast<const char*>(&header), sizeof header));
}

Result<void> TarWriter::begin(const TarMember& member) {
  const uint64_t size = member.type == TarMember::Type::kFile ? member.size : 0;
  std::string records;
  put_record(records, "hdrcharset", "BINARY");
  put_record(records, "path", member.path);
  if (member.type == TarMember::Type::kLink) put_record(records, "linkpath", member.target);
  if (size > kMaxOctalSize) put_record(records, "size", std::to_string(size));
  char time[48];
  ::snprintf(time, sizeof time, "%lld.%09u", static_cast<long long>(member.mtime), member.mtime_nsec);
  // Before 1970 a fraction would count the other way.
  put_record(records, "mtime", member.mtime < 0 ? std::to_string(member.mtime) : std::string(time));
  TarMember plain;
  plain.mode = 0644;
  TRY(put_header('x', "pax", records.size(), plain));
  TRY(put(records));
  TRY(put_zeros((kBlock - records.size() % kBlock) % kBlock));
  TRY(put_header(static_cast<char>(member.type), member.path, size, member));
  member_left_ = size;
  member_tail_ = (kBlock - size % kBlock) % kBlock;
  return {};
}

Result<void> TarWriter::data(std::string_view bytes) {
  if (bytes.size() > member_left_) bytes = bytes.substr(0, static_cast<size_t>(member_left_));
  member_left_ -= bytes.size();
  TRY(put(bytes));
  return member_left_ == 0 ? put_zeros(std::exchange(member_tail_, 0)) : Result<void>();
}

Result<void> TarWriter::pad_member() {
  TRY(put_zeros(std::exchange(member_left_, 0)));
  return put_zeros(std::exchange(member_tail_, 0));
}

Result<void> TarWriter::finish() {
  TRY(put_zeros(2 * kBlock));
  if (buffer_.empty()) return {};
  TRY(sink_(buffer_));
  buffer_.clear();
  return {};
}

}  // namespace firestop::guest
