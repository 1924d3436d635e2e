#include "image/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "erofs/image_reader.h"
#include "image/cache.h"
#include "image/fake_debian.h"
#include "image/initramfs.h"

namespace firestop::image {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// The whole of ensure(), with made-up mmdebstrap and apt in PATH.
class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "imagesXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ASSERT_TRUE(make_directories(folder_ + "/tree/etc", 0755));
    ASSERT_TRUE(write_file_atomic(folder_ + "/tree/etc/os-release", "made up\n", 0644));
    ASSERT_TRUE(write_file_atomic(folder_ + "/tree/etc/resolv.conf", "nameserver of this machine\n", 0644));
    const auto tar = run_checked({.argv = {"tar", "-C", folder_ + "/tree", "-cf", "-", "."}});
    ASSERT_TRUE(tar.has_value());
    testing::fake_programs(folder_, *tar, testing::deb(folder_, testing::kernel_files()));
    write_recipe("suite bookworm\nkernel linux-image-cloud-amd64\npackages git\n");
    ASSERT_TRUE(write_file_atomic(folder_ + "/guest", "guest 1", 0755));
    path_ = getenv("PATH");
    setenv("PATH", (folder_ + "/bin:" + path_).c_str(), 1);
    setenv("FIRESTOP_IMAGES", (folder_ + "/images").c_str(), 1);
    setenv("FIRESTOP_GUEST", (folder_ + "/guest").c_str(), 1);
    setenv("XDG_CACHE_HOME", (folder_ + "/cache").c_str(), 1);
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    for (const char* name : {"FIRESTOP_IMAGES", "FIRESTOP_GUEST", "XDG_CACHE_HOME", "TMPDIR"}) unsetenv(name);
    ASSERT_TRUE(remove_tree(folder_));
  }

  void write_recipe(const std::string& text) {
    ASSERT_TRUE(make_directories(folder_ + "/images/demo"));
    ASSERT_TRUE(write_file_atomic(folder_ + "/images/demo/recipe", text));
  }
  void extra(const std::string& program, const std::string& shell) {
    ASSERT_TRUE(write_file_atomic(folder_ + "/" + program + "-extra", shell));
  }
  size_t calls(const std::string& start) {
    const std::string text = read_file(folder_ + "/calls").value_or("");
    size_t count = 0;
    for (size_t at = 0; (at = text.find(start, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  std::vector<std::string> cached() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/cache/firestop/images")) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".lock-")) names.push_back(name);
    }
    return names;
  }

  std::string folder_, path_;
};

TEST_F(Images, BuildsOnceAndFindsAgain) {
  EXPECT_EQ(find("demo").error().code, "image.not_built");
  std::vector<std::string> said;
  const auto built = ensure("demo", [&said](const std::string& line) { said.push_back(line); });
  ASSERT_TRUE(built.has_value()) << built.error().to_string();
  EXPECT_THAT(said, Contains("demo: 1/6 package lists"));
  EXPECT_THAT(said, Contains("demo: 6/6 packing the image"));
  EXPECT_EQ(built->kernel_release, "6.1.0-1-test");
  EXPECT_EQ(built->digest.size(), 64u);
  EXPECT_TRUE(*read_file(built->kernel) == testing::elf(5000));
  EXPECT_THAT(*read_file(built->initramfs), HasSubstr("guest 1"));

  auto all = erofs::testing::ImageReader(*read_file(built->root)).everything();
  EXPECT_EQ(all["/etc/os-release"].data, "made up\n");
  EXPECT_FALSE(all.contains("/etc/resolv.conf"));  // nothing of this machine
  EXPECT_THAT(all["/etc/hosts"].data, HasSubstr("127.0.0.1 localhost"));
  EXPECT_THAT(*read_file(folder_ + "/calls"),
              HasSubstr("--aptopt=Acquire::http::Proxy \"http://proxy.example:3128\";"));

  const auto again = ensure("demo", nullptr);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->digest, built->digest);
  EXPECT_EQ(find("demo")->digest, built->digest);
  EXPECT_EQ(calls("mmdebstrap "), 1u);
  EXPECT_EQ(calls("apt-get update"), 1u);
  EXPECT_EQ(cached().size(), 4u);
}

TEST_F(Images, KnowTheDigestsOfWhatTheyCanExecute) {
  ASSERT_TRUE(write_file_atomic(folder_ + "/tree/etc/tool", "a tool\n", 0755));
  const auto tar = run_checked({.argv = {"tar", "-C", folder_ + "/tree", "-cf", "-", "."}});
  testing::fake_programs(folder_, *tar, testing::deb(folder_, testing::kernel_files()));
  const auto built = ensure("demo", nullptr).value();
  EXPECT_EQ(built.root_digest, *sha256_file(built.root));
  const auto known = executables_of(built).value();
  EXPECT_EQ(known.count(), 1u);
  EXPECT_EQ(known.find("/etc/tool")->digest, sha256_hex("a tool\n"));
  // An older cache has none: it is still an image, and gets them without a download.
  ASSERT_TRUE(remove_tree(parent_path(built.executables)));
  EXPECT_EQ(find("demo")->executables, "");
  EXPECT_EQ(executables_of(*ensure("demo", nullptr))->count(), 1u);
  EXPECT_EQ(calls("mmdebstrap "), 1u);
  EXPECT_EQ(*prune(false), 0u);
  ASSERT_TRUE(write_file_atomic(built.executables, *read_file(built.executables) + "x"));
  EXPECT_EQ(executables_of(built).error().code, "image.bad_index");
}

TEST_F(Images, NewGuestProgramCostsNoDownload) {
  const auto first = ensure("demo", nullptr);
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(write_file_atomic(folder_ + "/guest", "guest 2", 0755));
  EXPECT_EQ(find("demo").error().code, "image.not_built");
  const auto second = ensure("demo", nullptr);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(first->root, second->root);
  EXPECT_EQ(first->kernel, second->kernel);
  EXPECT_NE(first->initramfs, second->initramfs);
  EXPECT_NE(first->digest, second->digest);
  EXPECT_EQ(calls("mmdebstrap "), 1u);
  EXPECT_EQ(calls("apt-get update"), 1u);
}

TEST_F(Images, ChangedRecipeBuildsTheRootOnly) {
  const auto first = ensure("demo", nullptr);
  ASSERT_TRUE(first.has_value());
  write_recipe("suite bookworm\nkernel linux-image-cloud-amd64\npackages git perl # more\n");
  const auto second = ensure("demo", nullptr);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(first->root, second->root);
  EXPECT_EQ(first->kernel, second->kernel);
  EXPECT_EQ(calls("mmdebstrap "), 2u);
  EXPECT_EQ(calls("apt-get update"), 1u);

  const auto listed = list();
  ASSERT_TRUE(listed.has_value());
  EXPECT_EQ(std::count_if(listed->begin(), listed->end(), [](const Listed& l) { return l.name == "demo"; }),
            2);
  EXPECT_EQ(std::count_if(listed->begin(), listed->end(), [](const Listed& l) { return !l.current; }), 1);
  EXPECT_TRUE(std::any_of(listed->begin(), listed->end(),
                          [&](const Listed& l) { return l.digest == second->digest; }));
  EXPECT_GT(*prune(false), 0u);
  EXPECT_FALSE(exists(first->root));
  EXPECT_TRUE(find("demo").has_value());
  EXPECT_EQ(*prune(false), 0u);
  EXPECT_GT(*prune(true), 0u);
  EXPECT_FALSE(find("demo").has_value());
  EXPECT_TRUE(list()->empty());
}

TEST_F(Images, TwoThatAskAtOnceBuildOnce) {
  extra("mmdebstrap", "sleep 0.3\n");
  std::string digests[4];
  {
    std::vector<std::jthread> threads;
    for (std::string& digest : digests) {
      threads.emplace_back([&digest] {
        const auto files = ensure("demo", nullptr);
        digest = files ? files->digest : files.error().message;
      });
    }
  }
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests[0]);
  EXPECT_EQ(digests[0].size(), 64u);
  EXPECT_EQ(calls("mmdebstrap "), 1u);
  EXPECT_EQ(calls("apt-get update"), 1u);
}

TEST_F(Images, FailuresSayWhatToDoAndLeaveNothing) {
  const struct {
    const char* output;
    const char* code;
    const char* hint;
  } rows[] = {
      {"E: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'",
       "image.network", "FIRESTOP_APT_SOURCES"},
      {"E: newuidmap 1 0 1000 1 failed", "image.namespaces", "/etc/subuid"},
      {"dpkg: error: No space left on device", "image.disk_full", "make room"},
      {"E: Unable to locate package nosuch", "image.build_failed", "does not exist"},
      {"E: something else", "image.build_failed", ""},
  };
  for (const auto& [output, code, hint] : rows) {
    extra("mmdebstrap", std::string("cat >&2 <<'END'\n") + output + "\nEND\nexit 25\n");
    const auto result = ensure("demo", nullptr);
    ASSERT_FALSE(result.has_value()) << output;
    EXPECT_EQ(result.error().code, code);
    EXPECT_THAT(result.error().hint, HasSubstr(hint));
    EXPECT_THAT(result.error().message, HasSubstr(output));
    EXPECT_THAT(result.error().message, HasSubstr("exit status 25"));
    EXPECT_EQ(cached().size(), 1u);  // the kernel
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("firestop-image-")));
  }
  extra("mmdebstrap", "exit 0\n");  // no archive at all, yet success
  EXPECT_EQ(ensure("demo", nullptr).error().code, "image.bad_archive");
  extra("mmdebstrap", "");
  EXPECT_TRUE(ensure("demo", nullptr).has_value());
}

TEST_F(Images, MirrorThatAptOnlyWarnsAbout) {
  extra("apt", "echo 'W: Failed to fetch http://deb.debian.org/debian/x' >&2\n");
  const auto result = ensure("demo", nullptr);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, "image.network");
}

TEST_F(Images, KilledBuildIsSweptByTheNext) {
  // A child of ours builds and dies by SIGKILL in the middle.
  extra("mmdebstrap", "touch \"$TMPDIR/half\"; touch " + folder_ + "/started; sleep 20\n");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)ensure("demo", nullptr);
    _exit(0);
  }
  while (!exists(folder_ + "/started")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(*prune(false), 0u);  // it lives, so it is left alone
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto half_done = cached();
  EXPECT_TRUE(std::any_of(half_done.begin(), half_done.end(),
                          [](const std::string& name) { return name.starts_with(".building-root"); }));
  extra("mmdebstrap", "");
  ASSERT_TRUE(ensure("demo", nullptr).has_value());
  EXPECT_EQ(cached().size(), 4u);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("firestop-image-")));
  }
}

TEST_F(Images, WhatIsMissingIsSaid) {
  unsetenv("FIRESTOP_GUEST");
  setenv("FIRESTOP_GUEST", "/no/such/guest", 1);
  EXPECT_EQ(ensure("demo", nullptr).error().code, "image.no_guest");
  setenv("FIRESTOP_GUEST", (folder_ + "/guest").c_str(), 1);
  EXPECT_EQ(ensure("nothing", nullptr).error().code, "image.unknown");
  setenv("PATH", "/nonexistent", 1);
  const auto result = ensure("demo", nullptr);
  EXPECT_EQ(result.error().code, "image.missing_tool");
  EXPECT_THAT(result.error().hint, HasSubstr("apt-get install"));
}

TEST(Initramfs, IsWhatTheKernelAndCpioRead) {
  const std::vector<Module> modules = {{"b.ko", "second letter first"}, {"a.ko", std::string(5, '\0')}};
  const std::string cpio = make_initramfs("init bytes", modules);
  EXPECT_EQ(cpio, make_initramfs("init bytes", modules));
  EXPECT_EQ(cpio.size() % 4, 0u);
  if (find_program("cpio").empty()) GTEST_SKIP() << "missing: cpio";
  std::string folder = ::testing::TempDir() + "cpioXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto result = run(
      {.argv = {"cpio", "-idm", "--no-absolute-filenames", "--quiet"}, .directory = folder}, {.input = cpio});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*read_file(folder + "/init"), "init bytes");
  EXPECT_EQ(*read_file(folder + "/modules.order"), "b.ko\na.ko\n");
  EXPECT_EQ(*read_file(folder + "/modules/b.ko"), "second letter first");
  EXPECT_EQ(*read_file(folder + "/modules/a.ko"), std::string(5, '\0'));
  struct stat info = {};
  ASSERT_EQ(stat((folder + "/init").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode, S_IFREG | 0755u);
  for (const char* name : {"dev", "proc", "sys", "run", "mnt"})
    EXPECT_TRUE(exists(folder + "/" + name)) << name;
  ASSERT_TRUE(remove_tree(folder));
}

}  // namespace
}  // namespace firestop::image
