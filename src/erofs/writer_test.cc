#include "erofs/writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "erofs/image_reader.h"

namespace firestop::erofs {
namespace {

using testing::ImageReader;
using testing::ReadInode;

// Bytes without a repeating pattern of a block's length, so that swapped blocks are noticed.
std::string noise(size_t size) {
  std::string out(size, '\0');
  uint64_t state = size * 2654435761u + 1;
  for (char& c : out) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  return out;
}

NodePtr directory() {
  return make_directory(0755, 0, 0, 1000);
}
NodePtr file(std::string data) {
  return make_file(std::move(data), 0644, 1000, 1000, 1234567890);
}

std::string image_of(const NodePtr& root) {
  Writer writer(root);
  const Result<void> laid = writer.layout();
  EXPECT_TRUE(laid.has_value()) << laid.error().message;
  const UniqueFd fd(memfd_create("image", MFD_CLOEXEC));
  const Result<void> wrote = writer.write(fd.get());
  EXPECT_TRUE(wrote.has_value()) << wrote.error().message;
  std::string image(writer.image_bytes(), '\0');
  EXPECT_EQ(pread(fd.get(), image.data(), image.size(), 0), static_cast<ssize_t>(image.size()));
  return image;
}

std::string layout_error(const NodePtr& root) {
  Writer writer(root);
  const Result<void> laid = writer.layout();
  return laid ? "" : laid.error().code;
}

class FsckTest : public ::testing::Test {
 protected:
  // What erofs-utils says about the image; extraction to `out` if that is not empty.
  void fsck(const std::string& image, const std::string& out = "") {
    if (find_program("fsck.erofs").empty()) GTEST_SKIP() << "missing: fsck.erofs (package erofs-utils)";
    const std::string path = directory_ + "/image.erofs";
    ASSERT_TRUE(write_file_atomic(path, image));
    std::vector<std::string> argv = {"fsck.erofs", path};
    if (!out.empty()) argv = {"fsck.erofs", "--extract=" + out, path};
    const Result<RunResult> result = run({.argv = argv});
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->exit_code(), 0) << result->out << result->err;
    EXPECT_EQ(result->err, "");
  }
  void SetUp() override {
    std::string name = ::testing::TempDir() + "erofsXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(directory_)); }

  std::string directory_;
};

class WriterSizes : public ::testing::TestWithParam<size_t> {};

TEST_P(WriterSizes, ContentComesBack) {
  const NodePtr root = directory();
  root->children["f"] = file(noise(GetParam()));
  root->children["g"] = file(noise(GetParam()));  // so that the tail also stands at another place
  const ImageReader reader(image_of(root));
  for (const char* name : {"f", "g"}) {
    const uint64_t nid = reader.lookup(reader.root(), name);
    EXPECT_EQ(nid, root->children[name]->inode_number);
    EXPECT_TRUE(reader.inode(nid).data == noise(GetParam())) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(AroundLimits, WriterSizes,
                         ::testing::Values(0, 1, 4031, 4032, 4033, 4095, 4096, 4097, 65535, 65536, 65537,
                                           110591, 110592, 110593, 1u << 20));

TEST_F(FsckTest, EveryTypeAndOwner) {
  const NodePtr root = make_directory(01777, 5, 6, -1);
  const auto device = [](mode_t mode, uint32_t rdev) {
    auto node = std::make_shared<Node>();
    node->mode = mode;
    node->rdev = rdev;
    return node;
  };
  root->children["null"] = device(S_IFCHR | 0666, (1u << 8) | 3);
  root->children["disk"] = device(S_IFBLK | 0660, (8u << 8) | 1);
  root->children["pipe"] = device(S_IFIFO | 0600, 0);
  root->children["sock"] = device(S_IFSOCK | 0600, 0);
  root->children["big-ids"] = make_file("x", 04711, 4000000000u, 3000000000u, int64_t{1} << 40);
  root->children["big-ids"]->mtime_nsec = 999999999;
  root->children["link"] = make_symlink("big-ids", 1, 2, 3);
  root->children["hard"] = root->children["big-ids"];
  const std::string image = image_of(root);
  const ImageReader reader(image);
  auto all = reader.everything();
  EXPECT_EQ(reader.inode_count(), 7u);
  EXPECT_EQ(all[""].mode, S_IFDIR | 01777);
  EXPECT_EQ(all[""].mtime, -1);
  EXPECT_EQ(all[""].links, 2u);
  EXPECT_EQ(all["/null"].rdev, makedev(1, 3));
  EXPECT_EQ(all["/disk"].rdev, makedev(8, 1));
  EXPECT_EQ(all["/pipe"].mode, S_IFIFO | 0600);
  EXPECT_EQ(all["/sock"].mode, S_IFSOCK | 0600);
  EXPECT_EQ(all["/hard"].nid, all["/big-ids"].nid);
  EXPECT_EQ(all["/hard"].links, 2u);
  EXPECT_EQ(all["/hard"].uid, 4000000000u);
  EXPECT_EQ(all["/hard"].gid, 3000000000u);
  EXPECT_EQ(all["/hard"].mode, S_IFREG | 04711);
  EXPECT_EQ(all["/hard"].mtime, int64_t{1} << 40);
  EXPECT_EQ(all["/hard"].mtime_nsec, 999999999u);
  EXPECT_EQ(all["/link"].data, "big-ids");
  fsck(image);
}

TEST_F(FsckTest, HostileNames) {
  const NodePtr root = directory();
  const std::vector<std::string> names = {
      std::string(255, 'n'),  // the longest
      "\xff\xfe not UTF-8",   //
      "with\nnewline",        //
      "Case",
      "case",  // twins on other systems
      "-rf",
      " ",
      "\x01",               //
      "!sorts before dot",  // "." is not always first
      "..x",
      "...",
      ".\x01",  // around "." and ".."
      "\xc3\xa9",
      "e\xcc\x81"  // one letter in two normal forms
  };
  for (const std::string& name : names) root->children[name] = file(name);
  const std::string image = image_of(root);
  const ImageReader reader(image);
  for (const std::string& name : names) {
    const uint64_t nid = reader.lookup(reader.root(), name);
    ASSERT_NE(nid, 0u) << name;
    EXPECT_EQ(reader.inode(nid).data, name);
  }
  EXPECT_EQ(reader.inode(reader.root()).entries.size(), names.size());
  fsck(image, directory_ + "/out");
  for (const std::string& name : names) {
    const Result<std::string> got = read_file(directory_ + "/out/" + name);
    ASSERT_TRUE(got.has_value()) << name;
    EXPECT_EQ(*got, name);
  }
}

TEST(Writer, DirectoryOf100000) {
  const NodePtr root = directory();
  const NodePtr big = root->children["big"] = directory();
  const NodePtr shared = file("shared");
  for (int i = 0; i < 100000; ++i) big->children["entry-" + std::to_string(i)] = shared;
  const std::string image = image_of(root);
  const ImageReader reader(image);
  const uint64_t nid = reader.lookup(reader.root(), "big");
  EXPECT_EQ(reader.inode(nid).entries.size(), 100000u);
  EXPECT_EQ(reader.inode(shared->inode_number).links, 100000u);
  for (int i = 0; i < 100000; i += 9973) {
    EXPECT_EQ(reader.lookup(nid, "entry-" + std::to_string(i)), shared->inode_number);
  }
  EXPECT_EQ(reader.lookup(nid, "entry-100000"), 0u);
  EXPECT_EQ(reader.lookup(nid, "a"), 0u);
  EXPECT_EQ(reader.lookup(nid, "z"), 0u);
}

TEST(Writer, DeepTree) {
  const NodePtr root = directory();
  NodePtr here = root;
  for (int i = 0; i < 1000; ++i) here = here->children["d"] = directory();
  here->children["bottom"] = file("reached");
  const std::string image = image_of(root);
  const ImageReader reader(image);
  uint64_t nid = reader.root(), parent = nid;
  for (int i = 0; i < 1000; ++i) {
    nid = reader.lookup(parent, "d");
    ASSERT_NE(nid, 0u);
    EXPECT_EQ(reader.lookup(nid, ".."), parent);
    parent = nid;
  }
  EXPECT_EQ(reader.inode(reader.lookup(nid, "bottom")).data, "reached");
}

TEST(Writer, DirectoryBlocksFillExactly) {
  // Sizes of a directory around one block: 12 + name bytes an entry, "." and ".." take 27.
  for (size_t last = 240; last <= 255; ++last) {
    const NodePtr root = directory();
    for (char c = 'a'; c < 'a' + 15; ++c) root->children[std::string(245, c)] = file("x");
    root->children[std::string(last, 'z')] = file("y");
    const ImageReader reader(image_of(root));
    EXPECT_NE(reader.lookup(reader.root(), std::string(last, 'z')), 0u) << last;
    EXPECT_EQ(reader.inode(reader.root()).entries.size(), 16u) << last;
  }
}

TEST_F(FsckTest, SymlinkTargets) {
  const NodePtr root = directory();
  for (const size_t size : {1u, 100u, 4031u, 4032u, 4033u, 4095u}) {
    root->children["l" + std::to_string(size)] = make_symlink(std::string(size, 't'), 0, 0, 0);
  }
  const std::string image = image_of(root);
  const ImageReader reader(image);
  for (const size_t size : {1u, 100u, 4031u, 4032u, 4033u, 4095u}) {
    EXPECT_EQ(reader.inode(reader.lookup(reader.root(), "l" + std::to_string(size))).data,
              std::string(size, 't'));
  }
  fsck(image);
}

TEST(Writer, RootComesFirstWhateverFollows) {
  const NodePtr root = directory();
  for (int i = 0; i < 70000; ++i) root->children[std::to_string(i)] = file(std::string(100, 'x'));
  const ImageReader reader(image_of(root));  // its root number has 16 bits only
  EXPECT_EQ(reader.root(), root->inode_number);
  EXPECT_NE(reader.root(), 0u);
  EXPECT_EQ(reader.inode(reader.root()).entries.size(), 70000u);
}

TEST(Writer, SameTreeSameBytes) {
  const auto make = [](bool backwards) {
    const NodePtr root = directory();
    for (int i = 0; i < 300; ++i) {
      const int n = backwards ? 299 - i : i;
      root->children["d" + std::to_string(n % 7)] = root->children["d" + std::to_string(n % 7)]
                                                        ? root->children["d" + std::to_string(n % 7)]
                                                        : directory();
      root->children["d" + std::to_string(n % 7)]->children[std::to_string(n)] =
          file(noise(static_cast<size_t>(n) * 37));
    }
    return sha256_hex(image_of(root));
  };
  EXPECT_EQ(make(false), make(true));
}

TEST(Writer, BytesMayChangeBetweenLayoutAndWrite) {
  const NodePtr root = directory();
  root->children["index"] = file("before");
  Writer writer(root);
  ASSERT_TRUE(writer.layout());
  root->children["index"]->data = "behind";
  const UniqueFd fd(memfd_create("image", MFD_CLOEXEC));
  ASSERT_TRUE(writer.write(fd.get()));
  std::string image(writer.image_bytes(), '\0');
  ASSERT_EQ(pread(fd.get(), image.data(), image.size(), 0), static_cast<ssize_t>(image.size()));
  const ImageReader reader(image);
  EXPECT_EQ(reader.inode(reader.lookup(reader.root(), "index")).data, "behind");
  root->children["index"]->data = "longer than before";
  EXPECT_EQ(writer.write(fd.get()).error().code, "erofs.size_changed");
}

TEST(Writer, SourcesStreamAndAreHeldToTheirSize) {
  const std::string bytes = noise(3u << 20);
  for (const int64_t difference : {0, -1, 1, -4096, 4096}) {
    const NodePtr root = directory();
    const NodePtr streamed = root->children["s"] = file("");
    streamed->size = static_cast<uint64_t>(static_cast<int64_t>(bytes.size()) + difference);
    streamed->source = [&bytes](const auto& sink) -> Result<void> {
      for (size_t at = 0; at < bytes.size(); at += 1000) TRY(sink(std::string_view(bytes).substr(at, 1000)));
      return {};
    };
    Writer writer(root);
    ASSERT_TRUE(writer.layout());
    const UniqueFd fd(memfd_create("image", MFD_CLOEXEC));
    const Result<void> wrote = writer.write(fd.get());
    if (difference != 0) {
      ASSERT_FALSE(wrote.has_value()) << difference;
      EXPECT_EQ(wrote.error().code, "erofs.size_changed");
      continue;
    }
    const ImageReader reader(image_of(root));
    EXPECT_TRUE(reader.inode(streamed->inode_number).data == bytes);
  }
}

TEST_F(FsckTest, ZerosStayHoles) {
  const NodePtr root = directory();
  root->children["hole"] = file(std::string(32u << 20, '\0') + "end");
  Writer writer(root);
  ASSERT_TRUE(writer.layout());
  const std::string path = directory_ + "/sparse";
  {
    const auto fd = open_file(path, O_RDWR | O_CREAT);
    ASSERT_TRUE(fd.has_value());
    ASSERT_TRUE(
        write_all(fd->get(), std::string(100000, 'x')));  // what was there before must not shine through
    ASSERT_TRUE(writer.write(fd->get()));
  }
  struct stat st = {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_GT(st.st_size, 32 << 20);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
  const auto image = read_file(path);
  ASSERT_TRUE(image.has_value());
  const ImageReader reader(*image);
  EXPECT_TRUE(reader.inode(root->children["hole"]->inode_number).data == root->children["hole"]->data);
  fsck(*image);
}

TEST(Writer, RefusesWhatNoImageCanHold) {
  const auto with = [](const std::string& name, NodePtr child) {
    const NodePtr root = directory();
    root->children[name] = std::move(child);
    return layout_error(root);
  };
  EXPECT_EQ(layout_error(file("x")), "erofs.bad_tree");
  EXPECT_EQ(with("", file("")), "erofs.bad_name");
  EXPECT_EQ(with(".", file("")), "erofs.bad_name");
  EXPECT_EQ(with("..", directory()), "erofs.bad_name");
  EXPECT_EQ(with("a/b", file("")), "erofs.bad_name");
  EXPECT_EQ(with(std::string("a\0b", 3), file("")), "erofs.bad_name");
  EXPECT_EQ(with(std::string(256, 'a'), file("")), "erofs.bad_name");
  EXPECT_EQ(with("l", make_symlink("", 0, 0, 0)), "erofs.bad_link");
  EXPECT_EQ(with("l", make_symlink(std::string(4096, 'a'), 0, 0, 0)), "erofs.bad_link");
  EXPECT_EQ(with("n", nullptr), "erofs.bad_tree");
  EXPECT_EQ(with("t", std::make_shared<Node>()), "erofs.bad_type");
  for (const uint64_t size : {uint64_t{1} << 44, uint64_t{1} << 63, ~uint64_t{0}}) {
    const NodePtr huge = file("");
    huge->size = size;
    huge->source = [](const auto&) -> Result<void> { return {}; };
    EXPECT_EQ(with("h", huge), "erofs.too_large") << size;
  }
  const NodePtr loop = directory();
  loop->children["again"] = loop;
  EXPECT_EQ(layout_error(loop), "erofs.bad_tree");
  loop->children.clear();
  const NodePtr twice = directory();
  loop->children["one"] = twice;
  loop->children["two"] = twice;
  EXPECT_EQ(layout_error(loop), "erofs.bad_tree");
}

TEST(Tree, DirectoryAtMakesWhatIsMissing) {
  const NodePtr root = make_directory(0711, 7, 8, 9);
  const auto made = directory_at(root, "a/b/c");
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(root->children["a"]->children["b"]->children["c"], *made);
  EXPECT_EQ((*made)->uid, 7u);
  EXPECT_EQ((*made)->mode, S_IFDIR | 0711);
  EXPECT_EQ(*directory_at(root, "a/b/c"), *made);
  EXPECT_EQ(*directory_at(root, ""), root);
  root->children["file"] = file("x");
  EXPECT_EQ(directory_at(root, "file/x").error().code, "erofs.not_a_directory");
  EXPECT_FALSE(directory_at(root, "a//b").has_value());
}

}  // namespace
}  // namespace firestop::erofs
