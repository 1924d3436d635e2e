// Building the tree that an image is written from.
#include <sys/stat.h>

#include "erofs/writer.h"

namespace firestop::erofs {

namespace {

NodePtr make_node(mode_t mode, uint32_t uid, uint32_t gid, int64_t mtime) {
  auto node = std::make_shared<Node>();
  node->mode = mode;
  node->uid = uid;
  node->gid = gid;
  node->mtime = mtime;
  return node;
}

}  // namespace

NodePtr make_directory(mode_t permissions, uint32_t uid, uint32_t gid, int64_t mtime) {
  return make_node(S_IFDIR | (permissions & 07777), uid, gid, mtime);
}

NodePtr make_file(std::string data, mode_t permissions, uint32_t uid, uint32_t gid, int64_t mtime) {
  NodePtr node = make_node(S_IFREG | (permissions & 07777), uid, gid, mtime);
  node->data = std::move(data);
  return node;
}

NodePtr make_symlink(std::string target, uint32_t uid, uint32_t gid, int64_t mtime) {
  NodePtr node = make_node(S_IFLNK | 0777, uid, gid, mtime);
  node->data = std::move(target);
  return node;
}

Result<NodePtr> directory_at(const NodePtr& root, std::string_view path) {
  NodePtr here = root;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (name.empty()) return fail("erofs.bad_name", "an empty name in a path");
    NodePtr& child = here->children[name];
    if (!child) {
      child = make_directory(root->mode & 07777, root->uid, root->gid, root->mtime);
      child->mtime_nsec = root->mtime_nsec;
    } else if (!S_ISDIR(child->mode)) {
      return fail("erofs.not_a_directory", "'" + name + "' is not a directory");
    }
    here = child;
  }
  return here;
}

}  // namespace firestop::erofs
