#include "manifest/lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/file.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

const std::string kCommit(40, 'a'), kLong(64, 'c'), kDigest(64, 'b');

Lock some_lock() {
  Lock lock;
  lock.repositories["repo"] = {"main", kCommit, "sha1"};
  lock.repositories["lib/other"] = {"", kLong, "sha256"};
  lock.recipe = "agent-base";
  lock.image_digest = kDigest;
  return lock;
}

TEST(Lock, WhatIsWrittenReadsBack) {
  const auto lock = some_lock();
  const auto read = parse_lock(lock.to_text(), "firestop.lock");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, lock);
  EXPECT_EQ(parse_lock(Lock().to_text(), "firestop.lock").value(), Lock());
}

TEST(Lock, IsWrittenForPeopleAndDiffs) {
  EXPECT_EQ(some_lock().to_text(), R"({
  "firestop_lock": 1,
  "image": {
    "digest": "sha256:)" + kDigest + R"(",
    "recipe": "agent-base"
  },
  "repositories": {
    "lib/other": {
      "commit": ")" + kLong + R"(",
      "object_format": "sha256",
      "ref": ""
    },
    "repo": {
      "commit": ")" + kCommit + R"(",
      "object_format": "sha1",
      "ref": "main"
    }
  }
}
)");
}

std::string with_image(const std::string& image) {
  return R"({"firestop_lock":1,"repositories":{},"image":)" + image + "}";
}

std::string with_repository(const std::string& repository, const std::string& path = "repo") {
  return R"({"firestop_lock":1,"image":null,"repositories":{")" + path + "\":" + repository + "}}";
}

std::string repository(const std::string& ref, const std::string& commit, const std::string& format) {
  return R"({"ref":")" + ref + R"(","commit":")" + commit + R"(","object_format":")" + format + "\"}";
}

struct Hostile {
  std::string text, why, says;
};

TEST(Lock, HostileLocks) {
  const Hostile table[] = {
      {"", "nothing", "not strict JSON"},
      {"null", "no object", "is no object"},
      {"[]", "a list", "is no object"},
      {"{}", "another program's lock", "no lock of Firestop"},
      {R"({"firestop_lock":0,"image":null,"repositories":{}})", "version 0", "is no version"},
      {R"({"firestop_lock":"1","image":null,"repositories":{}})", "version as text", "is no version"},
      {R"({"firestop_lock":1.0,"image":null,"repositories":{}})", "version as a fraction", "is no version"},
      {R"({"firestop_lock":1,"repositories":{}})", "no image is not said to be none", "image is missing"},
      {R"({"firestop_lock":1,"image":null})", "repositories missing", "repositories is missing"},
      {R"({"firestop_lock":1,"image":null,"repositories":{},"x":1})", "unknown key", "x is an unknown key"},
      {R"({"firestop_lock":1,"image":null,"image":null,"repositories":{}})", "a key twice",
       "not strict JSON"},
      {R"({"firestop_lock":1,"image":null,"repositories":{}} {})", "two documents", "not strict JSON"},
      {"{\"firestop_lock\":1,\"image\":null,\"repositories\":{}}\n<<<<<<< HEAD\n", "a merge conflict",
       "not strict JSON"},
      {R"({"firestop_lock":1,"image":null,"repositories":[]})", "a list of repositories", "is no object"},
      {with_image("\"agent-base\""), "image as text", "neither an object nor null"},
      {with_image("{}"), "empty image", "image.recipe is missing"},
      {with_image(R"({"recipe":"","digest":"sha256:)" + kDigest + "\"}"), "no recipe", "is no name"},
      {with_image(R"({"recipe":"../x","digest":"sha256:)" + kDigest + "\"}"), "a path", "is no name"},
      {with_image(R"({"recipe":"oci:a@sha256:)" + kDigest + R"(","digest":"sha256:)" + kDigest + "\"}"),
       "an image of a registry, which the manifest pins", "is no name"},
      {with_image(R"({"recipe":"a","digest":")" + kDigest + "\"}"), "no algorithm", "image.digest"},
      {with_image(R"({"recipe":"a","digest":"sha512:)" + kDigest + "\"}"), "another one", "image.digest"},
      {with_image(R"({"recipe":"a","digest":"sha256:)" + std::string(64, 'B') + "\"}"), "capitals",
       "image.digest"},
      {with_image(R"({"recipe":"a","digest":"sha256:)" + std::string(63, 'b') + "\"}"), "too short",
       "image.digest"},
      {with_image(R"({"recipe":"a","digest":null})"), "null for a digest", "image.digest is no text"},
      {with_repository("null"), "null for a repository", "is no object"},
      {with_repository(R"({"commit":")" + kCommit + R"(","object_format":"sha1"})"), "HEAD is not said",
       "repositories.repo.ref is missing"},
      {with_repository(repository("main", kCommit, "sha1"), "../repo"), "a path that leads out",
       "repositories"},
      {with_repository(repository("main", kCommit, "sha1"), "/repo"), "an absolute path", "repositories"},
      {with_repository(repository("main", kCommit, "sha1"), ""), "no path", "repositories"},
      {with_repository(repository("--upload-pack=x", kCommit, "sha1")), "a ref that is an option", "ref"},
      {with_repository(repository("main~1", kCommit, "sha1")), "a ref that is an expression", "ref"},
      {with_repository(repository("main", "main", "sha1")), "a commit that is a branch", "commit"},
      {with_repository(repository("main", kCommit.substr(1), "sha1")), "an abbreviated commit", "commit"},
      {with_repository(repository("main", kLong, "sha1")), "a commit of another format", "commit"},
      {with_repository(repository("main", kCommit, "sha256")), "the same, turned round", "commit"},
      {with_repository(repository("main", kCommit, "md5")), "an unknown format", "object_format"},
      {std::string(2 << 20, ' '), "larger than any lock", "larger than 1 MiB"},
  };
  for (const auto& row : table) {
    const auto read = parse_lock(row.text, "firestop.lock");
    ASSERT_FALSE(read) << row.why;
    EXPECT_EQ(read.error().code, "lock.bad") << row.why;
    EXPECT_NE(read.error().message.find(row.says), std::string::npos)
        << row.why << ": " << read.error().message;
    EXPECT_TRUE(read.error().message.starts_with("firestop.lock: ")) << read.error().message;
    EXPECT_FALSE(read.error().hint.empty());
  }
}

TEST(Lock, ALaterVersionIsNamed) {
  const auto read = parse_lock(R"({"firestop_lock":2,"whatever":[]})", "firestop.lock");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, "lock.newer_version");
}

TEST(Lock, LiesBesideItsManifest) {
  EXPECT_EQ(lock_path("firestop.yaml"), "firestop.lock");
  EXPECT_EQ(lock_path("firestop.yml"), "firestop.lock");
  EXPECT_EQ(lock_path("a/firestop.json"), "a/firestop.lock");
  EXPECT_EQ(lock_path("a/agent.yaml"), "a/agent.yaml.lock");
  EXPECT_EQ(lock_path("package.yaml"), "package.yaml.lock");  // and not somebody's package.lock
}

class LockFile : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string folder_ = "/tmp/firestop-lock-XXXXXX";
};

TEST_F(LockFile, NoneIsNoError) {
  const auto lock = load_lock(folder_ + "/firestop.lock");
  ASSERT_TRUE(lock);
  EXPECT_FALSE(*lock);
}

TEST_F(LockFile, WhatCannotBeReadIsNotNone) {
  const std::string path = folder_ + "/firestop.lock";
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  EXPECT_EQ(load_lock(path).error().code, "lock.unreadable");
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // would make a reader wait
  EXPECT_EQ(load_lock(path).error().code, "lock.unreadable");
  ASSERT_TRUE(remove_tree(path));
  ASSERT_EQ(::symlink("firestop.lock", path.c_str()), 0);
  EXPECT_EQ(load_lock(path).error().code, "lock.unreadable");
}

Manifest manifest_of(const std::string& more) {
  auto loaded = load_text("/nonexistent/firestop.yaml", "firestop: 1\nname: x\n" + more);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}

TEST(Lock, HeldAgainstTheManifest) {
  const std::string entries =
      "workspace:\n  entries:\n    repo: {type: git_repo, repo: ., ref: main}\n"
      "    lib/other: {type: git_repo, repo: sub}\n    notes: {type: dir}\n";
  EXPECT_TRUE(check_lock(manifest_of(entries), some_lock()));
  const std::pair<std::string, std::string> table[] = {
      {"workspace:\n  entries:\n    repo: {type: git_repo, repo: ., ref: main}\n",
       "lib/other: is locked, and no"},
      {"workspace:\n  entries:\n    repo: {type: git_repo, repo: ., ref: v1}\n"
       "    lib/other: {type: git_repo, repo: sub}\n",
       "repo: the manifest says 'v1', the lock 'main'"},
      {"workspace:\n  entries:\n    repo: {type: git_repo, repo: .}\n"
       "    lib/other: {type: git_repo, repo: sub}\n",
       "repo: the manifest says HEAD, the lock 'main'"},
      {entries + "    more: {type: git_repo, repo: more}\n", "more: is not locked"},
      {"workspace:\n  entries:\n    repo: {type: dir}\n    lib/other: {type: git_repo, repo: sub}\n",
       "repo: is locked, and no git_repo"},
      {"image: other\n" + entries, "image: the manifest says 'other', the lock 'agent-base'"},
  };
  for (const auto& [text, says] : table) {
    const auto checked = check_lock(manifest_of(text), some_lock());
    ASSERT_FALSE(checked) << says;
    EXPECT_EQ(checked.error().code, "lock.stale");
    EXPECT_NE(checked.error().message.find(says), std::string::npos) << checked.error().message;
  }
}

}  // namespace
}  // namespace firestop::manifest
