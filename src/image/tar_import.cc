#include "image/tar_import.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/path.h"
#include "erofs/writer.h"

namespace firestop::image {

namespace {

using erofs::NodePtr;

constexpr size_t kChunk = 1u << 20;
constexpr size_t kTarBlock = 64u << 10;

// libarchive converts pax names to the thread's locale, and composes letters on the way to UTF-8; in the
// "C" locale it cannot, warns, and gives the bytes as they are.
class PlainLocale {
 public:
  PlainLocale() : locale_(newlocale(LC_CTYPE_MASK, "C", locale_t{})) {
    if (locale_ != locale_t{}) before_ = uselocale(locale_);
  }
  ~PlainLocale() {
    if (locale_ == locale_t{}) return;
    uselocale(before_);
    freelocale(locale_);
  }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  locale_t locale_ = {}, before_ = {};
};

Unexpected bad(const std::string& path, const std::string& what) {
  return fail("image.bad_archive", "the root file system's archive, entry '" + path + "': " + what);
}

// "./usr/bin" -> "usr/bin"; the root itself -> "".
Result<std::string> normal_path(std::string path) {
  const std::string original = path;
  if (path == "." || path == "./") return std::string();
  if (path.starts_with("./")) path.erase(0, 2);
  if (path.ends_with('/')) path.pop_back();
  if (path.empty() || path.front() == '/') return bad(original, "an absolute or empty name");
  for (size_t from = 0; from <= path.size();) {
    const size_t end = std::min(path.find('/', from), path.size());
    const std::string_view part = std::string_view(path).substr(from, end - from);
    if (part.empty() || part == "." || part == "..") return bad(original, "not in the normal form");
    from = end + 1;
  }
  return path;
}

bool matches(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(), [&path](const std::string& pattern) {
    return fnmatch(pattern.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
  });
}

// The contents of all regular files, one after the other, in an unnamed file.
struct Spool {
  UniqueFd fd;
  uint64_t size = 0;
};

Result<void> copy_out(const Spool& spool, uint64_t offset, uint64_t size,
                      const std::function<Result<void>(std::string_view)>& sink) {
  std::string buffer(std::min<uint64_t>(size, kChunk), '\0');
  while (size > 0) {
    const ssize_t n = pread(spool.fd.get(), buffer.data(), std::min<uint64_t>(size, buffer.size()),
                            static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("image.read", "reading a temporary file");
    if (n == 0) return fail("image.read", "a temporary file became shorter");
    TRY(sink({buffer.data(), static_cast<size_t>(n)}));
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return {};
}

class Importer {
 public:
  Importer(const ImportRules& rules, std::shared_ptr<Spool> spool)
      : rules_(rules),
        spool_(std::move(spool)),
        root_(erofs::make_directory(0755, 0, 0, 0)),
        buffer_(kChunk, '\0') {}

  const NodePtr& root() const { return root_; }

  Result<void> add(archive* tar, archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    if (raw == nullptr) return bad("?", "a name that cannot be read");
    TRY_ASSIGN(const std::string path, normal_path(raw));
    if (++entries_ > rules_.max_entries) return bad(path, "too many entries");
    if (std::count(path.begin(), path.end(), '/') >= rules_.max_depth) return bad(path, "too deep");
    const bool directory =
        archive_entry_hardlink(entry) == nullptr && archive_entry_filetype(entry) == AE_IFDIR;
    if (!directory && matches(rules_.remove, "/" + path) && !matches(rules_.keep, "/" + path)) return {};
    if (directory) return add_directory(path, entry);
    if (path.empty()) return bad(raw, "the root is not a directory");
    TRY_ASSIGN(const NodePtr node, make(tar, entry, path));
    if (!node) return {};
    TRY_ASSIGN(const NodePtr parent, parent_of(path));
    NodePtr& place = parent->children[std::string(file_name(path))];
    if (place && S_ISDIR(place->mode)) return bad(path, "a file in the place of a directory");
    place = node;  // as tar does: what comes later counts
    return {};
  }

  Result<void> add_files() {
    for (const auto& [path, bytes] : rules_.add) {
      TRY_ASSIGN(const NodePtr parent, parent_of(path));
      parent->children[std::string(file_name(path))] = erofs::make_file(bytes, 0644, 0, 0, root_->mtime);
    }
    return {};
  }

 private:
  Result<NodePtr> parent_of(const std::string& path) {
    const std::string parent = parent_path(path);
    auto found = erofs::directory_at(root_, parent == "." ? "" : parent);
    if (!found) return bad(path, "it lies below something that is no directory");
    return found;
  }

  Result<void> add_directory(const std::string& path, archive_entry* entry) {
    auto found = erofs::directory_at(root_, path);
    if (!found) return bad(path, "a directory in the place of a file");
    set_attributes(**found, entry, S_IFDIR);
    return {};
  }

  static void set_attributes(erofs::Node& node, archive_entry* entry, mode_t type) {
    node.mode = type | (archive_entry_perm(entry) & 07777);
    node.uid = static_cast<uint32_t>(archive_entry_uid(entry));
    node.gid = static_cast<uint32_t>(archive_entry_gid(entry));
    node.mtime = archive_entry_mtime(entry);
    node.mtime_nsec = static_cast<uint32_t>(archive_entry_mtime_nsec(entry));
  }

  // A null node: a hard link to what the filter left out.
  Result<NodePtr> make(archive* tar, archive_entry* entry, const std::string& path) {
    if (const char* target = archive_entry_hardlink(entry)) return linked(target, path);
    auto node = std::make_shared<erofs::Node>();
    const mode_t type = archive_entry_filetype(entry);
    set_attributes(*node, entry, type);
    switch (type) {
      case AE_IFREG:
        TRY(take_content(tar, *node, path));
        break;
      case AE_IFLNK: {
        const char* target = archive_entry_symlink(entry);
        if (target == nullptr || *target == '\0') return bad(path, "a symbolic link without a target");
        node->data = target;
        if (node->data.size() > 4095) return bad(path, "a symbolic link's target of more than 4095 bytes");
        break;
      }
      case AE_IFCHR:
      case AE_IFBLK: {
        const auto major = static_cast<uint32_t>(archive_entry_rdevmajor(entry));
        const auto minor = static_cast<uint32_t>(archive_entry_rdevminor(entry));
        if (major > 0xFFF || minor > 0xFFFFF) return bad(path, "a device number that Linux does not have");
        node->rdev = (minor & 0xFF) | (major << 8) | ((minor & ~0xFFu) << 12);
        break;
      }
      case AE_IFIFO:
        break;
      default:
        return bad(path, "an unknown type of file");
    }
    return NodePtr(std::move(node));
  }

  Result<NodePtr> linked(const char* target_name, const std::string& path) {
    TRY_ASSIGN(const std::string target, normal_path(target_name));
    TRY_ASSIGN(const NodePtr parent, parent_of(target));
    const auto found = parent->children.find(std::string(file_name(target)));
    if (found != parent->children.end() && !S_ISDIR(found->second->mode)) return found->second;
    if (matches(rules_.remove, "/" + target)) return NodePtr();
    return bad(path, "a hard link to '" + target + "', which is no file before it");
  }

  Result<void> take_content(archive* tar, erofs::Node& node, const std::string& path) {
    const uint64_t start = spool_->size;
    while (true) {
      const la_ssize_t n = archive_read_data(tar, buffer_.data(), buffer_.size());
      if (n < 0) return bad(path, archive_error_string(tar) ? archive_error_string(tar) : "cut short");
      if (n == 0) break;
      if (spool_->size + static_cast<uint64_t>(n) > rules_.max_bytes) return bad(path, "too many bytes");
      TRY(write_all(spool_->fd.get(), {buffer_.data(), static_cast<size_t>(n)}));
      spool_->size += static_cast<uint64_t>(n);
    }
    node.size = spool_->size - start;
    node.source = [spool = spool_, start, size = node.size](const auto& sink) {
      return copy_out(*spool, start, size, sink);
    };
    return {};
  }

  const ImportRules& rules_;
  std::shared_ptr<Spool> spool_;
  NodePtr root_;
  std::string buffer_;
  uint64_t entries_ = 0;
};

Result<void> read_archive(int tar_fd, Importer& importer) {
  const PlainLocale locale;
  const std::unique_ptr<archive, int (*)(archive*)> tar(archive_read_new(), archive_read_free);
  if (!tar) return fail("image.bad_archive", "out of memory");
  archive_read_support_format_tar(tar.get());
  const auto archive_failed = [&tar] {
    const char* why = archive_error_string(tar.get());
    return fail("image.bad_archive",
                std::string("reading a root file system's archive: ") + (why ? why : "damaged"));
  };
  if (archive_read_open_fd(tar.get(), tar_fd, kTarBlock) != ARCHIVE_OK) return archive_failed();
  bool any = false;
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(tar.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return archive_failed();
    TRY(importer.add(tar.get(), entry));
    any = true;
  }
  if (!any) return fail("image.bad_archive", "the root file system's archive is empty");
  return {};
}

}  // namespace

Result<uint64_t> root_from_tar(int tar_fd, const std::string& image_path, const ImportRules& rules) {
  auto spool = std::make_shared<Spool>();
  TRY_ASSIGN(spool->fd, open_file(parent_path(image_path), O_TMPFILE | O_RDWR));
  Importer importer(rules, spool);
  TRY(read_archive(tar_fd, importer));
  TRY(importer.add_files());
  erofs::Writer writer(importer.root());
  TRY(writer.layout());
  TRY_ASSIGN(const UniqueFd image, open_file(image_path, O_RDWR | O_CREAT | O_EXCL));
  TRY(writer.write(image.get()));
  return writer.image_bytes();
}

}  // namespace firestop::image
