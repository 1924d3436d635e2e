// Compressed data and Debian packages, by libarchive, in memory and bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace firestop::image {

// Decompresses gzip, xz, zstd, lz4 (also the legacy frames of kernels) and the like. Errors:
// "image.bad_data" (damaged, or not compressed at all), "image.too_large" beyond `limit` bytes.
Result<std::string> decompress(std::string_view data, uint64_t limit);

// Walks the regular files of a Debian package (deb(5): ar with data.tar.*). `want` sees each path
// ("boot/vmlinuz-6.1") and says whether `take` gets its bytes, at most `limit` each.
Result<void> walk_deb(const std::string& deb_path, const std::function<bool(const std::string& path)>& want,
                      const std::function<Result<void>(const std::string& path, std::string bytes)>& take,
                      uint64_t limit);

}  // namespace firestop::image
