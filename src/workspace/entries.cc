// The workspace root's plain entries, and mounts, as images.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "erofs/writer.h"
#include "workspace/host_tree.h"
#include "workspace/workspace.h"

namespace firestop::workspace {
namespace {

using erofs::NodePtr;
using manifest::Entry;
using manifest::EntryType;
using manifest::Manifest;
using Binds = std::map<std::string, std::string>;

Owner owner_of(const Manifest& manifest, const Entry& entry) {
  const std::string& user = entry.owner.empty() ? manifest.run_as : entry.owner;
  return {manifest.uid_of(user), gid_of(manifest, entry.group.empty() ? manifest.run_as : entry.group)};
}

// What the entry names on the host: below the manifest's folder, or wherever --bind says.
Result<UniqueFd> open_source(const Manifest& manifest, const std::string& what,
                             const manifest::Source& source, const Binds& binds, int flags,
                             std::string& label) {
  // Non-blocking, so that a fifo is an error and no wait.
  flags |= O_NONBLOCK;
  if (!source.bind.empty()) {
    const auto bind = binds.find(source.bind);
    if (bind == binds.end())
      return fail("entries.no_bind", what + ": nothing is bound to '" + source.bind + "'",
                  "run with --bind " + source.bind + "=PATH");
    label = bind->second;
    auto file = open_file(bind->second, flags);
    if (!file) return fail("entries.unreadable", what + ": " + file.error().message);
    return file;
  }
  label = source.path;
  TRY_ASSIGN(const UniqueFd folder, open_file(manifest.folder, O_PATH | O_DIRECTORY));
  auto file = open_beneath(folder.get(), source.path, flags, 0);
  if (!file)
    return fail("entries.unreadable", what + ": " + file.error().message,
                "`src` is a path below " + manifest.folder + ", also after every symbolic link on the way");
  return file;
}

void set_owner(const NodePtr& node, const Owner& owner) {
  node->uid = owner.uid;
  node->gid = owner.gid;
}

Result<NodePtr> make_entry(const Manifest& manifest, const Entry& entry, const Binds& binds, int64_t now,
                           TreeBudget& budget) {
  const Owner owner = owner_of(manifest, entry);
  NodePtr node;
  std::string label;
  switch (entry.type) {
    case EntryType::kFile:
      node = erofs::make_file(entry.content, 0644, owner.uid, owner.gid, now);
      break;
    case EntryType::kLocalFile: {
      TRY_ASSIGN(UniqueFd file, open_source(manifest, entry.path, entry.source, binds, O_RDONLY, label));
      TRY_ASSIGN(node, read_single_file(std::move(file), label, owner, budget));
      break;
    }
    case EntryType::kLocalDir: {
      TRY_ASSIGN(UniqueFd folder,
                 open_source(manifest, entry.path, entry.source, binds, O_RDONLY | O_DIRECTORY, label));
      TRY_ASSIGN(node, read_folder(std::move(folder), label, owner, budget));
      break;
    }
    default:  // a folder, or the place where a repository or a mount goes
      node = erofs::make_directory(0755, owner.uid, owner.gid, now);
  }
  if (entry.permissions != 0 && entry.type != EntryType::kGitRepo && entry.type != EntryType::kMount)
    node->mode = (node->mode & S_IFMT) | (entry.permissions & 0777);
  return node;
}

using Packed = std::vector<PackedFile>;

// Has the bytes of a file digested while they are written.
std::shared_ptr<std::string> digest_of(erofs::Node& node) {
  auto digest = std::make_shared<std::string>();
  if (!node.source) {
    *digest = sha256_hex(node.data);
    return digest;
  }
  node.source = [source = std::move(node.source), digest](const auto& sink) -> Result<void> {
    Sha256 hash;
    TRY(source([&](std::string_view bytes) {
      hash.update(bytes);
      return sink(bytes);
    }));
    *digest = hash.hex();
    return {};
  };
  return digest;
}

class Listing {
 public:
  explicit Listing(const NodePtr& root) { add(root, ""); }
  Packed files() const {
    Packed out;
    for (const auto& [path, node] : files_)
      out.push_back({path, node->source ? node->size : node->data.size(), *digests_.at(node.get())});
    return out;
  }

 private:
  // As deep as the tree, which read_folder() bounds.
  void add(const NodePtr& node, const std::string& path) {
    for (const auto& [name, child] : node->children) add(child, path.empty() ? name : path + "/" + name);
    if (!S_ISREG(node->mode)) return;
    files_.emplace_back(path, node);
    auto& digest = digests_[node.get()];
    if (!digest) digest = digest_of(*node);
  }

  std::vector<std::pair<std::string, NodePtr>> files_;
  std::map<const erofs::Node*, std::shared_ptr<std::string>> digests_;
};

Result<Packed> write_image(const NodePtr& root, const std::string& path) {
  const Listing listing(root);
  erofs::Writer writer(root);
  TRY(writer.layout());
  ::unlink(path.c_str());
  TRY_ASSIGN(const UniqueFd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL));
  if (auto written = writer.write(file.get()); !written) {
    ::unlink(path.c_str());
    return Unexpected(written.error());
  }
  return listing.files();
}

}  // namespace

uint32_t gid_of(const Manifest& manifest, const std::string& group) {
  const auto place = std::find(manifest.groups.begin(), manifest.groups.end(), group);
  if (place == manifest.groups.end())
    return manifest.uid_of(group);  // every account's own group has its name
  return kFirstGroup + static_cast<uint32_t>(place - manifest.groups.begin());
}

Result<Packed> write_entries_image(const Manifest& manifest, const Binds& binds, const std::string& path) {
  const int64_t now = ::time(nullptr);
  const uint32_t uid = manifest.uid_of(manifest.run_as);
  const NodePtr root = erofs::make_directory(0755, uid, uid, now);
  std::vector<Entry> entries = manifest.entries;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.path < b.path; });
  TreeBudget budget;
  for (const Entry& entry : entries) {
    TRY_ASSIGN(const NodePtr node, make_entry(manifest, entry, binds, now, budget));
    auto parent = entry.path.find('/') == std::string::npos
                      ? Result<NodePtr>(root)
                      : erofs::directory_at(root, parent_path(entry.path));
    if (!parent) return wrap(parent.error(), "entry " + entry.path);
    const auto [place, added] = (*parent)->children.emplace(std::string(file_name(entry.path)), node);
    if (added) continue;
    // A folder on a folder that its parent's source brought along: the content stays, the entry's owner
    // counts.
    if (!S_ISDIR(place->second->mode) || !S_ISDIR(node->mode) || !node->children.empty())
      return fail("entries.conflict",
                  "entry " + entry.path + ": something is there already, from the source of " +
                      parent_path(entry.path),
                  "give one of the two another path");
    set_owner(place->second, owner_of(manifest, entry));
  }
  return write_image(root, path);
}

Result<Packed> write_mount_image(const std::string& source_folder, const Owner& owner,
                                 const std::string& path) {
  auto folder = open_file(source_folder, O_RDONLY | O_DIRECTORY);
  if (!folder) return fail("entries.unreadable", folder.error().message);
  TreeBudget budget;
  TRY_ASSIGN(const NodePtr root, read_folder(std::move(*folder), source_folder, owner, budget));
  return write_image(root, path);
}

Result<Packed> write_skills_image(const Manifest& manifest, const Binds& binds, const std::string& path) {
  const uint32_t uid = manifest.uid_of(manifest.run_as);
  const NodePtr root = erofs::make_directory(0755, uid, uid, ::time(nullptr));
  TreeBudget budget;
  for (const auto& skill : manifest.skills) {
    std::string label;
    TRY_ASSIGN(UniqueFd folder, open_source(manifest, "skill " + skill.name, skill.source, binds,
                                            O_RDONLY | O_DIRECTORY, label));
    TRY_ASSIGN(root->children[skill.name], read_folder(std::move(folder), label, Owner{uid, uid}, budget));
  }
  return write_image(root, path);
}

Result<Packed> write_memory_image(const std::string& folder, const Owner& owner, const MemoryCap& most,
                                  const std::string& path) {
  if (folder.empty())
    return write_image(erofs::make_directory(0755, owner.uid, owner.gid, ::time(nullptr)), path);
  TRY_ASSIGN(UniqueFd opened, open_file(folder, O_RDONLY | O_DIRECTORY));
  TreeBudget budget{most.bytes, uint64_t{most.files} + 1};
  TRY_ASSIGN(const NodePtr root, read_folder(std::move(opened), folder, owner, budget));
  return write_image(root, path);
}

}  // namespace firestop::workspace
