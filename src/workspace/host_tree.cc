#include "workspace/host_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/path.h"
#include "base/units.h"

namespace firestop::workspace {
namespace {

using erofs::Node;
using erofs::NodePtr;

constexpr size_t kMaxPath = 4096;
using Sink = std::function<Result<void>(std::string_view)>;

struct Reader {
  std::shared_ptr<UniqueFd> root;
  const std::string& label;
  Owner owner;
  TreeBudget& budget;
  std::map<std::pair<dev_t, ino_t>, NodePtr> linked;

  std::string name(const std::string& path) const { return path.empty() ? label : join_path(label, path); }
  Result<NodePtr> read(const std::string& path, const struct stat& status);
  Result<void> fill(const NodePtr& directory, const std::string& path);
};

NodePtr node_of(const struct stat& status, const Owner& owner) {
  auto node = std::make_shared<Node>();
  node->mode = (status.st_mode & S_IFMT) | (status.st_mode & 0777);
  node->uid = owner.uid;
  node->gid = owner.gid;
  node->mtime = status.st_mtim.tv_sec;
  node->mtime_nsec = static_cast<uint32_t>(status.st_mtim.tv_nsec);
  return node;
}

Result<void> count(TreeBudget& budget, uint64_t bytes, const std::string& name) {
  if (budget.nodes == 0) return fail("entries.too_large", name + ": more files than can be brought in");
  if (bytes > budget.bytes)
    return fail("entries.too_large",
                name + ": too large to bring in (" + format_bytes(bytes) + ", holes included)",
                "all sources together may have " + format_bytes(TreeBudget().bytes));
  --budget.nodes;
  budget.bytes -= bytes;
  return {};
}

// The size that was laid out must be the size that is written.
Result<void> stream_file(int fd, const struct stat& expected, const std::string& name, const Sink& sink) {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return fail_errno("entries.unreadable", name);
  if (now.st_ino != expected.st_ino || now.st_dev != expected.st_dev || now.st_size != expected.st_size)
    return fail("entries.changed", name + ": changed while it was read");
  std::vector<char> buffer(256u << 10);
  uint64_t left = static_cast<uint64_t>(expected.st_size);
  off_t offset = 0;
  while (left > 0) {
    const ssize_t n =
        ::pread(fd, buffer.data(), static_cast<size_t>(std::min<uint64_t>(left, buffer.size())), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("entries.unreadable", name);
    if (n == 0) return fail("entries.changed", name + ": became shorter while it was read");
    TRY(sink(std::string_view(buffer.data(), static_cast<size_t>(n))));
    left -= static_cast<uint64_t>(n);
    offset += n;
  }
  return {};
}

Result<NodePtr> Reader::read(const std::string& path, const struct stat& status) {
  if (path.size() > kMaxPath)
    return fail("entries.too_large", name(path.substr(0, 200)) + "...: the path is too long");
  if (!S_ISDIR(status.st_mode) && status.st_nlink > 1) {
    const auto known = linked.find({status.st_dev, status.st_ino});
    if (known != linked.end()) return known->second;
  }
  NodePtr node = node_of(status, owner);
  switch (status.st_mode & S_IFMT) {
    case S_IFDIR:
      TRY(count(budget, 0, name(path)));
      TRY(fill(node, path));
      return node;
    case S_IFLNK: {
      TRY(count(budget, 0, name(path)));
      char target[kMaxPath];
      const ssize_t n = ::readlinkat(root->get(), path.c_str(), target, sizeof target);
      if (n <= 0 || n == sizeof target) return fail_errno("entries.unreadable", name(path));
      node->data.assign(target, static_cast<size_t>(n));
      if (!link_stays_inside(path, node->data))
        return fail("entries.link_out",
                    name(path) + ": a symbolic link that leaves its folder, to " + node->data,
                    "make it relative and inside, or leave it out");
      break;
    }
    case S_IFREG: {
      node->size = static_cast<uint64_t>(status.st_size);
      TRY(count(budget, node->size, name(path)));
      // Fails now rather than half-way through the image.
      TRY_ASSIGN(const UniqueFd probe,
                 open_beneath(root->get(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
      if (node->size == 0) break;
      node->source = [shared = root, path, status, full = name(path)](const Sink& sink) -> Result<void> {
        TRY_ASSIGN(const UniqueFd file,
                   open_beneath(shared->get(), path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
        return stream_file(file.get(), status, full, sink);
      };
      break;
    }
    default:
      return fail("entries.special",
                  name(path) + ": a " +
                      (S_ISFIFO(status.st_mode)   ? "fifo"
                       : S_ISSOCK(status.st_mode) ? "socket"
                                                  : "device") +
                      " cannot be brought in",
                  "only files, folders and symbolic links can");
  }
  if (status.st_nlink > 1) linked.emplace(std::make_pair(status.st_dev, status.st_ino), node);
  return node;
}

Result<void> Reader::fill(const NodePtr& directory, const std::string& path) {
  auto opened = open_beneath(root->get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (!opened) return fail("entries.unreadable", name(path) + ": " + opened.error().message);
  DIR* stream = ::fdopendir(opened->get());
  if (!stream) return fail_errno("entries.unreadable", name(path));
  opened->release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string child = entry->d_name;
    if (child != "." && child != "..") names.push_back(child);
    if (names.size() > budget.nodes) break;
  }
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  for (const auto& child : names) {
    const std::string below = path.empty() ? child : path + "/" + child;
    struct stat status{};
    if (::fstatat(root->get(), below.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return fail_errno("entries.unreadable", name(below));
    TRY_ASSIGN(directory->children[child], read(below, status));
  }
  return {};
}

}  // namespace

bool link_stays_inside(std::string_view path, std::string_view target) {
  if (target.empty() || target.front() == '/') return false;
  // The link's own folder.
  long depth = std::count(path.begin(), path.end(), '/');
  while (!target.empty()) {
    const size_t end = std::min(target.find('/'), target.size());
    const std::string_view component = target.substr(0, end);
    if (component == "..") {
      if (--depth < 0) return false;
    } else if (!component.empty() && component != ".") {
      ++depth;
    }
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return true;
}

Result<NodePtr> read_folder(UniqueFd folder, const std::string& label, const Owner& owner,
                            TreeBudget& budget) {
  struct stat status{};
  if (::fstat(folder.get(), &status) != 0) return fail_errno("entries.unreadable", label);
  if (!S_ISDIR(status.st_mode)) return fail("entries.wrong_type", label + ": not a folder");
  Reader reader{std::make_shared<UniqueFd>(std::move(folder)), label, owner, budget, {}};
  auto node = reader.read("", status);
  if (!node && node.error().message.find(label) == std::string::npos) return wrap(node.error(), label);
  return node;
}

Result<NodePtr> read_single_file(UniqueFd file, const std::string& label, const Owner& owner,
                                 TreeBudget& budget) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail_errno("entries.unreadable", label);
  if (!S_ISREG(status.st_mode)) return fail("entries.wrong_type", label + ": not a regular file");
  NodePtr node = node_of(status, owner);
  node->size = static_cast<uint64_t>(status.st_size);
  TRY(count(budget, node->size, label));
  if (node->size > 0)
    node->source = [shared = std::make_shared<UniqueFd>(std::move(file)), status, label](const Sink& sink) {
      return stream_file(shared->get(), status, label, sink);
    };
  return node;
}

}  // namespace firestop::workspace
