// Locks against real repositories, and what a run is refused for.
#include "sandbox/seal.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "manifest/canonical.h"
#include "manifest/load.h"
#include "sandbox/locking.h"

namespace firestop::sandbox {
namespace {

const std::string kDigest(64, 'd');

class SealTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
    ::setenv("XDG_CONFIG_HOME", (root_ + "/config").c_str(), 1);
    ASSERT_TRUE(make_directories(root_ + "/config/firestop"));
    ASSERT_TRUE(make_directories(root_ + "/work"));
    shell("git init -q -b main . && git commit -q --allow-empty -m one");
    shell("ssh-keygen -q -t ed25519 -N '' -C '' -f ../key; (printf 'me '; cat ../key.pub) > ../signers");
    shell("ssh-keygen -q -t ed25519 -N '' -C '' -f ../other; (printf 'you '; cat ../other.pub) > ../others");
    write("work/firestop.yaml",
          "firestop: 1\nname: x\ncommand: [make]\n"
          "workspace:\n  entries:\n    repo: {type: git_repo, repo: ., ref: main}\n");
    load();
  }
  void TearDown() override {
    ::unsetenv("XDG_CONFIG_HOME");
    (void)remove_tree(root_);
  }

  void load() {
    auto loaded = manifest::load_file(root_ + "/work/firestop.yaml");
    ASSERT_TRUE(loaded && loaded->faults.empty());
    manifest_ = std::move(loaded->manifest);
  }
  std::string shell(const std::string& script) {
    Command command;
    command.argv = {"sh", "-ec", script};
    command.directory = root_ + "/work";
    command.env = std::vector<std::string>{"PATH=/usr/bin:/bin",          "GIT_CONFIG_GLOBAL=/dev/null",
                                           "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a",
                                           "GIT_AUTHOR_EMAIL=a@b",        "GIT_COMMITTER_NAME=a",
                                           "GIT_COMMITTER_EMAIL=a@b"};
    auto out = run_checked(std::move(command));
    EXPECT_TRUE(out) << out.error().message;
    std::string text = out.value_or("");
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomic(root_ + "/" + name, text));
  }
  // As `firestop lock` makes it, but with an image that need not be there.
  manifest::Lock lock() {
    auto without_image = manifest_;
    without_image.image = {};
    auto made = make_lock(without_image, {});
    EXPECT_TRUE(made) << made.error().message;
    made->recipe = "agent-base";
    made->image_digest = kDigest;
    write("work/firestop.lock", made->to_text());
    return *made;
  }
  void sign() {
    auto seal = check_seal(manifest_, "");
    ASSERT_TRUE(seal) << seal.error().message;
    auto signature = manifest::sign(seal->canonical, root_ + "/key");
    ASSERT_TRUE(signature) << signature.error().message;
    write("work/firestop.yaml.sig", *signature);
  }
  std::string signers() const { return root_ + "/signers"; }
  std::string code_of(const std::string& allowed_signers) {
    const auto seal = check_seal(manifest_, allowed_signers);
    return seal ? "sealed" : seal.error().code;
  }

  std::string root_ = "/tmp/firestop-seal-XXXXXX";
  manifest::Manifest manifest_;
};

TEST_F(SealTest, WithoutALockTheRefCounts) {
  const auto seal = check_seal(manifest_, "");
  ASSERT_TRUE(seal);
  EXPECT_FALSE(seal->lock);
  EXPECT_FALSE(seal->signer);
  EXPECT_EQ(seal->digest.size(), 64u);
  shell("git commit -q --allow-empty -m two");
  EXPECT_EQ(seal->resolve(manifest_, manifest_.entries[0])->commit, shell("git rev-parse main"));
  EXPECT_TRUE(seal->check_image("anything"));
}

TEST_F(SealTest, ALockedCommitStaysWhenTheRefMoves) {
  lock();
  const std::string locked = shell("git rev-parse main");
  shell("git commit -q --allow-empty -m two");
  const auto seal = check_seal(manifest_, "");
  ASSERT_TRUE(seal);
  auto source = seal->resolve(manifest_, manifest_.entries[0]);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->commit, locked);
  EXPECT_EQ(source->branch, "main");
  EXPECT_EQ(source->ref, "main");
  shell("git checkout -q -b next && git branch -D main");
  source = seal->resolve(manifest_, manifest_.entries[0]);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->commit, locked);
  EXPECT_EQ(source->branch, "");
}

TEST_F(SealTest, ABranchNamedLikeTheLockedCommitIsNotIt) {
  const auto made = lock();
  shell("git commit -q --allow-empty -m two && git update-ref refs/heads/" +
        made.repositories.at("repo").commit + " HEAD");
  EXPECT_EQ(check_seal(manifest_, "")->resolve(manifest_, manifest_.entries[0]).error().code,
            "lock.commit_missing");
}

TEST_F(SealTest, ACommitThatIsGoneIsNotReplaced) {
  auto made = lock();
  made.repositories["repo"].commit = std::string(40, 'e');
  write("work/firestop.lock", made.to_text());
  EXPECT_EQ(check_seal(manifest_, "")->resolve(manifest_, manifest_.entries[0]).error().code,
            "lock.commit_missing");
  sign();
  EXPECT_EQ(check_seal(manifest_, signers())->resolve(manifest_, manifest_.entries[0]).error().code,
            "signature.lock");
}

TEST_F(SealTest, TheImageIsTheLockedOne) {
  lock();
  EXPECT_TRUE(check_seal(manifest_, "")->check_image(kDigest));
  EXPECT_EQ(check_seal(manifest_, "")->check_image(std::string(64, 'e')).error().code, "lock.image_changed");
  sign();
  EXPECT_TRUE(check_seal(manifest_, signers())->check_image(kDigest));
  EXPECT_EQ(check_seal(manifest_, signers())->check_image(std::string(64, 'e')).error().code,
            "signature.lock");
}

TEST_F(SealTest, inv10_NothingUnsignedChangedOrStaleIsSealed) {
  EXPECT_EQ(code_of(signers()), "signature.missing");
  sign();
  EXPECT_EQ(code_of(signers()), "sealed");
  EXPECT_EQ(check_seal(manifest_, signers())->signer->principal, "me");
  EXPECT_EQ(code_of(root_ + "/others"), "signature.unknown_signer");
  EXPECT_EQ(code_of(root_ + "/nobody"), "signature.allowed_signers");
  lock();  // after the signature: the refs are no longer free
  EXPECT_EQ(code_of(signers()), "signature.changed");
  sign();
  EXPECT_EQ(code_of(signers()), "sealed");
  write("work/firestop.lock", "{}");
  EXPECT_EQ(code_of(signers()), "signature.lock");
  EXPECT_EQ(code_of(""), "lock.bad");
  ASSERT_TRUE(remove_tree(root_ + "/work/firestop.lock"));
  EXPECT_EQ(code_of(signers()), "signature.changed");
}

TEST_F(SealTest, inv10_ALockOfAnotherManifestIsRefusedAlsoWhenSigned) {
  const auto made = lock();
  manifest_.entries[0].ref = "other";
  EXPECT_EQ(code_of(""), "lock.stale");
  const auto canonical = manifest::canonical_json(manifest_, &made);
  write("work/firestop.yaml.sig", manifest::sign(*canonical, root_ + "/key").value());
  EXPECT_EQ(code_of(signers()), "signature.lock");
}

TEST_F(SealTest, inv10_TheHostMayRequireSignatures) {
  sign();
  write("config/firestop/config.yaml", "require_signature: true\n");
  EXPECT_EQ(code_of(""), "signature.allowed_signers");
  EXPECT_EQ(code_of(signers()), "sealed");
  write("config/firestop/config.yaml", "require_signature: true\nallowed_signers: ../../signers\n");
  EXPECT_EQ(code_of(""), "sealed");
  // The command line adds to what the host requires, and does not replace it.
  write("config/firestop/config.yaml", "require_signature: true\nallowed_signers: ../../others\n");
  EXPECT_EQ(code_of(""), "signature.unknown_signer");
  EXPECT_EQ(code_of(signers()), "signature.unknown_signer");
  write("config/firestop/config.yaml", "require_signature: maybe\n");
  EXPECT_EQ(code_of(signers()), "config.bad");
  write("config/firestop/config.yaml", "allowed_signers: ../../others\n");
  EXPECT_EQ(code_of(""), "sealed");
  EXPECT_EQ(code_of(signers()), "sealed");
}

TEST_F(SealTest, ChangesOfALockAreNamed) {
  const auto before = lock();
  shell("git commit -q --allow-empty -m two");
  auto after = lock();
  after.image_digest[0] = 'e';
  const auto changes = describe_changes(before, after);
  EXPECT_NE(changes.find("repo: " + before.repositories.at("repo").commit.substr(0, 12) + " -> "),
            std::string::npos);
  EXPECT_NE(changes.find("image: agent-base dddddddddddd -> agent-base eddddddddddd"), std::string::npos);
  EXPECT_EQ(describe_changes(after, after), "");
}

}  // namespace
}  // namespace firestop::sandbox
