// A repository at one commit as an EROFS image: the working files, and a .git that git inside the guest takes
// for an ordinary clone. Nothing is checked out on the host: blobs go from `git cat-file` into the image.
//
// The index holds what stat(2) will show in the guest, so the first `git status` reads no file: EROFS has one
// time per inode (all files get the commit's), overlayfs keeps the inode numbers of its lower layer in the
// low 32 bits, which is what the index keeps, and git compares no device numbers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <unordered_map>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "erofs/writer.h"
#include "workspace/cache.h"
#include "workspace/git.h"
#include "workspace/git_index.h"
#include "workspace/history.h"
#include "workspace/workspace.h"

namespace firestop::workspace {
namespace {

using erofs::make_directory;
using erofs::make_file;
using erofs::NodePtr;

constexpr char kFormat[] = "firestop repository image 1";
constexpr size_t kMaxEntries = 2'000'000;
constexpr uint64_t kMaxTreeBytes = 64ull << 30;
constexpr size_t kMaxLinkBytes = 4095;
// The index must be younger than the files, or git takes them for "racily clean" and reads them.
constexpr int64_t kIndexDelay = 10;

struct Builder {
  const RepoSource& source;
  Owner owner;
  int64_t time = 0;
  std::string tree;
  std::shared_ptr<ObjectReader> objects;
  NodePtr root;
  std::unordered_map<std::string, NodePtr> directories;
  std::vector<IndexEntry> entries;
  std::vector<NodePtr> nodes;  // of `entries`
  std::vector<IndexTree> trees;
  uint64_t bytes = 0;

  NodePtr directory() const { return make_directory(0755, owner.uid, owner.gid, time); }
  NodePtr file(std::string data) const {
    return make_file(std::move(data), 0644, owner.uid, owner.gid, time);
  }

  Result<void> read_commit();
  Result<void> read_tree();
  Result<void> add(std::string_view record);
  Result<NodePtr> content(const std::string& path, const std::string& mode, const std::string& id,
                          uint64_t size);
};

std::string field_of(const std::string& commit, const std::string& name) {
  for (size_t from = 0; from < commit.size() && commit[from] != '\n';) {
    const size_t end = std::min(commit.find('\n', from), commit.size());
    if (commit.compare(from, name.size() + 1, name + " ") == 0)
      return commit.substr(from + name.size() + 1, end - from - name.size() - 1);
    from = end + 1;
  }
  return {};
}

Result<void> Builder::read_commit() {
  TRY_ASSIGN(const std::string commit, objects->read(source.commit, "commit", 4u << 20));
  tree = field_of(commit, "tree");
  if (!is_object_id(tree, source.object_format))
    return fail("git.bad_commit", source.entry + ": commit " + source.commit + " names no tree");
  // "Name <mail> SECONDS ZONE"; whatever it says, it must fit the index.
  const std::string committer = field_of(commit, "committer");
  const size_t close = committer.rfind('>');
  time = close == std::string::npos ? 0 : std::strtoll(committer.c_str() + close + 1, nullptr, 10);
  time = std::clamp<int64_t>(time, 86400, INT64_C(0xffffff00));
  return {};
}

bool is_dot_git(std::string_view name) {
  return name.size() == 4 && name[0] == '.' && (name[1] | 32) == 'g' && (name[2] | 32) == 'i' &&
         (name[3] | 32) == 't';
}

std::string printable(std::string_view path) {
  std::string out;
  for (const char c : path) out.push_back(static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c);
  return out;
}

Result<NodePtr> Builder::content(const std::string& path, const std::string& mode, const std::string& id,
                                 uint64_t size) {
  if (mode == "120000") {
    TRY_ASSIGN(std::string target, objects->read(id, "blob", kMaxLinkBytes));
    if (target.empty() || target.find('\0') != std::string::npos)
      return fail("git.bad_tree", source.entry + ": " + printable(path) + ": a symbolic link to nothing");
    return erofs::make_symlink(std::move(target), owner.uid, owner.gid, time);
  }
  bytes += size;
  if (bytes > kMaxTreeBytes)
    return fail("git.too_large", source.entry + ": the files have more than 64 GiB at " + printable(path));
  NodePtr node = file({});
  if (mode == "100755") node->mode = (node->mode & ~static_cast<mode_t>(0777)) | 0755;
  node->size = size;
  if (size == 0) return node;
  node->source = [reader = objects,
                  id](const std::function<Result<void>(std::string_view)>& sink) -> Result<void> {
    TRY(reader->stream(id, [](const ObjectReader::Header&) { return Result<void>(); }, sink));
    return {};
  };
  return node;
}

// "MODE TYPE ID SIZE\tPATH" of ls-tree.
Result<void> Builder::add(std::string_view record) {
  const size_t tab = record.find('\t');
  if (tab == std::string_view::npos || record.size() < 12)
    return fail("git.read", "git ls-tree: a line without a path");
  const std::string mode(record.substr(0, 6));
  std::string_view rest = record.substr(7, tab - 7);
  const size_t space = rest.find(' ');
  const std::string type(rest.substr(0, space));
  rest.remove_prefix(std::min(space + 1, rest.size()));
  const std::string id(rest.substr(0, rest.find(' ')));
  const std::string path(record.substr(tab + 1));
  if (!is_object_id(id, source.object_format))
    return fail("git.read", "git ls-tree: a line without an object id");
  const std::string name(file_name(path));
  if (name.empty() || name == "." || name == ".." || is_dot_git(name))
    return fail("git.bad_tree", source.entry + ": the commit has an entry named '" + printable(path) + "'",
                "no git writes such a tree; choose another commit");
  if (name.size() > 255)
    return fail("git.bad_tree", source.entry + ": a name longer than 255 bytes: " + printable(path));
  const size_t slash = path.rfind('/');
  const std::string above = slash == std::string::npos ? "" : path.substr(0, slash);
  const auto parent = directories.find(above);
  if (parent == directories.end())
    return fail("git.bad_tree", source.entry + ": no directory for " + printable(path));
  NodePtr node;
  if (type == "tree" || type == "commit") {
    node = directory();
    if (type == "tree") {
      directories.emplace(path, node);
      trees.push_back({path, to_binary(id)});
    }
  } else {
    const size_t digits = record.rfind(' ', tab);
    const std::string size_text(record.substr(digits + 1, tab - digits - 1));
    if (size_text.empty() || size_text.find_first_not_of("0123456789") != std::string::npos)
      return fail("git.missing_objects", source.entry + ": " + printable(path) + ": its object is missing",
                  "a partial clone lacks objects: fetch them all first");
    TRY_ASSIGN(node, content(path, mode, id, std::strtoull(size_text.c_str(), nullptr, 10)));
  }
  if (!parent->second->children.emplace(name, node).second)
    return fail("git.bad_tree", source.entry + ": " + printable(path) + " stands twice in its tree");
  if (type == "tree") return {};
  IndexEntry entry;
  entry.path = path;
  entry.id = to_binary(id);
  entry.mode = type == "commit" ? 0160000 : mode == "120000" ? 0120000 : mode == "100755" ? 0100755 : 0100644;
  entry.size = static_cast<uint32_t>(S_ISREG(node->mode) ? node->size : node->data.size());
  if (type == "commit") entry.size = 0;
  entries.push_back(std::move(entry));
  nodes.push_back(std::move(node));
  if (entries.size() + trees.size() > kMaxEntries)
    return fail("git.too_large", source.entry + ": more than " + std::to_string(kMaxEntries) + " files");
  return {};
}

Result<void> Builder::read_tree() {
  root = directory();
  directories.emplace("", root);
  trees.push_back({"", to_binary(tree)});
  return git_records("git.missing_objects", source.git_dir,
                     {"ls-tree", "-r", "-t", "-z", "-l", "--full-tree", source.commit}, -1, '\0', 1u << 20,
                     [this](std::string_view record) { return add(record); });
}

std::string quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

std::string config_text(const RepoSource& source) {
  const bool sha256 = source.object_format == "sha256";
  std::string text = std::string("[core]\n\trepositoryformatversion = ") + (sha256 ? "1" : "0") +
                     "\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
  if (sha256) text += "[extensions]\n\tobjectFormat = sha256\n";
  text += "[remote \"origin\"]\n\turl = " + quoted("firestop:" + source.name) +
          "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
  if (!source.branch.empty())
    text += "[branch " + quoted(source.branch) +
            "]\n\tremote = origin\n\tmerge = " + quoted("refs/heads/" + source.branch) + "\n";
  return text + "[user]\n\tname = agent\n\temail = agent@firestop.invalid\n";
}

std::string packed_refs(const History& history) {
  std::string text = "# pack-refs with: peeled fully-peeled sorted \n";
  for (const auto& tag : history.tags) {
    text += tag.id + " " + tag.name + "\n";
    if (tag.id != tag.commit) text += "^" + tag.commit + "\n";
  }
  return text;
}

// All objects of the history as one pack below `directory`.
Result<void> make_pack(const RepoSource& source, const History& history, const std::string& directory) {
  std::string wanted;
  for (const auto& id : history.shallow) wanted += "--shallow " + id + "\n";
  wanted += source.commit + "\n";
  for (const auto& tag : history.tags)
    if (tag.id != tag.commit) wanted += tag.id + "\n";
  TRY_ASSIGN(const UniqueFd input, temporary_input(wanted));
  std::vector<std::string> arguments = {"pack-objects", "--revs", "--delta-base-offset", "-q"};
  if (!history.shallow.empty()) arguments.push_back("--shallow");
  arguments.push_back(join_path(directory, "pack"));
  GitLimits limits;
  limits.timeout = std::chrono::hours(1);
  TRY_ASSIGN(const GitOutcome outcome, run_git_on(source.git_dir, arguments, input.get(), -1, limits));
  if (outcome.ok()) return {};
  return fail(
      "git.missing_objects", source.entry + ": cannot pack the history: " + last_words(outcome.error),
      "a partial clone or a damaged repository lacks objects: see git fsck; or set `depth` on the entry");
}

Result<NodePtr> file_node(const Builder& builder, const std::string& path) {
  TRY_ASSIGN(const UniqueFd fd, open_file(path, O_RDONLY));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("file.stat", path);
  NodePtr node = builder.file({});
  node->mode = S_IFREG | 0444;
  node->size = static_cast<uint64_t>(status.st_size);
  node->source = [path](const std::function<Result<void>(std::string_view)>& sink) -> Result<void> {
    TRY_ASSIGN(const UniqueFd file, open_file(path, O_RDONLY));
    std::vector<char> buffer(1u << 20);
    ssize_t n;
    while ((n = ::read(file.get(), buffer.data(), buffer.size())) > 0)
      TRY(sink(std::string_view(buffer.data(), static_cast<size_t>(n))));
    return n < 0 ? Result<void>(fail_errno("file.read", path)) : Result<void>();
  };
  return node;
}

// .git without the index.
Result<NodePtr> git_directory(const Builder& builder, const History& history, const std::string& packs) {
  const RepoSource& source = builder.source;
  const NodePtr git = builder.directory();
  const auto put = [&](const std::string& path, std::string data) -> Result<void> {
    TRY_ASSIGN(const NodePtr parent,
               erofs::directory_at(git, path.find('/') == std::string::npos ? "" : parent_path(path)));
    parent->children[std::string(file_name(path))] = builder.file(std::move(data));
    return {};
  };
  for (const char* path :
       {"refs/heads", "refs/tags", "refs/remotes", "objects/info", "objects/pack", "hooks", "info"})
    TRY(erofs::directory_at(git, path));
  const std::string id = source.commit + "\n";
  TRY(put("HEAD", source.branch.empty() ? id : "ref: refs/heads/" + source.branch + "\n"));
  TRY(put("config", config_text(source)));
  TRY(put("description", "The working copy of a sandbox.\n"));
  TRY(put("info/exclude", ""));
  TRY(put("packed-refs", packed_refs(history)));
  if (!source.branch.empty()) {
    TRY(put("refs/heads/" + source.branch, id));
    TRY(put("refs/remotes/origin/" + source.branch, id));
  }
  if (!history.shallow.empty()) {
    std::string shallow;
    for (const auto& commit : history.shallow) shallow += commit + "\n";
    TRY(put("shallow", shallow));
  }
  TRY_ASSIGN(const NodePtr pack, erofs::directory_at(git, "objects/pack"));
  std::error_code error;
  for (const auto& found : std::filesystem::directory_iterator(packs, error)) {
    TRY_ASSIGN(pack->children[found.path().filename().string()], file_node(builder, found.path().string()));
  }
  if (error) return fail("file.read", packs + ": " + error.message());
  return git;
}

Result<void> build(const RepoSource& source, const Owner& owner, const std::string& path) {
  Builder builder{.source = source, .owner = owner};
  TRY_ASSIGN(ObjectReader reader, ObjectReader::start(source.git_dir));
  builder.objects = std::make_shared<ObjectReader>(std::move(reader));
  TRY(builder.read_commit());
  TRY(builder.read_tree());
  TRY_ASSIGN(const History history, read_history(source));
  TRY_ASSIGN(const TemporaryDirectory packs, TemporaryDirectory::make_at(path + ".packs"));
  TRY(make_pack(source, history, packs.path()));
  TRY_ASSIGN(const NodePtr git, git_directory(builder, history, packs.path()));
  builder.root->children[".git"] = git;
  const NodePtr index =
      builder.file(std::string(index_size(builder.entries, builder.trees, source.object_format), '\0'));
  index->mtime += kIndexDelay;
  git->children["index"] = index;

  erofs::Writer writer(builder.root);
  TRY(writer.layout());
  for (size_t i = 0; i < builder.entries.size(); ++i)
    builder.entries[i].inode = static_cast<uint32_t>(builder.nodes[i]->inode_number);
  const IndexStat stat{static_cast<uint32_t>(builder.time), owner.uid, owner.gid};
  TRY_ASSIGN(index->data, write_index(builder.entries, stat, builder.trees, source.object_format));
  TRY_ASSIGN(const UniqueFd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL));
  return writer.write(file.get());
}

}  // namespace

Result<std::string> repository_image(const RepoSource& source, const Owner& owner) {
  TRY_ASSIGN(const std::string state, history_state(source));
  std::string key = kFormat;
  for (const std::string& part : {source.commit, source.object_format, source.branch, source.name, state,
                                  source.depth ? std::to_string(*source.depth) : std::string("whole"),
                                  std::to_string(owner.uid), std::to_string(owner.gid)})
    key += '\0' + part;
  auto image = cached_file("workspaces/" + sha256_hex(key) + ".erofs",
                           [&](const std::string& path) { return build(source, owner, path); });
  if (!image) return wrap(image.error(), "repository " + source.entry);
  return image;
}

}  // namespace firestop::workspace
