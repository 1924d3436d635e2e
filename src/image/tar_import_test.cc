#include "image/tar_import.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "erofs/image_reader.h"

namespace firestop::image {
namespace {

using erofs::testing::ImageReader;
using erofs::testing::ReadInode;

// A tar archive by hand (POSIX pax, ustar headers), so that it may hold what no tool would write.
struct Tar {
  std::string bytes;

  Tar& entry(const std::string& name, char type, const std::string& data = "", const std::string& link = "",
             const std::string& mode = "0000644", const std::string& device = "0000001") {
    char head[512] = {};
    std::memcpy(head, name.data(), std::min<size_t>(name.size(), 100));
    const auto put = [&head](size_t at, const std::string& text) {
      std::memcpy(head + at, text.data(), text.size());
    };
    put(100, mode);
    put(108, "0001750");  // uid 1000
    put(116, "0001751");
    char size[12];
    std::snprintf(size, sizeof size, "%011o", static_cast<unsigned>(data.size()));
    put(124, std::string(size, 11));
    put(136, "00000001750");  // mtime 1000
    put(148, "        ");
    head[156] = type;
    std::memcpy(head + 157, link.data(), std::min<size_t>(link.size(), 100));
    put(257, std::string("ustar\0"
                         "00",
                         8));
    put(329, device);
    put(337, "0000003");
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    char check[8];
    std::snprintf(check, sizeof check, "%06o", sum);
    put(148, std::string(check, 7));
    bytes.append(head, sizeof head);
    bytes += data;
    bytes.append((512 - data.size() % 512) % 512, '\0');
    return *this;
  }

  // A pax record for the entry that follows.
  Tar& pax(const std::string& key, const std::string& value) {
    const std::string rest = " " + key + "=" + value + "\n";
    size_t length = rest.size() + 1;
    while (std::to_string(length).size() + rest.size() != length) ++length;
    return entry("pax", 'x', std::to_string(length) + rest);
  }

  std::string end() const { return bytes + std::string(1024, '\0'); }
};

class TarImport : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "tarXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(folder_)); }

  Result<uint64_t> import(const std::string& tar, const ImportRules& rules = {}) {
    const UniqueFd fd(memfd_create("tar", MFD_CLOEXEC));
    EXPECT_TRUE(write_all(fd.get(), tar));
    lseek(fd.get(), 0, SEEK_SET);
    (void)::unlink(image_path().c_str());
    return root_from_tar(fd.get(), image_path(), rules);
  }
  std::map<std::string, ReadInode> imported(const std::string& tar, const ImportRules& rules = {}) {
    const auto done = import(tar, rules);
    EXPECT_TRUE(done.has_value()) << done.error().message;
    if (!done) return {};
    return ImageReader(*read_file(image_path())).everything();
  }
  std::string image_path() const { return folder_ + "/root.erofs"; }

  std::string folder_;
};

TEST_F(TarImport, KeepsWhatATarHolds) {
  const std::string big(300000, 'b');
  auto all = imported(Tar()
                          .entry("./", '5', "", "", "0000711")
                          .entry("./bin/tool", '0', big, "", "0004755")  // its folder comes later
                          .entry("./bin/", '5', "", "", "0000700")
                          .entry("./bin/same", '1', "", "./bin/tool")
                          .entry("./lib", '2', "", "usr/lib")
                          .entry("./dev/null", '3')
                          .entry("./dev/disk", '4')
                          .entry("./run/pipe", '6')
                          .end());
  EXPECT_EQ(all[""].mode, S_IFDIR | 0711);
  EXPECT_EQ(all["/bin"].mode, S_IFDIR | 0700);
  EXPECT_EQ(all["/bin/tool"].mode, S_IFREG | 04755);
  EXPECT_EQ(all["/bin/tool"].uid, 1000u);
  EXPECT_EQ(all["/bin/tool"].gid, 1001u);
  EXPECT_EQ(all["/bin/tool"].mtime, 1000);
  EXPECT_TRUE(all["/bin/tool"].data == big);
  EXPECT_EQ(all["/bin/same"].nid, all["/bin/tool"].nid);
  EXPECT_EQ(all["/bin/same"].links, 2u);
  EXPECT_EQ(all["/lib"].data, "usr/lib");
  EXPECT_EQ(all["/dev/null"].rdev, makedev(1, 3));
  EXPECT_EQ(all["/dev/disk"].mode, S_IFBLK | 0644);
  EXPECT_EQ(all["/run/pipe"].mode, S_IFIFO | 0644);
}

TEST_F(TarImport, OddNamesSurvive) {
  const std::vector<std::string> names = {
      "\xff\xfe",              // not UTF-8
      "F\xc5\x91tan\xc3\xba",  // composed letters
      "e\xcc\x81",             // a decomposed letter stays decomposed
      "new\nline",
      std::string(255, 'n'),
  };
  Tar tar;
  for (const std::string& name : names) {
    if (name.size() > 100) tar.pax("path", name);
    tar.entry(name, '0', name);
  }
  for (const char* name : {"F\xc5\x91", "u\xcc\x88"})
    tar.pax("path", std::string("pax-") + name).entry("x", '0', "p");
  auto all = imported(tar.end());
  for (const std::string& name : names) EXPECT_EQ(all["/" + name].data, name) << name;
  EXPECT_EQ(all["/pax-F\xc5\x91"].data, "p");
  EXPECT_EQ(all["/pax-u\xcc\x88"].data, "p");
}

TEST_F(TarImport, SparseAndLaterEntries) {
  auto all = imported(Tar()
                          .entry("f", '0', "first")
                          .entry("f", '0', "second")  // as with tar, what comes later counts
                          .entry("l", '2', "", "nowhere")
                          .entry("l", '0', "no link any more")
                          .end());
  EXPECT_EQ(all["/f"].data, "second");
  EXPECT_EQ(all["/l"].data, "no link any more");
}

TEST_F(TarImport, RulesLeaveOutAndAdd) {
  const std::string tar = Tar()
                              .entry("usr/share/doc/git/README", '0', "r")
                              .entry("usr/share/doc/git/copyright", '0', "c")
                              .entry("usr/share/doc/git/again", '1', "", "usr/share/doc/git/README")
                              .entry("etc/hosts", '0', "of the build machine")
                              .end();
  auto all = imported(tar, {.remove = {"/usr/share/doc/*"},
                            .keep = {"/usr/share/doc/*/copyright", "/usr/share/doc/*/again"},
                            .add = {{"etc/hosts", "ours"}, {"new/file", "n"}}});
  EXPECT_FALSE(all.contains("/usr/share/doc/git/README"));
  EXPECT_FALSE(all.contains("/usr/share/doc/git/again"));
  EXPECT_EQ(all["/usr/share/doc/git/copyright"].data, "c");
  EXPECT_EQ(all["/etc/hosts"].data, "ours");
  EXPECT_EQ(all["/etc/hosts"].uid, 0u);
  EXPECT_EQ(all["/new/file"].mode, S_IFREG | 0644);
}

TEST_F(TarImport, RefusesHostileArchives) {
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "d/";
  const std::string damaged = Tar().entry("f", '0', std::string(5000, 'x')).bytes.substr(0, 3000);
  const struct {
    const char* reason;
    std::string tar;
  } rows[] = {
      {"an absolute name", Tar().entry("/etc/passwd", '0', "x").end()},
      {"climbs out", Tar().entry("../x", '0', "x").end()},
      {"climbs out in the middle", Tar().entry("a/../../x", '0', "x").end()},
      {"a dot inside", Tar().entry("a/./b", '0', "x").end()},
      {"two slashes", Tar().entry("a//b", '0', "x").end()},
      {"a name of 256 bytes", Tar().pax("path", std::string(256, 'n')).entry("x", '0').end()},
      {"deeper than any system", Tar().pax("path", deep + "x").entry("x", '0').end()},
      {"writes through a link", Tar().entry("l", '2', "", "/etc").entry("l/passwd", '0', "x").end()},
      {"a folder through a link", Tar().entry("l", '2', "", "/etc").entry("l/", '5').end()},
      {"below a file", Tar().entry("f", '0', "x").entry("f/g", '0', "x").end()},
      {"a file over a folder", Tar().entry("d/", '5').entry("d", '0', "x").end()},
      {"a link over a folder", Tar().entry("d/", '5').entry("d", '2', "", "x").end()},
      {"a hard link to nothing", Tar().entry("h", '1', "", "missing").end()},
      {"a hard link to itself", Tar().entry("h", '1', "", "h").end()},
      {"a hard link to a folder", Tar().entry("d/", '5').entry("h", '1', "", "d").end()},
      {"a hard link out", Tar().entry("h", '1', "", "/etc/passwd").end()},
      {"a link to nothing", Tar().entry("l", '2').end()},
      {"a link's target of 4096 bytes", Tar().pax("linkpath", std::string(4096, 't')).entry("l", '2').end()},
      {"an impossible device", Tar().entry("c", '3', "", "", "0000644", "0077777").end()},
      {"the root as a file", Tar().entry(".", '0', "x").end()},
      {"cut in the middle of a file", damaged},
      {"not an archive", std::string(2048, 'z')},
      {"nothing at all", ""},
  };
  for (const auto& [reason, tar] : rows) {
    const auto result = import(tar);
    ASSERT_FALSE(result.has_value()) << reason;
    EXPECT_TRUE(result.error().code == "image.bad_archive" || result.error().code == "erofs.bad_name")
        << reason << ": " << result.error().code;
  }
}

TEST_F(TarImport, HoldsItsLimits) {
  const std::string tar =
      Tar().entry("a", '0', std::string(600, 'x')).entry("b", '0', std::string(600, 'x')).end();
  EXPECT_TRUE(import(tar).has_value());
  EXPECT_FALSE(import(tar, {.max_entries = 1}).has_value());
  EXPECT_FALSE(import(tar, {.max_bytes = 1199}).has_value());
  EXPECT_TRUE(import(tar, {.max_bytes = 1200}).has_value());
  EXPECT_FALSE(import(Tar().entry("a/b/c", '0').end(), {.max_depth = 2}).has_value());
}

TEST_F(TarImport, NeverWritesOverAnImage) {
  const std::string tar = Tar().entry("a", '0', "x").end();
  ASSERT_TRUE(import(tar));
  const UniqueFd fd(memfd_create("tar", MFD_CLOEXEC));
  ASSERT_TRUE(write_all(fd.get(), tar));
  lseek(fd.get(), 0, SEEK_SET);
  EXPECT_FALSE(root_from_tar(fd.get(), image_path()).has_value());
}

// What GNU tar packs here comes back, and twice the same.
TEST_F(TarImport, AgreesWithTar) {
  const std::string source = folder_ + "/source";
  ASSERT_TRUE(make_directories(source + "/a/b", 0755));
  ASSERT_TRUE(write_file_atomic(source + "/a/b/" + std::string(200, 'l'), std::string(70000, 'q')));
  ASSERT_TRUE(write_file_atomic(source + "/a/\xfe odd \n", "odd"));
  ASSERT_EQ(symlink(std::string(150, 't').c_str(), (source + "/a/link").c_str()), 0);
  ASSERT_EQ(link((source + "/a/\xfe odd \n").c_str(), (source + "/hard").c_str()), 0);
  ASSERT_EQ(truncate((source + "/a/b/" + std::string(200, 'l')).c_str(), 10 << 20), 0);
  for (const char* format : {"--format=gnu", "--format=pax"}) {
    const auto tar = run_checked({.argv = {"tar", format, "--sparse", "-C", source, "-cf", "-", "."}});
    ASSERT_TRUE(tar.has_value());
    auto all = imported(*tar);
    std::string expected(70000, 'q');
    expected.resize(10 << 20);
    EXPECT_TRUE(all["/a/b/" + std::string(200, 'l')].data == expected) << format;
    EXPECT_EQ(all["/a/\xfe odd \n"].data, "odd") << format;
    EXPECT_EQ(all["/hard"].nid, all["/a/\xfe odd \n"].nid) << format;
    EXPECT_EQ(all["/a/link"].data, std::string(150, 't')) << format;
    const std::string first = *sha256_file(image_path());
    ASSERT_TRUE(import(*tar));
    EXPECT_EQ(*sha256_file(image_path()), first);
  }
}

}  // namespace
}  // namespace firestop::image
