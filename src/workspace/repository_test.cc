#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "erofs/image_reader.h"
#include "workspace/testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::is_ok;

class Repository : public testing::Sandbox {
 protected:
  std::string image(const RepoSource& source) {
    auto made = repository_image(source, Owner{1000, 1000});
    EXPECT_TRUE(is_ok(made));
    return made ? *made : "";
  }
  // Unpacks the image into a folder of its own, with times and modes.
  std::string unpack(const std::string& file) {
    const std::string folder = "out" + std::to_string(++unpacked_);
    shell("fsck.erofs --extract=" + path(folder) + " " + file + " >/dev/null");
    return folder;
  }
  int unpacked_ = 0;
};

TEST_F(Repository, ArrivesAsAnOrdinaryCheckout) {
  make_repository("src");
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  EXPECT_EQ(source->branch, "main");
  EXPECT_EQ(source->commit, shell("git rev-parse HEAD", "src"));
  const std::string out = unpack(image(*source));
  shell("git fsck --strict --no-dangling", out);
  EXPECT_EQ(shell("git status --porcelain=v2 --branch", out),
            "# branch.oid " + source->commit +
                "\n# branch.head main\n# branch.upstream origin/main\n# branch.ab +0 -0");
  EXPECT_EQ(shell("git log --format=%s", out), "third\nsecond\nfirst");
  EXPECT_EQ(shell("git tag -l --format='%(refname:short) %(objecttype)'", out), "light commit\nv1 tag");
  EXPECT_EQ(shell("git remote get-url origin", out), "firestop:src");
  EXPECT_EQ(shell("readlink link; cat dir/sub/deep; test -x run.sh && echo x; wc -c < empty", out),
            "dir/sub/deep\ntwo\nx\n0");
  EXPECT_EQ(shell("grep -r '" + root_ + "' . || echo clean", out), "clean") << "a path of the host is inside";
}

TEST_F(Repository, IndexHoldsWhatTheGuestSees) {
  make_repository("src");
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  const std::string file = image(*source);
  auto bytes = read_file(file);
  ASSERT_TRUE(is_ok(bytes));
  const erofs::testing::ImageReader reader(*bytes);
  const auto all = reader.everything();
  const auto& index = all.at("/.git/index");
  EXPECT_GT(index.mtime, all.at("/file").mtime) << "git would take every file for racily clean";
  EXPECT_EQ(all.at("").uid, 1000u);
  write("index", index.data);
  const std::string debug = shell("GIT_INDEX_FILE=" + path("index") + " git ls-files --debug", "src");
  for (const char* name : {"file", "dir/sub/deep", "run.sh", "link", "empty"}) {
    const auto& inode = all.at(std::string("/") + name);
    const std::string expected =
        std::string(name) + "\n  ctime: 1700000000:0\n  mtime: 1700000000:0\n  dev: 0\tino: " +
        std::to_string(static_cast<uint32_t>(inode.nid)) +
        "\n  uid: 1000\tgid: 1000\n  size: " + std::to_string(inode.data.size()) + "\tflags: 0";
    EXPECT_NE(debug.find(expected), std::string::npos) << expected << "\nin\n" << debug;
    EXPECT_EQ(inode.mtime, 1700000000);
    EXPECT_EQ(inode.mtime_nsec, 0u);
  }
}

// As the guest mounts it: EROFS below an overlay. Needs a kernel and rights that not every machine has.
TEST_F(Repository, TheFirstStatusReadsNoFile) {
  make_repository("src");
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  auto file = repository_image(*source, Owner{::geteuid(), ::getegid()});
  ASSERT_TRUE(is_ok(file));
  shell("mkdir lower over upper work");
  if (!shell_ok("mount -t erofs -o loop,ro " + *file + " lower")) GTEST_SKIP() << "cannot mount EROFS here";
  const bool overlaid =
      shell_ok("mount -t overlay -o lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work o over");
  const std::string folder = overlaid ? "over" : "lower";
  // diff-files looks at nothing but lstat, and names what it would have to read.
  EXPECT_EQ(shell("git diff-files", folder), "");
  EXPECT_EQ(shell("git status --porcelain", folder), "");
  shell(std::string(overlaid ? "umount over; " : "") + "umount lower");
}

TEST_F(Repository, IsFoundAgainInTheCache) {
  make_repository("src");
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  const std::string first = image(*source);
  struct stat before{}, after{};
  ASSERT_EQ(::stat(first.c_str(), &before), 0);
  EXPECT_EQ(image(*source), first);
  ASSERT_EQ(::stat(first.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  shell("git tag another", "src");
  EXPECT_NE(image(*source), first) << "a tag is part of what the guest sees";
}

TEST_F(Repository, DepthCutsTheHistory) {
  make_repository("src");
  auto source = resolve("src", "", 2);
  ASSERT_TRUE(is_ok(source));
  const std::string out = unpack(image(*source));
  EXPECT_EQ(shell("git log --format=%s", out), "third\nsecond");
  EXPECT_EQ(shell("git rev-parse --is-shallow-repository", out), "true");
  EXPECT_EQ(shell("git tag", out), "") << "v1 is on a commit that is not here";
  shell("git fsck --strict --no-dangling", out);
  EXPECT_FALSE(shell_ok("git cat-file -e " + shell("git rev-parse HEAD~2", "src"), out))
      << "the object came along";
}

TEST_F(Repository, OddShapesOfRepositories) {
  make_repository("src");
  struct Row {
    const char *name, *script, *repo, *ref, *log;
  };
  const Row rows[] = {
      {"bare", "git clone -q --bare src bare", "bare", "", "third second first"},
      {"linked worktree", "git -C src worktree add -q ../tree -b other HEAD~1", "tree", "", "second first"},
      {"shallow", "git clone -q --depth 2 file://$PWD/src shallow", "shallow", "", "third second"},
      {"submodule", "git init -q super; cd super; git submodule --quiet add ../src mod; git commit -qm s",
       "super/mod", "", "third second first"},
      {"detached", "git clone -q src det; git -C det checkout -q HEAD~1", "det", "", "second first"},
      {"tag", "true", "src", "v1", "first"},
      {"branch named like a file", "git -C src branch file HEAD~1", "src", "file", "second first"},
      {"sparse", "git clone -q --sparse src sparse", "sparse", "", "third second first"},
      {"abbreviated id", "git -C src tag abbrev", "src", "abbrev", "third second first"},
      {"sha256",
       "git init -q --object-format=sha256 new; cd new; echo 1 > a; mkdir d; echo 2 > d/b; git add .; git "
       "commit -qm only",
       "new", "", "only"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    shell(row.script);
    auto source = resolve(row.repo, row.ref);
    ASSERT_TRUE(is_ok(source));
    const std::string out = unpack(image(*source));
    EXPECT_EQ(shell("git log --format=%s | tr '\\n' ' ' | sed 's/ $//'", out), row.log);
    EXPECT_EQ(shell("git status --porcelain", out), "");
    shell("git fsck --strict --no-dangling", out);
  }
}

TEST_F(Repository, SubmodulesAreEmptyFolders) {
  make_repository("src");
  shell("git init -q super; cd super; git submodule --quiet add ../src mod; git commit -qm s");
  auto source = resolve("super");
  ASSERT_TRUE(is_ok(source));
  const std::string out = unpack(image(*source));
  EXPECT_EQ(shell("ls mod | wc -l", out), "0");
  EXPECT_EQ(shell("git status --porcelain", out), "");
  EXPECT_EQ(shell("git ls-files -s mod | cut -c1-6", out), "160000");
}

TEST_F(Repository, NamesThatAreNotUtf8) {
  shell(R"x(git init -q odd; cd odd
printf x > "$(printf 'caf\351')"; printf y > "$(printf 'new\nline')"; printf z > 'a b"c'; git add -A; git commit -qm odd)x");
  auto source = resolve("odd");
  ASSERT_TRUE(is_ok(source));
  const std::string out = unpack(image(*source));
  EXPECT_EQ(shell("git status --porcelain", out), "");
  EXPECT_EQ(shell("git ls-files -z | od -An -c", out), shell("git ls-files -z | od -An -c", "odd"));
}

TEST_F(Repository, RefusedWithAReason) {
  make_repository("src");
  shell("mkdir plain inner; git init -q unborn; ln -s /tmp out; mkdir src/below");
  struct Row {
    const char *repo, *ref, *code;
  };
  const Row rows[] = {
      {"plain", "", "git.not_a_repository"},    // no .git anywhere
      {"missing", "", "git.not_a_repository"},  // no such folder
      {"src/below", "",
       "git.not_a_repository"},  // a folder inside a repository: the rest of it was not named
      {"src/.git/refs", "", "git.not_a_repository"},
      {"out", "", "git.not_a_repository"},  // a link out of the manifest's folder
      {"unborn", "", "git.no_commits"},
      {"src", "nope", "git.unknown_ref"},
      {"src", "--all", "git.unknown_ref"},         // an option
      {"src", "main~1", "git.unknown_ref"},        // an expression
      {"src", ":/first", "git.unknown_ref"},       // a search
      {"src", "HEAD:dir", "git.unknown_ref"},      // a tree
      {"src", "refs/heads/x", "git.unknown_ref"},  // full, and not there
  };
  for (const Row& row : rows)
    EXPECT_EQ(error_code(resolve(row.repo, row.ref)), row.code) << row.repo << " " << row.ref;
}

TEST_F(Repository, MissingObjectsAreAClearError) {
  make_repository("src");
  shell(
      "git -C src config uploadpack.allowFilter true; git clone -q --filter=blob:none --no-checkout "
      "file://$PWD/src part");
  auto source = resolve("part");
  ASSERT_TRUE(is_ok(source));
  EXPECT_EQ(error_code(repository_image(*source, Owner{})), "git.missing_objects");
  EXPECT_EQ(shell("find cache -name '*.erofs' -o -name '*.part*'"), "")
      << "something half-made stayed in the cache";
}

TEST_F(Repository, CommandsOfTheSourceDoNotRun) {
  make_repository("src");
  shell(R"(cd src; printf '#!/bin/sh\ntouch %s/ran\n' "$PWD/.." > ../evil; chmod +x ../evil
for h in post-checkout reference-transaction pre-auto-gc post-index-change; do cp ../evil .git/hooks/$h; done
git config core.fsmonitor "$PWD/../evil"; git config core.alternateRefsCommand "$PWD/../evil"
git config core.pager "$PWD/../evil"; git config core.sshCommand "$PWD/../evil"
git config filter.f.smudge "$PWD/../evil"; git config filter.f.clean "$PWD/../evil"; echo '* filter=f' > .git/info/attributes)");
  shell("rm -f ran");
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  image(*source);
  EXPECT_FALSE(exists(path("ran")));
}

TEST_F(Repository, ATreeWithDotGitIsRefused) {
  make_repository("src");
  shell(R"(cd src; blob=$(git rev-parse HEAD:file)
tree=$(printf '100644 blob %s\t.GIT\n' $blob | git mktree)
git branch bad $(git commit-tree -m bad $tree))");
  auto source = resolve("src", "bad");
  ASSERT_TRUE(is_ok(source));
  EXPECT_EQ(error_code(repository_image(*source, Owner{})), "git.bad_tree");
}

}  // namespace
}  // namespace firestop::workspace
