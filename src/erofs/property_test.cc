// Random trees: what goes in comes out, by a reader that shares nothing with the writer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "erofs/image_reader.h"
#include "erofs/writer.h"

namespace firestop::erofs {
namespace {

using testing::ReadInode;

std::string random_name() {
  auto name = *rc::gen::resize(*rc::gen::element(3, 20, 255),
                               rc::gen::container<std::string>(rc::gen::nonZero<char>()));
  for (char& c : name) c = c == '/' ? '_' : c;
  if (name.empty() || name == "." || name == "..") name = "x";
  return name.substr(0, 255);
}

std::string random_bytes_of(size_t size) {
  std::string data(size, '\0');
  auto state = *rc::gen::arbitrary<uint64_t>() | 1;
  for (char& c : data) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return data;
}

void fill(const NodePtr& directory, int depth, std::vector<NodePtr>& files) {
  const int count = *rc::gen::inRange(0, depth == 0 ? 40 : 12);
  for (int i = 0; i < count; ++i) {
    NodePtr node;
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        node = make_directory(*rc::gen::inRange<mode_t>(0, 010000), 1, 2, *rc::gen::arbitrary<int64_t>());
        if (depth < 4) fill(node, depth + 1, files);
        break;
      case 1:
        node = make_symlink(std::string(*rc::gen::element<size_t>(1, 7, 60, 4032, 4095), 'l'), 3, 4, 5);
        break;
      case 2:
        if (!files.empty()) {
          node = *rc::gen::elementOf(files);
          break;
        }
        [[fallthrough]];
      default: {
        const size_t size =
            *rc::gen::oneOf(rc::gen::inRange<size_t>(0, 200), rc::gen::inRange<size_t>(3900, 4200),
                            rc::gen::inRange<size_t>(0, 20000));
        node = make_file(random_bytes_of(size), *rc::gen::inRange<mode_t>(0, 010000),
                         *rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<uint32_t>(),
                         *rc::gen::arbitrary<int64_t>());
        files.push_back(node);
      }
    }
    directory->children[random_name()] = node;
  }
}

size_t count_links(const NodePtr& directory, std::map<const Node*, uint32_t>& links) {
  size_t paths = 1;
  links[directory.get()] += 2;
  for (const auto& [name, child] : directory->children) {
    if (S_ISDIR(child->mode)) {
      ++links[directory.get()];
      paths += count_links(child, links);
    } else {
      ++links[child.get()];
      ++paths;
    }
  }
  return paths;
}

void compare(const NodePtr& node, const std::string& path, const std::map<std::string, ReadInode>& read,
             const std::map<const Node*, uint32_t>& links) {
  const auto found = read.find(path);
  RC_ASSERT(found != read.end());
  const ReadInode& got = found->second;
  RC_ASSERT(got.mode == node->mode);
  RC_ASSERT(got.uid == node->uid);
  RC_ASSERT(got.gid == node->gid);
  RC_ASSERT(got.mtime == node->mtime);
  RC_ASSERT(got.nid == node->inode_number);
  RC_ASSERT(got.links == links.at(node.get()));
  if (!S_ISDIR(node->mode)) RC_ASSERT(got.data == node->data);
  for (const auto& [name, child] : node->children) compare(child, path + "/" + name, read, links);
}

RC_GTEST_PROP(WriterProperty, EveryTreeComesBack, ()) {
  const NodePtr root = make_directory(0755, 0, 0, 0);
  std::vector<NodePtr> files;
  fill(root, 0, files);
  Writer writer(root);
  RC_ASSERT(writer.layout().has_value());
  const UniqueFd fd(memfd_create("image", MFD_CLOEXEC));
  RC_ASSERT(writer.write(fd.get()).has_value());
  std::string image(writer.image_bytes(), '\0');
  RC_ASSERT(pread(fd.get(), image.data(), image.size(), 0) == static_cast<ssize_t>(image.size()));
  const auto read = testing::ImageReader(std::move(image)).everything();
  std::map<const Node*, uint32_t> links;
  RC_ASSERT(count_links(root, links) == read.size());
  compare(root, "", read, links);
}

}  // namespace
}  // namespace firestop::erofs
