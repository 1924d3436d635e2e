#include "sandbox/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "base/path.h"
#include "base/process.h"

namespace firestop::sandbox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRun = "20261129-100000-aaaaaa";
constexpr const char* kOther = "20261129-110000-bbbbbb";
constexpr workspace::MemoryCap kCap{1u << 20, 10};

class MemoryStoreTest : public ::testing::Test {
 protected:
  MemoryStoreTest() {
    char name[] = "/tmp/memory_store_test.XXXXXX";
    state_ = ::mkdtemp(name);
    work_ = state_ + "/runs/" + kRun;
    EXPECT_TRUE(make_directories(work_));
  }
  ~MemoryStoreTest() override { (void)remove_tree(state_); }

  MemoryStore store() const { return MemoryStore(state_); }
  std::string kept(const std::string& name, const std::string& file) const {
    return read_file(state_ + "/memory/" + name + "/kept/content/" + file).value_or("(none)");
  }
  // The archive that a python script with `add(name, ...)` makes.
  std::string archive(const std::string& script) {
    const std::string path = state_ + "/a.tar";
    const std::string program = R"py(
import io, sys, tarfile
t = tarfile.open(sys.argv[1], 'w', format=tarfile.PAX_FORMAT)
def add(name, type=b'0', data=b'', link='', mode=0o644, size=None):
    i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.mode = mode
    i.size = len(data) if size is None else size
    t.addfile(i, io.BytesIO(data) if type == b'0' and size is None else None)
)py" + script + "\nt.close()\n";
    const auto done = run_checked({.argv = {"python3", "-c", program, path}});
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return path;
  }
  Result<MemoryRecord> keep(OwnedMemory& memory, const std::string& script) {
    return memory.keep(archive(script), work_, kCap, {kRun, "/m/firestop.yaml", 5, 0, 0});
  }

  std::string state_, work_;
};

TEST_F(MemoryStoreTest, NothingIsKeptAtFirst) {
  EXPECT_THAT(*store().list(), IsEmpty());
  EXPECT_EQ(store().forget("x").error().code, "memory.not_found");
  EXPECT_EQ(store().forget("../runs").error().code, "memory.not_found");
  EXPECT_EQ(store().take("../runs", kRun).error().code, "memory.bad_name");
  EXPECT_EQ(store().take(".lock", kRun).error().code, "memory.bad_name");
  auto memory = store().take("notes", kRun);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->content(), "");
}

TEST_F(MemoryStoreTest, WhatIsKeptIsThereAgainAndIsReplacedWhole) {
  {
    auto memory = store().take("notes", kRun);
    const auto record = keep(*memory,
                             "add('.memory', b'5'); add('.memory/a', data=b'one'); "
                             "add('.memory/d/l', b'2', link='../a')");
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(record->files, 2u);
    EXPECT_EQ(record->bytes, 3u);
  }
  EXPECT_EQ(kept("notes", "d/l"), "one");
  {
    auto memory = store().take("notes", kOther);
    EXPECT_EQ(memory->content(), state_ + "/memory/notes/kept/content");
    EXPECT_EQ(memory->record().run, kRun);
    EXPECT_EQ(memory->record().manifest_file, "/m/firestop.yaml");
    ASSERT_TRUE(keep(*memory, "add('.memory', b'5'); add('.memory/b', data=b'two')"));
  }
  EXPECT_EQ(kept("notes", "a"), "(none)");
  EXPECT_EQ(kept("notes", "b"), "two");
  EXPECT_FALSE(exists(work_ + "/memory-next")) << "the old one stayed";
  EXPECT_EQ(kept("other", "b"), "(none)");
  const auto all = store().list();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].name, "notes");
  EXPECT_EQ((*all)[0].record.files, 1u);
  EXPECT_EQ((*all)[0].user, "");
  ASSERT_TRUE(store().forget("notes"));
  EXPECT_THAT(*store().list(), IsEmpty());
  EXPECT_EQ(kept("notes", "b"), "(none)");
}

TEST_F(MemoryStoreTest, AnEmptyFolderForgetsWhatWasThere) {
  auto memory = store().take("notes", kRun);
  ASSERT_TRUE(keep(*memory, "add('.memory', b'5'); add('.memory/a', data=b'one')"));
  const auto record = keep(*memory, "add('.memory', b'5')");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->files, 0u);
  EXPECT_EQ(kept("notes", "a"), "(none)");
}

TEST_F(MemoryStoreTest, TheSecondIsToldWhoHasIt) {
  auto memory = store().take("notes", kRun);
  ASSERT_TRUE(memory);
  const auto second = store().take("notes", kOther);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "memory.busy");
  EXPECT_THAT(second.error().message, HasSubstr(kRun));
  EXPECT_EQ(store().forget("notes").error().code, "memory.busy");
  EXPECT_EQ((*store().list())[0].user, kRun);
  EXPECT_TRUE(store().take("others", kOther)) << "another name is another memory";
  {
    const OwnedMemory gone = std::move(*memory);
  }
  EXPECT_TRUE(store().take("notes", kOther));
}

// Files that nobody could read or remove, and folders that nobody could enter, would be the end of a memory.
TEST_F(MemoryStoreTest, inv05_ModesCannotLockUsOut) {
  auto memory = store().take("notes", kRun);
  ASSERT_TRUE(keep(*memory,
                   "add('.memory', b'5', mode=0); add('.memory/d', b'5', mode=0); "
                   "add('.memory/d/f', data=b'x', mode=0)"));
  struct stat status{};
  const std::string content = memory->content();
  ASSERT_EQ(::lstat((content + "/d/f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(::lstat((content + "/d").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  const auto image = workspace::write_memory_image(content, {1000, 1000}, kCap, state_ + "/image");
  EXPECT_TRUE(image) << image.error().message;
}

TEST_F(MemoryStoreTest, inv03_WhatCannotBeKeptLeavesWhatWasKept) {
  auto memory = store().take("notes", kRun);
  ASSERT_TRUE(keep(*memory, "add('.memory', b'5'); add('.memory/a', data=b'one')"));
  const std::string start = "add('.memory', b'5'); ";
  struct Row {
    std::string script;
    const char *code, *said;
  };
  const Row rows[] = {
      {start + "add('.memory/l', b'2', link='/etc/passwd')", "import.bad_member", "leaves its folder"},
      {start + "add('.memory/l', b'2', link='../../../../runs')", "import.bad_member", "leaves its folder"},
      {start + "add('.memory/../../other/kept/content/x', data=b'x')", "import.bad_member", "'..'"},
      {start + "add('/tmp/x', data=b'x')", "import.bad_member", "absolute"},
      {start + "add('.memory/l', b'2', link='.'); add('.memory/l/x', data=b'x')", "import.bad_member", "l/x"},
      {start + "add('.memory/h', b'1', link='/etc/passwd')", "import.bad_member", "hard link"},
      {start + "add('.memory/c', b'3')", "import.bad_member", "neither"},
      {start + "add('.memory/f', b'6')", "import.bad_member", "neither"},
      {start + "add('.memory/s', data=b'x', mode=0o4755)", "import.bad_member", "setuid"},
      {start + "add('.memory/big', data=b'x' * ((1 << 20) + 1))", "import.too_large", "1MiB"},
      {start + "[add('.memory/%d' % i, data=b'x' * 200000) for i in range(6)]", "import.too_large", "1MiB"},
      {start + "add('.memory/sparse', size=1 << 41)", "import.too_large", "1MiB"},
      {start + "[add('.memory/%d' % i) for i in range(11)]", "import.too_large", "members"},
      {start + "[add('.memory/%d' % i, b'2', link='x') for i in range(11)]", "import.too_large", "members"},
      {start + "add('other', b'5')", "memory.bad_archive", "something else"},
      {start + "add('content', b'5')", "memory.bad_archive", "something else"},
      {"add('memory.json', data=b'{}')", "memory.bad_archive", "something else"},
      {"add('.memory', data=b'x')", "memory.bad_archive", "something else"},
      {"", "memory.bad_archive", "gone"},
      {start + "t.fileobj.write(b'A' * 4096)", "import.bad_archive", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    const auto got = keep(*memory, row.script);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, row.code) << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr(row.said));
    EXPECT_EQ(kept("notes", "a"), "one");
    EXPECT_EQ(memory->record().files, 1u);
    ASSERT_TRUE(remove_tree(work_));  // as the run's end does
    ASSERT_TRUE(make_directories(work_));
  }
  EXPECT_FALSE(exists(state_ + "/memory/other"));
  // As much as there may be.
  EXPECT_TRUE(keep(*memory, start + "[add('.memory/%d' % i, data=b'x' * 104857) for i in range(10)]"));
}

// Killed at any moment: what is there is one of the two, whole, and the next run can have it.
TEST_F(MemoryStoreTest, inv04_KilledWhileKeepingLeavesOneOfBoth) {
  const std::string old_one =
      "add('.memory', b'5'); add('.memory/n', data=b'old'); add('.memory/m', data=b'old')";
  const std::string new_one =
      "add('.memory', b'5'); add('.memory/n', data=b'new'); add('.memory/m', data=b'new')";
  int replaced = 0;
  for (int round = 0; round < 40; ++round) {
    {
      auto memory = store().take("notes", kRun);
      ASSERT_TRUE(memory) << memory.error().message;
      ASSERT_TRUE(keep(*memory, old_one));
    }
    const std::string tar = archive(new_one);
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto memory = store().take("notes", kOther);
      if (memory) (void)memory->keep(tar, work_, kCap, {kOther, "", 6, 0, 0});
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(round * 400));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    // The process that unpacked for it may be a moment behind.
    auto memory = store().take("notes", kRun);
    for (int tries = 0; !memory && tries < 500; ++tries) {
      ::usleep(10'000);
      memory = store().take("notes", kRun);
    }
    ASSERT_TRUE(memory) << memory.error().message;
    const std::string n = kept("notes", "n");
    EXPECT_TRUE(n == "old" || n == "new") << n;
    EXPECT_EQ(kept("notes", "m"), n);
    EXPECT_EQ(memory->record().run, n == "old" ? kRun : kOther);
    replaced += n == "new";
    ASSERT_TRUE(remove_tree(work_));  // as a sweep of the run does
    ASSERT_TRUE(make_directories(work_));
  }
  EXPECT_LT(replaced, 40);
}

}  // namespace
}  // namespace firestop::sandbox
