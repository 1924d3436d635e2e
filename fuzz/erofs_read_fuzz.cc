// An image that may be damaged in any way: an error, or files whose bytes are as many as they are said to be.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "check.h"
#include "erofs/reader.h"

using firestop::Result;
using firestop::erofs::Reader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  firestop::UniqueFd image(memfd_create("image", MFD_CLOEXEC));
  if (write(image.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  const auto reader = Reader::open(std::move(image));
  if (!reader) return 0;
  std::vector<Reader::File> files;
  (void)reader->each_file([&files](const Reader::File& file) -> Result<void> {
    FUZZ_CHECK(file.path.starts_with('/') && file.path.find('\0') == std::string::npos);
    if (files.size() >= 1000) return firestop::fail("fuzz.enough", "enough");
    files.push_back(file);
    return {};
  });
  for (const auto& file : files) {
    uint64_t bytes = 0;
    const auto read = reader->read(file, [&bytes](std::string_view piece) -> Result<void> {
      bytes += piece.size();
      return {};
    });
    FUZZ_CHECK(!read || bytes == file.size);
  }
  return 0;
}
