// Listing and removing snapshot templates.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "vmm/template.h"

namespace firestop::vmm {
namespace {

bool is_key(std::string_view name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string> names_in(const std::string& directory) {
  struct Closer {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Closer> dir(::opendir(directory.c_str()));
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir.get())) names.emplace_back(entry->d_name);
  return names;
}

uint64_t bytes_on_disk(const std::string& path) {
  uint64_t bytes = 0;
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) return 0;
  if (!S_ISDIR(st.st_mode)) return static_cast<uint64_t>(st.st_blocks) * 512;
  for (const auto& name : names_in(path))
    if (name != "." && name != ".." && ::lstat(join_path(path, name).c_str(), &st) == 0)
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
  return bytes;
}

// Removes one entry whose template nobody is making; returns the bytes freed.
Result<uint64_t> remove_leftover(const std::string& directory, const std::string& name) {
  const std::string path = join_path(directory, name);
  const uint64_t bytes = bytes_on_disk(path);
  TRY(remove_tree(path));
  return bytes;
}

}  // namespace

Result<std::vector<TemplateInfo>> list_templates() {
  std::vector<TemplateInfo> out;
  const std::string directory = templates_directory();
  for (const auto& name : names_in(directory)) {
    if (!is_key(name)) continue;
    const std::string path = join_path(directory, name);
    TemplateInfo info;
    info.key = name;
    info.bytes = bytes_on_disk(path);
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) continue;  // removed meanwhile
    info.used = st.st_mtim.tv_sec;
    if (const auto text = read_file(join_path(path, "meta.json"), 64u << 10))
      if (const auto meta = codec::parse_json(*text)) {
        info.image_digest = meta->string_or("image_digest", "");
        info.memory = static_cast<uint64_t>(std::max<int64_t>(meta->int_or("memory", 0), 0));
        info.cpus = static_cast<unsigned>(std::clamp<int64_t>(meta->int_or("cpus", 0), 0, 1 << 20));
        info.created = meta->int_or("created", 0);
      }
    out.push_back(std::move(info));
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.used != b.used ? a.used > b.used : a.key < b.key; });
  return out;
}

Result<void> remove_template(const std::string& key) {
  if (!is_key(key)) return fail("vmm.template", "'" + printable_tail(key, 1) + "' is no template's name");
  // Out of the way at once, so that nobody finds half of it.
  const std::string path = join_path(templates_directory(), key);
  const std::string dead = path + ".dead-" + random_hex(6);
  if (::rename(path.c_str(), dead.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("vmm.template", "cannot remove the snapshot template " + path);
  }
  return remove_tree(dead);
}

Result<uint64_t> prune_templates(bool all) {
  const std::string directory = templates_directory();
  uint64_t freed = 0;
  TRY_ASSIGN(const auto templates, list_templates());
  for (size_t i = all ? 0 : kKeptTemplates; i < templates.size(); ++i) {
    TRY(remove_template(templates[i].key));
    freed += templates[i].bytes;
  }
  for (const auto& name : names_in(directory)) {
    const std::string key = name.substr(0, 32);
    if (!is_key(key) || name == key) continue;
    const std::string suffix = name.substr(32);
    if (suffix.starts_with(".dead-") || (all && suffix == ".unusable")) {
      TRY_ASSIGN(const uint64_t bytes, remove_leftover(directory, name));
      freed += bytes;
    } else if (suffix == ".lock") {
      // Whoever makes a template holds its lock; else what is unfinished is a dead maker's.
      const UniqueFd lock(::open(join_path(directory, name).c_str(), O_RDWR | O_CLOEXEC));
      if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
      TRY_ASSIGN(const uint64_t bytes, remove_leftover(directory, key + ".new"));
      freed += bytes;
      ::unlink(join_path(directory, name).c_str());
    }
  }
  return freed;
}

}  // namespace firestop::vmm
