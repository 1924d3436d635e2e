#include "erofs/reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/file.h"
#include "erofs/format.h"
#include "erofs/writer.h"

namespace firestop::erofs {
namespace {

std::string text(size_t size, char seed) {
  std::string out(size, seed);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(seed + static_cast<char>(i * 7 + i / 4096));
  return out;
}

// Files of all sizes about a block's, hard links, a directory of many blocks.
NodePtr tree() {
  auto root = make_directory(0755, 0, 0, 0);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4031}, size_t{4032}, size_t{4095}, size_t{4096},
                            size_t{4097}, size_t{70000}, size_t{2} << 20})
    root->children["f" + std::to_string(size)] = make_file(text(size, 'a'), 0755, 0, 0, 0);
  root->children["again"] = root->children["f4097"];
  root->children["link"] = make_symlink("f1", 0, 0, 0);
  auto many = make_directory(0755, 0, 0, 0);
  for (int i = 0; i < 1000; ++i)
    many->children["name-" + std::string(static_cast<size_t>(i % 200), 'x') + std::to_string(i)] =
        make_file(text(static_cast<size_t>(i), 'b'), 0644, 0, 0, 0);
  root->children["many"] = many;
  root->children["many"]->children["deeper"] = make_directory(0700, 0, 0, 0);
  root->children["many"]->children["deeper"]->children["\xff\n"] = make_file("odd", 0711, 0, 0, 0);
  return root;
}

UniqueFd image_of(const NodePtr& root) {
  Writer writer(root);
  EXPECT_TRUE(writer.layout());
  UniqueFd fd(::memfd_create("image", MFD_CLOEXEC));
  EXPECT_TRUE(writer.write(fd.get()));
  return fd;
}

UniqueFd file_with(const std::string& bytes) {
  UniqueFd fd(::memfd_create("image", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(fd.get(), bytes));
  return fd;
}

Result<std::map<std::string, std::string>> everything(const Reader& reader) {
  std::vector<Reader::File> files;
  TRY(reader.each_file([&files](const Reader::File& file) -> Result<void> {
    files.push_back(file);
    return {};
  }));
  std::map<std::string, std::string> out;
  for (const auto& file : files)
    TRY(reader.read(file, [&](std::string_view bytes) -> Result<void> {
      out[file.path] += bytes;
      return {};
    }));
  return out;
}

void collect(const NodePtr& node, const std::string& path, std::map<std::string, std::string>& out) {
  for (const auto& [name, child] : node->children) {
    if (S_ISDIR(child->mode)) collect(child, path + "/" + name, out);
    if (S_ISREG(child->mode) && !child->data.empty()) out[path + "/" + name] = child->data;
  }
}

TEST(Reader, GivesBackWhatWasWritten) {
  const auto root = tree();
  std::map<std::string, std::string> wanted;
  collect(root, "", wanted);
  const auto reader = Reader::open(image_of(root)).value();
  EXPECT_TRUE(everything(reader).value() == wanted);
  std::map<std::string, Reader::File> files;
  ASSERT_TRUE(reader.each_file([&files](const Reader::File& file) -> Result<void> {
    files[file.path] = file;
    return {};
  }));
  EXPECT_EQ(files["/again"].nid, files["/f4097"].nid);
  EXPECT_EQ(files["/many/deeper/\xff\n"].mode & 07777, 0711);
  EXPECT_EQ(files["/f0"].size, 0u);
  EXPECT_FALSE(files.contains("/link"));
  EXPECT_EQ(reader.each_file([](const auto&) -> Result<void> { return fail("stop", "here"); }).error().code,
            "stop");
}

// By erofs-utils 1.5: mkfs.erofs -Eforce-inode-extended -x-1.
TEST(Reader, ReadsWhatAnotherWriterMade) {
  auto image = open_file(FIRESTOP_SOURCE_DIR "/fuzz/corpus/erofs_read/mkfs.erofs", O_RDONLY);
  ASSERT_TRUE(image);
  const auto files = everything(Reader::open(std::move(*image)).value());
  ASSERT_TRUE(files) << files.error().to_string();
  const std::map<std::string, std::string> wanted = {{"/d/a", "hi\n"},
                                                     {"/d/b", std::string(5000, 'x')},
                                                     {"/d/e/c", std::string(4096, 'y')},
                                                     {"/d/link", "hi\n"}};
  EXPECT_EQ(*files, wanted);  // and a hundred empty ones
}

TEST(Reader, WhatIsNoImageIsSaid) {
  for (const std::string& bytes : {std::string(), std::string(1100, '\0'), std::string(100000, 'x')})
    EXPECT_EQ(Reader::open(file_with(bytes)).error().code, "erofs.bad_image");
}

// Bytes changed and images cut: an error or another answer, but an end, and nothing beyond the image is read.
TEST(Reader, DamageIsAnErrorAndNoCrash) {
  const UniqueFd good = image_of(tree());
  struct stat info{};
  ASSERT_EQ(::fstat(good.get(), &info), 0);
  std::string image(static_cast<size_t>(info.st_size), '\0');
  ASSERT_EQ(::pread(good.get(), image.data(), image.size(), 0), info.st_size);
  std::mt19937 random(20261129);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::string damaged = image;
    // Most of it is contents; what counts lies in the first part.
    std::uniform_int_distribution<size_t> place(kSuperOffset, 400000);
    for (int n = 0; n < 40; ++n) damaged[place(random)] = static_cast<char>(random());
    if (i % 3 == 0) damaged.resize(place(random));
    const auto reader = Reader::open(file_with(damaged));
    if (!reader || !everything(*reader)) ++refused;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace firestop::erofs
