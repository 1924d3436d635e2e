#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/digest.h"

namespace firestop {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/firestop-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }
  std::string dir_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  ASSERT_TRUE(write_file_atomic(dir_ + "/a", std::string("x\0y", 3)));
  EXPECT_EQ(*read_file(dir_ + "/a"), std::string("x\0y", 3));
}

TEST_F(FileTest, RefusesMoreThanTheLimit) {
  ASSERT_TRUE(write_file_atomic(dir_ + "/a", "12345"));
  EXPECT_TRUE(read_file(dir_ + "/a", 5));
  EXPECT_EQ(read_file(dir_ + "/a", 4).error().code, "file.too_large");
}

TEST_F(FileTest, RemoveTreeDoesNotFollowLinks) {
  ASSERT_TRUE(make_directories(dir_ + "/keep"));
  ASSERT_TRUE(write_file_atomic(dir_ + "/keep/file", "x"));
  ASSERT_TRUE(make_directories(dir_ + "/gone/sub"));
  ASSERT_EQ(::symlink((dir_ + "/keep").c_str(), (dir_ + "/gone/link").c_str()), 0);
  ASSERT_TRUE(remove_tree(dir_ + "/gone"));
  EXPECT_FALSE(exists(dir_ + "/gone"));
  EXPECT_TRUE(exists(dir_ + "/keep/file"));
}

TEST_F(FileTest, CopySparseKeepsBytesAndHoles) {
  {
    auto fd = open_file(dir_ + "/a", O_RDWR | O_CREAT);
    ASSERT_TRUE(fd);
    ASSERT_EQ(::ftruncate(fd->get(), 64 << 20), 0);
    ASSERT_EQ(::pwrite(fd->get(), "data", 4, 32 << 20), 4);
  }
  ASSERT_TRUE(copy_sparse(dir_ + "/a", dir_ + "/b"));
  struct stat st{};
  ASSERT_EQ(::stat((dir_ + "/b").c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 64 << 20);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
  EXPECT_EQ(*sha256_file(dir_ + "/a"), *sha256_file(dir_ + "/b"));
  EXPECT_FALSE(copy_sparse(dir_ + "/a", dir_ + "/b"));
}

}  // namespace
}  // namespace firestop
