#include "base/path.h"
#include "workspace/bundle_header.h"
#include "workspace/import_testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::ImportBundle;
using testing::is_ok;

TEST_F(ImportBundle, NewCommitsBecomeABranchAndNothingElseChanges) {
  shell(
      "git pack-refs --all; git config x.y z; printf '#!/bin/sh\\ntouch ran\\n' > "
      ".git/hooks/reference-transaction; "
      "chmod +x .git/hooks/reference-transaction; cp .git/hooks/reference-transaction .git/hooks/post-merge; "
      "echo dirty >> file; echo staged > staged; git add staged; echo untracked > untracked; rm -f ran",
      "src");
  in_guest(
      "echo new > new; mkdir more; echo x > more/x; git add .; git commit -qm one; echo y >> file; git "
      "commit -qam two; "
      "bundle $(git rev-parse HEAD) > ../bundle");
  const std::string before = fingerprint();
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  ASSERT_TRUE(got->has_value());
  EXPECT_EQ(fingerprint(), before);
  EXPECT_EQ((*got)->ref, "refs/heads/agent/job");
  EXPECT_EQ((*got)->commit, shell("git rev-parse HEAD", "guest"));
  EXPECT_EQ((*got)->new_commits, 2u);
  EXPECT_FALSE((*got)->uncommitted);
  EXPECT_EQ(shell("git log --format=%s agent/job", "src"), "two\none\nthird\nsecond\nfirst");
  EXPECT_EQ(shell("git rev-parse refs/firestop/run-job", "src"), (*got)->commit);
  shell("git fsck --strict --no-dangling", "src");
  EXPECT_EQ(shell("ls -A scratch"), "") << "the quarantine stayed";
  EXPECT_EQ(error_code(import()), "import.branch_exists");
}

TEST_F(ImportBundle, NothingNew) {
  shell(": > bundle");
  auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_FALSE(got->has_value());
}

TEST_F(ImportBundle, OddSources) {
  struct Row {
    const char *name, *make;
  };
  const Row rows[] = {
      {"bare", "git clone -q --bare src from"},
      {"tree", "git -C src worktree add -q ../from -b other"},
      {"shallow", "git clone -q --depth 2 file://$PWD/src from"},
      {"alternates", "git clone -q --shared src from"},
      {"sha256",
       "git init -q --object-format=sha256 from; cd from; echo 1 > file; git add .; git commit -qm only"},
      {"submodule",
       "git init -q super; cd super; git submodule --quiet add ../src mod; cd ..; ln -s super/mod from"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    shell(
        std::string("rm -rf from guest; git -C src worktree prune; git -C src branch -q -D other || true; ") +
        row.make);
    shell("git clone -q file://$PWD/from guest; git -C guest remote set-head origin -a || true");
    in_guest(
        "echo new > new; git add .; git commit -qm one; tip=$(git rev-parse HEAD); bundle $tip > ../bundle; "
        "if [ ${#tip} = 64 ]; then (printf '# v3 git bundle\\n@object-format=sha256\\n'; tail -n +2 "
        "../bundle) > ../b; "
        "mv ../b ../bundle; fi");
    auto source = resolve("from");
    ASSERT_TRUE(is_ok(source));
    const auto got =
        import_bundle(*source, path("bundle"), path("scratch"), "r", row.name, ImportLimits{1 << 20, 100});
    ASSERT_TRUE(is_ok(got));
    EXPECT_EQ(shell(std::string("git log -1 --format=%s agent/") + row.name, "from"), "one");
    shell("git fsck --strict --no-dangling; git update-ref -d refs/firestop/r", "from");
  }
}

TEST_F(ImportBundle, HistoriesThatAreNotSimplyLonger) {
  struct Row {
    const char *name, *script;
    uint32_t commits;
  };
  const Row rows[] = {
      {"amended", "echo x > x; git add .; git commit -q --amend -m changed", 1},
      {"orphan", "git checkout -q --orphan o; git commit -qm root", 1},
      {"merge",
       "git checkout -q -b side HEAD~1; echo s > s; git add .; git commit -qm side; git checkout -q main; "
       "git merge -q --no-edit side",
       2},
      {"back", "git checkout -q HEAD~2 -- file; git commit -qm 'old content'",
       1},  // objects of the base's history
      {"empty", "git commit -q --allow-empty -m nothing", 1},
      {"gitlink", "git update-index --add --cacheinfo 160000,$base,lib; git commit -qm link", 1},
      {"attributes", "echo '* filter=evil' > .gitattributes; git add .; git commit -qm attr", 1},
      {"link", "ln -s dir/sub/deep inside; ln -s ../file dir/up; git add .; git commit -qm links", 1},
      {"odd-names", "printf x > \"$(printf 'caf\\351\\n')\"; git add .; git commit -qm odd", 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    shell("rm -rf guest; git clone -q --single-branch src guest");
    in_guest(std::string(row.script) + "; bundle $(git rev-parse HEAD) > ../bundle");
    const auto got = import(row.name);
    ASSERT_TRUE(is_ok(got));
    EXPECT_EQ((*got)->new_commits, row.commits);
  }
  shell("git fsck --strict --no-dangling", "src");
}

TEST_F(ImportBundle, inv12_HostileBundlesAreRefused) {
  const std::string secret = shell("git rev-parse private:secret", "src");
  const std::string secret_tree = shell("git rev-parse private^{tree}", "src");
  const std::string secret_commit = shell("git rev-parse private", "src");
  struct Row {
    std::string script, code;
  };
  const Row rows[] = {
      // Trees with names that mean something to git or to a file system.
      {"t=$(printf '040000 tree %s\\t.git\\n' $(printf '100644 blob %s\\tconfig\\n' $file | git mktree) | "
       "git mktree); bundle $(commit $t)",
       "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\t.GiT\\n' $file))", "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\tgit~1\\n' $file))", "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\t.g\\342\\200\\214it\\n' $file))", "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\t..\\n' $file))", "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\t.\\n' $file))", "import.bad_object"},
      {"h=$(printf %s $file | sed 's/../\\\\x&/g'); t=$(printf \"100644 a/../../b\\0$h\" | raw); objects "
       "$(commit $t) $t",
       "import.bad_object"},
      {"h=$(printf %s $file | sed 's/../\\\\x&/g'); t=$(printf \"100644 a\\0$h\"\"100644 a\\0$h\" | raw); "
       "objects $(commit $t) $t",
       "import.bad_object"},
      {"bundle $(commit $(tree '100644 blob %s\\tFILE\\n' $file))", "import.case_twins"},
      {"bundle $(commit $(tree '040000 tree %s\\tDir\\n' $(git rev-parse HEAD:dir)))", "import.case_twins"},
      {"bundle $(commit $(tree '100644 blob %s\\t\\303\\211\\n100644 blob %s\\t\\303\\251\\n' $file $file))",
       "import.case_twins"},
      {"n=$(printf '%0300d' 0); bundle $(commit $(tree '100644 blob %s\\t'$n'\\n' $file))",
       "import.bad_path"},
      {"t=$(git rev-parse HEAD:dir); for i in $(seq 25); do t=$(printf '040000 tree %s\\t%0200d\\n' $t 0 | "
       "git mktree); done; bundle $(commit $t)",
       "import.bad_path"},
      // Links.
      {"l=$(printf /etc/passwd | git hash-object -w --stdin); bundle $(commit $(tree '120000 blob %s\\tl\\n' "
       "$l))",
       "import.link_out"},
      {"l=$(printf ../x | git hash-object -w --stdin); bundle $(commit $(tree '120000 blob %s\\tl\\n' $l))",
       "import.link_out"},
      {"l=$(printf /etc/x | git hash-object -w --stdin); t=$(git commit-tree -p $(commit $(tree '120000 blob "
       "%s\\tl\\n' $l)) -m gone HEAD^{tree}); bundle $t",
       "import.link_out"},
      {"l=$(head -c 9000 /dev/zero | tr '\\0' a | git hash-object -w --stdin); bundle $(commit $(tree "
       "'120000 blob %s\\tl\\n' $l))",
       "import.bad_object|import.link_out"},
      // Submodules that attack whoever clones them.
      {"printf '[submodule \"x\"]\\npath = x\\nurl = -u./payload\\n' > .gitmodules; git add .; git commit "
       "-qm m; bundle $(git rev-parse HEAD)",
       "import.bad_object"},
      {"printf '[submodule \"../../x\"]\\npath = x\\nurl = u\\n' > .gitmodules; git add .; git commit -qm m; "
       "bundle $(git rev-parse HEAD)",
       "import.bad_object"},
      {"l=$(printf x | git hash-object -w --stdin); bundle $(commit $(tree '120000 blob %s\\t.gitmodules\\n' "
       "$l))",
       "import.bad_object"},
      {"printf '[submodule \"x\"]\\npath = -x\\nurl = u\\n' > .gitmodules; git add .; git commit -qm m; "
       "bundle "
       "$(git rev-parse HEAD)",
       "import.bad_object"},
      {"printf '[submodule \"x\"]\\npath = x\\nurl = u\\nupdate = !touch ran\\n' > .gitmodules; git add .; "
       "git "
       "commit -qm m; bundle $(git rev-parse HEAD)",
       "import.bad_object"},
      // Objects of the source that the sandbox only knows by name.
      {"t=$(tree '100644 blob " + secret + "\\tstolen\\n'); objects $(commit $t) $t",
       "import.foreign_object"},
      {"t=" + secret_tree +
           "; c=$(printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 "
           "+0000\\n\\nx\\n' $t $base | git hash-object -t commit -w --stdin --literally); objects $c",
       "import.foreign_object"},
      {"c=$(printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n' "
       "$(git rev-parse HEAD^{tree}) " +
           secret_commit + " | git hash-object -t commit -w --stdin --literally); objects $c",
       "import.foreign_object"},
      {"t=$(tree '100644 blob 1234567890123456789012345678901234567890\\tmissing\\n'); objects $(commit $t) "
       "$t",
       "import.incomplete"},
      // A tip that is none.
      {"objects $file", "import.bad_object"},
      {"git tag -a -m t t; objects $(git rev-parse t)", "import.bad_object"},
      {"header 1234567890123456789012345678901234567890; printf '%s\\n' $file | git pack-objects --stdout -q",
       "import.incomplete"},
      {"header " + secret_commit + "; printf '%s\\n' $file | git pack-objects --stdout -q",
       "import.incomplete"},
      // Sizes and counts.
      {"truncate -s 60M big; git add .; git commit -qm big; bundle $(git rev-parse HEAD)",
       "import.too_large"},
      {"for i in $(seq 1100); do echo $i > f$i; done; git add .; git commit -qm many; bundle $(git rev-parse "
       "HEAD)",
       "import.too_large"},
      {"echo x > x; git add .; git commit -qm x; tip=$(git rev-parse HEAD); printf '# v2 git bundle\\n'; for "
       "i in $(seq 3000); do echo $tip refs/heads/$i; done; echo; printf '%s\\n' $tip | git pack-objects "
       "--revs --stdout -q",
       "import.bad_bundle"},
      {"printf '# v2 git bundle\\n'; yes -- \"-$base x\" | head -c 3000000; echo", "import.bad_bundle"},
      // A git bomb: 10^12 files in twelve trees.
      {"t=$(git rev-parse HEAD:dir/sub); for i in $(seq 12); do t=$(for j in 0 1 2 3 4 5 6 7 8 9; do printf "
       "'040000 tree %s\\t%s\\n' $t $j; done | git mktree); done; bundle $(commit $t)",
       "import.too_large"},
      // Broken or made for something else.
      {"echo x > x; git add .; git commit -qm x; bundle $(git rev-parse HEAD) | head -c -30",
       "import.bad_object"},
      {"echo x > x; git add .; git commit -qm x; bundle $(git rev-parse HEAD) | sed 's/PACK/KCAP/'",
       "import.bad_bundle"},
      {"header $base | sed \"s/^$base/1$(echo $base | cut -c2-)/\"", "import.bad_bundle"},
      {"printf '# v3 git bundle\\n@filter=blob:none\\n%s HEAD\\n\\n' $base", "import.bad_bundle"},
      {"printf '# v3 git bundle\\n@object-format=sha256\\n%s%.24s HEAD\\n\\nPACK' $base $base",
       "import.bad_bundle"},
      {"head -c 5000 /dev/urandom", "import.bad_bundle"},
      // A thin pack: deltas against objects that it does not have.
      {"seq 20000 > ../long; cp ../long file; git commit -qam long; git -C ../src fetch -q ../guest main; "
       "git -C ../src update-ref refs/heads/main FETCH_HEAD; git fetch -q; base=$(git rev-parse HEAD); "
       "echo end >> file; git commit -qam thin; header $(git rev-parse HEAD); printf '%s\\n^%s\\n' $(git "
       "rev-parse HEAD) $base | git pack-objects --revs --thin --stdout -q",
       "import.bad_object"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    shell("rm -rf guest; git clone -q --single-branch src guest");
    in_guest("{ " + row.script + "; } > ../bundle");
    const std::string before = fingerprint();
    const std::string code = error_code(import());
    EXPECT_NE(row.code.find(code), std::string::npos) << code;
    EXPECT_EQ(fingerprint(), before);
    EXPECT_EQ(shell("git for-each-ref refs/heads/agent refs/firestop", "src"), "");
    EXPECT_EQ(shell("ls -A scratch 2>/dev/null || true"), "");
  }
}

TEST_F(ImportBundle, TwinsOfTheBaseAreNotTheSandboxsFault) {
  shell("echo 1 > Readme; echo 2 > README; git add .; git commit -qm twins", "src");
  shell("rm -rf guest; git clone -q --single-branch src guest");
  in_guest("echo x > x; git add .; git commit -qm x; bundle $(git rev-parse HEAD) > ../bundle");
  EXPECT_TRUE(is_ok(import()));
}

TEST_F(ImportBundle, BranchNames) {
  auto source = resolve("src");
  ASSERT_TRUE(is_ok(source));
  EXPECT_TRUE(is_ok(check_branch_free(*source, "job")));
  EXPECT_TRUE(is_ok(check_branch_free(*source, "a/b")));
  for (const char* name : {"", "../x", "a..b", "a b", "-", ".x", "x.lock", "a//b", "x~1", "@{0}"}) {
    const std::string code = error_code(check_branch_free(*source, name));
    if (std::string_view(name) == "-") continue;  // git allows refs/heads/agent/-
    EXPECT_EQ(code, "import.bad_name") << name;
  }
  shell("git branch agent/a", "src");
  EXPECT_EQ(error_code(check_branch_free(*source, "a")), "import.branch_exists");
  EXPECT_EQ(error_code(check_branch_free(*source, "a/b")), "import.branch_exists");
  shell("git branch -D agent/a -q; git branch agent", "src");
  EXPECT_EQ(error_code(check_branch_free(*source, "job")), "import.branch_exists");
  shell("git branch -D agent -q; git symbolic-ref HEAD refs/heads/agent/unborn", "src");
  EXPECT_EQ(error_code(check_branch_free(*source, "unborn")), "import.branch_exists");
}

TEST(BundleHeader, Strict) {
  const std::string id(40, 'a'), id256(64, 'b');
  const auto parsed =
      parse_bundle_header("# v2 git bundle\n-" + id + " subject\n-" + id + "\n" + id + " HEAD\n\nPACK");
  ASSERT_TRUE(is_ok(parsed));
  EXPECT_EQ(parsed->prerequisites.size(), 2u);
  EXPECT_EQ(parsed->tip, id);
  EXPECT_EQ(parsed->ref, "HEAD");
  EXPECT_EQ(parsed->bytes, 16u + 50 + 42 + 46 + 1);
  const auto wide = parse_bundle_header("# v3 git bundle\n@object-format=sha256\n" + id256 + " HEAD\n\n");
  ASSERT_TRUE(is_ok(wide));
  EXPECT_EQ(wide->object_format, "sha256");
  const std::string bad[] = {
      "",
      "# v2 git bundle",
      "# v2 git bundle\n",
      "# v4 git bundle\n" + id + " HEAD\n\n",
      "# v2 git bundle\n" + id + " HEAD\n",                           // no end
      "# v2 git bundle\n\n",                                          // no reference
      "# v2 git bundle\n" + id + " \n\n",                             // no name
      "# v2 git bundle\n" + id + "\n\n",                              // no name
      "# v2 git bundle\n" + id + " a\n" + id + " b\n\n",              // two references
      "# v2 git bundle\n" + id + " a\n-" + id + "\n\n",               // out of order
      "# v2 git bundle\n" + id256 + " a\n\n",                         // too long an id
      "# v2 git bundle\n" + std::string(40, 'A') + " a\n\n",          // upper case
      "# v2 git bundle\n@object-format=sha256\n" + id256 + " a\n\n",  // capability in version 2
      "# v3 git bundle\n@filter=blob:none\n" + id + " a\n\n",         // unknown capability
      "# v3 git bundle\n@object-format=sha1\n@object-format=sha256\n" + id256 + " a\n\n",
  };
  for (const auto& text : bad) EXPECT_EQ(error_code(parse_bundle_header(text)), "import.bad_bundle") << text;
}

}  // namespace
}  // namespace firestop::workspace
