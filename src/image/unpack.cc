#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/file.h"

namespace firestop::image {

namespace {

constexpr size_t kChunk = 256u << 10;

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

Reader make_reader() {
  return {archive_read_new(), archive_read_free};
}

std::string why(archive* reader) {
  const char* text = archive_error_string(reader);
  return text != nullptr ? text : "damaged";
}

Result<std::string> read_entry(archive* reader, uint64_t limit, const std::string& what) {
  std::string out;
  std::vector<char> buffer(kChunk);
  while (true) {
    const la_ssize_t n = archive_read_data(reader, buffer.data(), buffer.size());
    if (n < 0) return fail("image.bad_data", what + ": " + why(reader));
    if (n == 0) return out;
    if (out.size() + static_cast<size_t>(n) > limit) return fail("image.too_large", what + " is too large");
    out.append(buffer.data(), static_cast<size_t>(n));
  }
}

// Feeds the archive inside an archive's entry.
struct Nested {
  archive* outer;
  std::vector<char> buffer = std::vector<char>(kChunk);
};

la_ssize_t read_nested(archive* inner, void* context, const void** data) {
  auto* nested = static_cast<Nested*>(context);
  *data = nested->buffer.data();
  const la_ssize_t n = archive_read_data(nested->outer, nested->buffer.data(), nested->buffer.size());
  if (n < 0) archive_set_error(inner, EINVAL, "%s", why(nested->outer).c_str());
  return n;
}

}  // namespace

Result<std::string> decompress(std::string_view data, uint64_t limit) {
  const Reader reader = make_reader();
  if (!reader) return fail("image.bad_data", "out of memory");
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_memory(reader.get(), data.data(), data.size()) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK) {
    return fail("image.bad_data", "compressed data: " + why(reader.get()));
  }
  if (archive_filter_code(reader.get(), 0) == ARCHIVE_FILTER_NONE) {
    return fail("image.bad_data", "data that is not compressed in a known way");
  }
  return read_entry(reader.get(), limit, "compressed data");
}

Result<void> walk_deb(const std::string& deb_path, const std::function<bool(const std::string& path)>& want,
                      const std::function<Result<void>(const std::string& path, std::string bytes)>& take,
                      uint64_t limit) {
  const Reader outer = make_reader();
  const Reader inner = make_reader();
  if (!outer || !inner) return fail("image.bad_data", "out of memory");
  archive_read_support_format_ar(outer.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_filename(outer.get(), deb_path.c_str(), kChunk) != ARCHIVE_OK) {
    return fail("image.bad_data", deb_path + ": " + why(outer.get()));
  }
  while (true) {
    if (archive_read_next_header(outer.get(), &entry) != ARCHIVE_OK) {
      return fail("image.bad_data", deb_path + ": no data.tar inside");
    }
    const char* name = archive_entry_pathname(entry);
    if (name != nullptr && std::string_view(name).starts_with("data.tar")) break;
  }
  archive_read_support_filter_all(inner.get());
  archive_read_support_format_tar(inner.get());
  Nested nested{outer.get()};
  if (archive_read_open(inner.get(), &nested, nullptr, read_nested, nullptr) != ARCHIVE_OK) {
    return fail("image.bad_data", deb_path + ": " + why(inner.get()));
  }
  while (true) {
    const int status = archive_read_next_header(inner.get(), &entry);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
      return fail("image.bad_data", deb_path + ": " + why(inner.get()));
    }
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
      continue;
    std::string path = name;
    if (path.starts_with("./")) path.erase(0, 2);
    if (!want(path)) continue;
    TRY_ASSIGN(std::string bytes, read_entry(inner.get(), limit, deb_path + ": " + path));
    TRY(take(path, std::move(bytes)));
  }
}

}  // namespace firestop::image
