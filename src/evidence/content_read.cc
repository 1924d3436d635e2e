#include "evidence/content_read.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "base/digest.h"
#include "base/fd.h"
#include "base/file.h"
#include "evidence/content_store.h"

namespace firestop::evidence {

Result<std::string> read_content(const std::string& directory, const std::string& digest) {
  const std::string path = content_path(".", digest);
  if (path.empty()) return fail("evidence.not_found", "'" + digest + "' is no SHA-256");
  TRY_ASSIGN(const UniqueFd root, open_file(directory, O_PATH | O_DIRECTORY));
  open_how how{};
  // O_NONBLOCK: a fifo in its place must not hold us up.
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  if (!fd.valid() && errno == ENOENT)
    return fail("evidence.not_found", "the record has no bytes of " + digest);
  struct stat about{};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0) return fail_errno("evidence.unreadable", path);
  if (!S_ISREG(about.st_mode)) return fail("evidence.unreadable", path + " is not a file");
  TRY_ASSIGN(auto bytes, read_all(fd.get(), kMostContentRead));
  if (sha256_hex(bytes) != digest)
    return fail("evidence.changed", "the bytes that the record has as " + digest + " were changed since",
                "`firestop log verify` says what else was");
  return bytes;
}

}  // namespace firestop::evidence
