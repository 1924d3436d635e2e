#include <sys/stat.h>

#include "base/path.h"
#include "erofs/image_reader.h"
#include "workspace/host_tree.h"
#include "workspace/testing.h"

namespace firestop::workspace {
namespace {

using erofs::testing::ImageReader;
using manifest::Entry;
using manifest::EntryType;
using testing::error_code;
using testing::is_ok;

class Entries : public testing::Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    manifest_.users = {{"agent", {}}, {"bob", {}}};
    manifest_.groups = {"staff", "readers"};
  }
  Entry& add(const std::string& name, EntryType type, const std::string& source = "") {
    Entry entry;
    entry.path = name;
    entry.type = type;
    entry.source.path = source;
    manifest_.entries.push_back(entry);
    return manifest_.entries.back();
  }
  Result<std::vector<PackedFile>> build(const std::map<std::string, std::string>& binds = {}) {
    return write_entries_image(manifest_, binds, path("entries.erofs"));
  }
  std::map<std::string, erofs::testing::ReadInode> image(const std::string& name = "entries.erofs") {
    return ImageReader(*read_file(path(name), 1u << 30)).everything();
  }
};

TEST_F(Entries, EveryTypeAtItsPlace) {
  shell(
      "mkdir -p template/sub; echo t > template/sub/x; chmod 640 template/sub/x; touch -d "
      "@1600000000.123456789 template/sub/x");
  shell("echo one > single; chmod 755 single");
  add("notes.md", EntryType::kFile).content = "Start here.";
  add("secret", EntryType::kFile).permissions = 0600;
  add("a/b/c", EntryType::kDir);
  add("report", EntryType::kDir).owner = "bob";
  add("tool", EntryType::kLocalFile, "single").group = "readers";
  add("template", EntryType::kLocalDir, "template");
  add("template/extra", EntryType::kFile).content = "beside";
  add("repo", EntryType::kGitRepo).repo = ".";
  add("data", EntryType::kMount).source.bind = "data";
  ASSERT_TRUE(is_ok(build()));
  const auto all = image();
  EXPECT_EQ(all.at("/notes.md").data, "Start here.");
  EXPECT_EQ(all.at("/notes.md").mode, S_IFREG | 0644);
  EXPECT_EQ(all.at("/secret").mode, S_IFREG | 0600);
  EXPECT_EQ(all.at("/a/b/c").mode, S_IFDIR | 0755);
  EXPECT_EQ(all.at("/a").uid, 1000u);
  EXPECT_EQ(all.at("/report").uid, 1001u);
  EXPECT_EQ(all.at("/tool").gid, 2001u);
  EXPECT_EQ(all.at("/tool").mode, S_IFREG | 0755);
  EXPECT_EQ(all.at("/template/sub/x").mode, S_IFREG | 0640);
  EXPECT_EQ(all.at("/template/sub/x").mtime, 1600000000);
  EXPECT_EQ(all.at("/template/sub/x").mtime_nsec, 123456789u);
  EXPECT_EQ(all.at("/template/extra").data, "beside");
  EXPECT_EQ(all.at("/repo").mode, S_IFDIR | 0755);
  EXPECT_EQ(all.at("/data").mode, S_IFDIR | 0755);
}

TEST_F(Entries, SizesLinksAndNames) {
  shell(R"x(mkdir -p in/d; cd in
for n in 0 1 4095 4096 65535 65536 110591 110592 110593 1048576; do head -c $n /dev/urandom > size-$n; done
ln size-1 d/again; ln -s d/again link; ln -s ../size-1 d/up; ln -s nowhere dangling; ln -s loop loop
printf a > "$(printf 'caf\351')"; printf b > "$(printf 'new\nline')"; chmod 2755 d; chmod 4755 size-1
truncate -s 100M hole; printf end >> hole; mkdir -m 700 private)x");
  ASSERT_TRUE(is_ok(write_mount_image(path("in"), Owner{7, 8}, path("mount.erofs"))));
  const auto all = image("mount.erofs");
  for (const char* size :
       {"0", "1", "4095", "4096", "65535", "65536", "110591", "110592", "110593", "1048576"}) {
    const std::string name = std::string("size-") + size;
    EXPECT_TRUE(all.at("/" + name).data == *read_file(path("in/" + name))) << name;
    EXPECT_EQ(all.at("/" + name).uid, 7u);
  }
  EXPECT_EQ(all.at("/d/again").nid, all.at("/size-1").nid);
  EXPECT_EQ(all.at("/link").data, "d/again");
  EXPECT_EQ(all.at("/d/up").data, "../size-1");
  EXPECT_EQ(all.at("/dangling").data, "nowhere");
  EXPECT_EQ(all.at("/loop").data, "loop");
  EXPECT_EQ(all.at("/caf\xe9").data, "a");
  EXPECT_EQ(all.at("/new\nline").data, "b");
  EXPECT_EQ(all.at("/d").mode, S_IFDIR | 0755) << "setgid came along";
  EXPECT_EQ(all.at("/size-1").mode, S_IFREG | 0755) << "setuid came along";
  EXPECT_EQ(all.at("/private").mode, S_IFDIR | 0700);
  struct stat status{};
  ASSERT_EQ(::stat(path("mount.erofs").c_str(), &status), 0);
  EXPECT_GT(status.st_size, 100 << 20);
  EXPECT_LT(status.st_blocks * 512, 8 << 20) << "a hole was written";
}

TEST_F(Entries, RefusedWithTheName) {
  struct Row {
    const char *script, *code, *named;
  };
  const Row rows[] = {
      {"ln -s /etc/passwd x", "entries.link_out", "in/x"},      // absolute
      {"ln -s ../outside x", "entries.link_out", "in/x"},       // one above
      {"ln -s a/../../outside x", "entries.link_out", "in/x"},  // above on the way
      {"mkdir d; ln -s ../../o d/x", "entries.link_out", "in/d/x"},
      {"mkfifo x", "entries.special", "in/x"},
      {"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'", "entries.special", "in/x"},
      {"truncate -s 2T x", "entries.too_large", "in/x"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    shell(std::string("rm -rf in; mkdir in; cd in; ") + row.script);
    manifest_.entries.clear();
    add("here", EntryType::kLocalDir, "in");
    const auto built = build();
    EXPECT_EQ(error_code(built), row.code);
    if (!built) {
      EXPECT_NE(built.error().message.find(row.named), std::string::npos) << built.error().message;
    }
    EXPECT_FALSE(exists(path("entries.erofs")));
  }
}

TEST_F(Entries, SourcesStayBelowTheManifest) {
  shell(
      "mkdir -p job; mkdir -p elsewhere; echo s > elsewhere/secret; ln -s ../elsewhere job/out; ln -s "
      "../elsewhere/secret job/file");
  shell("echo ok > job/real; ln -s real job/inner; mkfifo job/pipe");
  manifest_.folder = path("job");
  struct Row {
    EntryType type;
    const char *source, *code;
  };
  const Row rows[] = {
      {EntryType::kLocalDir, "out", "entries.unreadable"},    // a link out
      {EntryType::kLocalFile, "file", "entries.unreadable"},  // a link out
      {EntryType::kLocalFile, "../elsewhere/secret", "entries.unreadable"},
      {EntryType::kLocalFile, "missing", "entries.unreadable"},
      {EntryType::kLocalFile, ".", "entries.wrong_type"},
      {EntryType::kLocalFile, "pipe", "entries.wrong_type"},
      {EntryType::kLocalDir, "real", "entries.unreadable"},
      {EntryType::kLocalFile, "inner", "no error"},
  };
  for (const Row& row : rows) {
    manifest_.entries.clear();
    add("here", row.type, row.source);
    EXPECT_EQ(error_code(build()), row.code) << row.source;
  }
}

TEST_F(Entries, BindsAndConflicts) {
  shell("mkdir -p folder; echo x > folder/x");
  add("here", EntryType::kLocalDir).source.bind = "name";
  EXPECT_EQ(error_code(build()), "entries.no_bind");
  ASSERT_TRUE(is_ok(build({{"name", path("folder")}})));
  EXPECT_EQ(image().at("/here/x").data, "x\n");
  add("here/x", EntryType::kFile).content = "mine";
  EXPECT_EQ(error_code(build({{"name", path("folder")}})), "entries.conflict");
}

TEST(LinkStaysInside, AsTheTextGoes) {
  EXPECT_TRUE(link_stays_inside("a", "b"));
  EXPECT_TRUE(link_stays_inside("a/b", "../c"));
  EXPECT_TRUE(link_stays_inside("a/b", "./..//c/./d"));
  EXPECT_TRUE(link_stays_inside("a/b", ".."));
  EXPECT_FALSE(link_stays_inside("a", ".."));
  EXPECT_FALSE(link_stays_inside("a/b", "../../c"));
  EXPECT_FALSE(link_stays_inside("a/b", "../../a/b"));
  EXPECT_FALSE(link_stays_inside("a", "/b"));
  EXPECT_FALSE(link_stays_inside("a", ""));
}

class Disk : public testing::Sandbox {};

TEST_F(Disk, IsAFreshFileSystemOfItsSize) {
  for (const uint64_t size : {64ull << 20, 4ull << 30, 1ull << 40}) {
    const std::string file = path("disk-" + std::to_string(size));
    ASSERT_TRUE(is_ok(make_scratch_disk(file, size)));
    struct stat status{};
    ASSERT_EQ(::stat(file.c_str(), &status), 0);
    EXPECT_EQ(static_cast<uint64_t>(status.st_size), size);
    EXPECT_LT(status.st_blocks * 512, 2 << 20) << "not sparse";
    shell("e2fsck -fn " + file);
  }
  EXPECT_EQ(error_code(make_scratch_disk(path("small"), 1 << 20)), "disk.size");
  EXPECT_EQ(error_code(make_scratch_disk(path("large"), 2ull << 40)), "disk.size");
}

}  // namespace
}  // namespace firestop::workspace
