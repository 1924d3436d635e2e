#include "sandbox/collect.h"

#include <fcntl.h>

#include "base/file.h"

namespace firestop::sandbox {

Result<void> Collector::expect(uint16_t stream, const std::string& path) {
  TRY_ASSIGN(files_[stream], open_file(path, O_WRONLY | O_CREAT | O_EXCL));
  return {};
}

Result<bool> Collector::data(uint16_t stream, std::string_view bytes) {
  const auto file = files_.find(stream);
  if (file == files_.end()) return fail("channel.bad_stream", "the guest sent data that nobody asked for");
  if (bytes.size() > left_) return false;
  left_ -= bytes.size();
  TRY(write_all(file->second.get(), bytes));
  return true;
}

}  // namespace firestop::sandbox
