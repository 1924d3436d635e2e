#include "image/executables.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/file.h"
#include "erofs/writer.h"

namespace firestop::image {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ExecutablesTest : public ::testing::Test {
 protected:
  ExecutablesTest() {
    auto root = erofs::make_directory(0755, 0, 0, 0);
    auto bin = erofs::make_directory(0755, 0, 0, 0);
    bin->children["dash"] = erofs::make_file("a shell", 0755, 0, 0, 0);
    bin->children["sh"] = erofs::make_symlink("dash", 0, 0, 0);
    bin->children["perl"] = erofs::make_file(std::string(10000, 'p'), 0755, 0, 0, 0);
    bin->children["perl5.36"] = bin->children["perl"];
    bin->children["only group's"] = erofs::make_file("g", 0610, 0, 0, 0);
    bin->children["no program"] = erofs::make_file("text", 0644, 0, 0, 0);
    bin->children["two\nlines"] = erofs::make_file("odd", 0755, 0, 0, 0);
    root->children["bin"] = bin;
    erofs::Writer writer(root);
    EXPECT_TRUE(writer.layout());
    const auto fd = open_file(path_, O_RDWR | O_CREAT | O_EXCL);
    EXPECT_TRUE(writer.write(fd->get()));
  }
  ~ExecutablesTest() override { (void)remove_tree(path_); }

  std::string path_ = ::testing::TempDir() + "executables_test." + random_hex(8);
  std::string root_ = std::string(64, 'a');
};

TEST_F(ExecutablesTest, AreFoundByTheirPaths) {
  const std::string text = Executables::make(path_, root_).value();
  const auto known = Executables::parse(text, sha256_hex(text), root_).value();
  EXPECT_EQ(known.count(), 4u);
  ASSERT_NE(known.find("/bin/dash"), nullptr);
  EXPECT_EQ(known.find("/bin/dash")->digest, sha256_hex("a shell"));
  EXPECT_EQ(known.find("/bin/dash")->size, 7u);
  EXPECT_EQ(known.find("/bin/perl")->digest, sha256_hex(std::string(10000, 'p')));
  EXPECT_EQ(known.find("/bin/perl5.36")->digest, known.find("/bin/perl")->digest);
  EXPECT_EQ(known.find("/bin/only group's")->digest, sha256_hex("g"));
  for (const char* none : {"/bin/sh", "/bin/no program", "/bin/two", "bin/dash", "/bin", ""})
    EXPECT_EQ(known.find(none), nullptr) << none;
  EXPECT_EQ(text, Executables::make(path_, root_).value());
}

TEST_F(ExecutablesTest, inv11_WhatWasChangedOrExchangedIsRefused) {
  const std::string text = Executables::make(path_, root_).value();
  std::string changed = text;
  changed[changed.find(sha256_hex("a shell"))] ^= 1;
  EXPECT_THAT(Executables::parse(changed, sha256_hex(text), root_).error().message, HasSubstr("changed"));
  // Another image's, whole and with its own digest.
  EXPECT_THAT(Executables::parse(text, sha256_hex(text), std::string(64, 'b')).error().message,
              HasSubstr("another image"));
  for (const std::string& bad : {text.substr(0, text.size() - 1), text + "\n", text + "x y z\n",
                                 text + std::string(64, 'c') + " 1x /bin/x\n", std::string()})
    EXPECT_EQ(Executables::parse(bad, sha256_hex(bad), root_).error().code, "image.bad_index");
  ASSERT_TRUE(write_file_atomic(path_, "no image"));
  EXPECT_EQ(Executables::make(path_, root_).error().code, "erofs.bad_image");
}

}  // namespace
}  // namespace firestop::image
