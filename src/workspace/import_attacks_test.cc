// What a hostile guest's bundles try beside hostile trees (import_bundle_test.cc): packs that lie, names and
// times that lie, repositories and hosts on which the walls could be missing.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "workspace/import_testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::ImportBundle;
using testing::is_ok;

// python3 PACK CASE BASE > bundle: a commit on BASE, in a pack that is not what it says.
constexpr char kPack[] = R"py(
import hashlib, struct, subprocess, sys, zlib
case, base = sys.argv[1:]
TYPES = {'commit': 1, 'tree': 2, 'blob': 3, 'ofs': 6, 'ref': 7}
def size_of(kind, size):
    out, size = [TYPES[kind] << 4 | size & 15], size >> 4
    while size:
        out[-1] |= 128; out.append(size & 127); size >>= 7
    return bytes(out)
def entry(kind, data, size=None, between=b''):
    return size_of(kind, len(data) if size is None else size) + between + zlib.compress(data, 1)
def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0)); n >>= 7
        if not n: return bytes(out)
tree = subprocess.check_output(['git', 'rev-parse', base + '^{tree}'], text=True).strip()
commit = f'tree {tree}\nparent {base}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n'.encode()
tip = hashlib.sha1(b'commit %d\0' % len(commit) + commit).hexdigest()
honest = entry('commit', commit)
more, count, version, bad_sum = b'', None, 2, False
if case == 'count of 4 billion': count = 0xffffffff
elif case == 'count too high': count = 2
elif case == 'count too low': more, count = entry('blob', b'extra'), 1
elif case == 'size of a petabyte': more = entry('blob', b'small', 1 << 50)
elif case == 'size of a petabyte, of a commit': more = entry('commit', b'small', 1 << 50)
elif case == 'size of 2^64 and more': more = bytes([0xbf] + [0xff] * 12 + [0x7f]) + zlib.compress(b'x')
elif case == 'more than its size': more = entry('blob', b'x' * 1000, 10)
elif case == 'less than its size': more = entry('blob', b'x' * 10, 1000)
elif case == 'bomb': more = entry('blob', b'\0' * (1 << 30))
elif case == 'bomb that lies': more = entry('blob', b'\0' * (1 << 28), 10)
elif case == 'delta of itself': more = entry('ofs', b'\x01\x01\x90\x01', between=b'\x00')
elif case == 'delta of what lies before the pack': more = entry('ofs', b'\x01\x01\x90\x01', between=b'\xff\xff\x7f')
elif case == 'delta that says a terabyte':
    blob = entry('blob', b'b' * 100)
    more = blob + entry('ofs', varint(100) + varint(1 << 40) + b'\x90\x64', between=bytes([len(blob)])); count = 3
elif case == 'deltas that multiply':  # a megabyte a byte
    blob, count = entry('blob', b'b' * (1 << 20)), 2
    delta = varint(1 << 20) + varint(0xffffff * 255) + b''.join(b'\xf0\xff\xff\xff' for _ in range(255))
    more = blob + entry('ofs', delta, between=bytes([0x80 | (len(blob) >> 7) - 1, len(blob) & 127]) if len(blob) > 127 else bytes([len(blob)])); count = 3
elif case == 'delta of what only the source has':
    more = entry('ref', varint(1) + varint(1) + b'\x90\x01', between=bytes.fromhex(tree))
elif case == 'unknown type': more = bytes([5 << 4 | 1]) + zlib.compress(b'x')
elif case == 'rubbish for a stream': more = size_of('blob', 5) + b'\xff' * 40
elif case == 'wrong sum': bad_sum = True
elif case == 'version 4': version = 4
elif case != 'honest': sys.exit('unknown case')
if count is None: count = 2 if more else 1
pack = b'PACK' + struct.pack('>II', version, count) + honest + more
pack += b'\0' * 20 if bad_sum else hashlib.sha1(pack).digest()
sys.stdout.buffer.write(f'# v2 git bundle\n-{base}\n{tip} HEAD\n\n'.encode() + pack)
)py";

bool write_small(const char* file, const std::string& text) {
  const UniqueFd fd(::open(file, O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

TEST_F(ImportBundle, inv05_PacksThatLie) {
  write("pack.py", kPack);
  const struct {
    const char *name, *code;
  } kRows[] = {
      {"count of 4 billion", "import.too_large"},
      {"count too high", "import.bad_object"},
      {"count too low", "import.bad_object"},
      {"size of a petabyte", "import.bad_object"},
      {"size of a petabyte, of a commit", "import.bad_object"},
      {"size of 2^64 and more", "import.bad_object"},
      {"more than its size", "import.bad_object"},
      {"less than its size", "import.bad_object"},
      {"bomb", "import.too_large"},
      {"bomb that lies", "import.bad_object"},
      {"delta of itself", "import.bad_object"},
      {"delta of what lies before the pack", "import.bad_object"},
      {"delta that says a terabyte", "import.bad_object"},
      {"deltas that multiply", "import.bad_object"},
      {"delta of what only the source has", "import.bad_object"},
      {"unknown type", "import.bad_object"},
      {"rubbish for a stream", "import.bad_object"},
      {"wrong sum", "import.bad_object"},
      {"version 4", "import.bad_bundle"},
      {"honest", "no error"},
  };
  const std::string before = fingerprint();
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.name);
    shell(std::string("python3 ../pack.py '") + row.name + "' $(git rev-parse HEAD) > ../bundle", "guest");
    EXPECT_EQ(error_code(import()), row.code);
    EXPECT_EQ(fingerprint(), before);
    EXPECT_EQ(shell("git for-each-ref refs/heads/agent refs/firestop | wc -l", "src"),
              std::string_view(row.code) == "no error" ? "2" : "0");
    EXPECT_EQ(shell("ls -A scratch 2>/dev/null || true"), "") << "the quarantine stayed";
  }
}

TEST_F(ImportBundle, inv12_NamesThatTheBundleBringsMeanNothing) {
  in_guest("echo x > x; git add .; git commit -qm x; git rev-parse HEAD > ../tip");
  const std::string base = shell("git rev-parse main", "src");
  const std::string refs = shell("git for-each-ref", "src");
  size_t number = 0;
  for (const std::string& name :
       {std::string("refs/heads/../x"), std::string("../../config"), std::string("refs/heads/main"),
        "refs/replace/" + base, std::string("refs/firestop/other"), std::string("--upload-pack=touch ran"),
        std::string("\x1b[2Jx"), std::string("x.lock")}) {
    SCOPED_TRACE(name);
    const std::string job = "job" + std::to_string(++number);
    write("name", name);
    in_guest(
        "tip=$(cat ../tip); { printf '# v2 git bundle\\n-%s\\n%s %s\\n\\n' $base $tip \"$(cat ../name)\"; "
        "printf "
        "'%s\\n^%s\\n' $tip $base | git pack-objects --revs --stdout -q; } > ../bundle");
    const auto got = import(job);
    if (got) {
      EXPECT_EQ((*got)->ref, "refs/heads/agent/" + job);
      shell("git update-ref -d refs/heads/agent/" + job + "; git update-ref -d refs/firestop/run-" + job,
            "src");
    } else {
      EXPECT_EQ(got.error().code, "import.bad_bundle");
    }
    EXPECT_EQ(shell("git for-each-ref", "src"), refs);
  }
}

TEST_F(ImportBundle, inv12_TimesAndPeopleThatLie) {
  const struct {
    const char *who, *code;
  } kRows[] = {
      {"a <a@b> 99999999999999999999999 +0000", "import.bad_object"},  // no 64 bits
      {"a <a@b> -1 +0000", "import.bad_object"},
      {"a <a@b> 1", "import.bad_object"},
      {"a a@b 1 +0000", "import.bad_object"},
      {"a <a@b> 1 +00000000000", "import.bad_object"},
      {"a <a@b> 253402300800 +1400", "no error"},  // the year 10000 is only a number
  };
  size_t number = 0;
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.who);
    write("who", row.who);
    in_guest(
        "c=$(printf 'tree %s\\nparent %s\\nauthor %s\\ncommitter %s\\n\\nx\\n' $(git rev-parse HEAD^{tree}) "
        "$base "
        "\"$(cat ../who)\" \"$(cat ../who)\" | git hash-object -t commit -w --stdin --literally); objects $c "
        "> "
        "../bundle");
    EXPECT_EQ(error_code(import("t" + std::to_string(++number))), row.code);
  }
}

// Whoever works in the source may have filters, drivers, hooks; a branch's attributes ask for them.
TEST_F(ImportBundle, inv12_WhatTheOwnerConfiguredDoesNotRun) {
  shell(R"(printf '#!/bin/sh\ntouch %s/ran\ncat\n' "$PWD" > evil; chmod +x evil; cd src
for key in filter.f.clean filter.f.smudge filter.f.process diff.f.textconv diff.f.command merge.f.driver core.fsmonitor \
  core.pager core.editor core.sshCommand core.askPass gpg.program core.alternateRefsCommand credential.helper \
  uploadpack.packObjectsHook receive.procReceiveRefs; do git config $key "$PWD/../evil"; done
git config filter.f.required true; git config gc.auto 1; git config commit.gpgSign true
for h in reference-transaction post-update update pre-receive post-receive pre-auto-gc post-index-change post-checkout; do
  cp ../evil .git/hooks/$h; done)");
  in_guest(
      "echo '* filter=f diff=f merge=f' > .gitattributes; echo '[core] hooksPath = .' > .gitconfig; echo x > "
      "x; "
      "git add .; git commit -qm attributes; bundle $(git rev-parse HEAD) > ../bundle");
  shell("rm -f ran");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_FALSE(exists(path("ran")));
}

TEST_F(ImportBundle, inv12_ReplaceRefsAndGraftsHideNothing) {
  // To the owner's own git the base commit looks like one without a history.
  shell("git replace --graft main; git rev-parse --verify -q main > /dev/null", "src");
  in_guest("echo x > x; git add .; git commit -qm x; bundle $(git rev-parse HEAD) > ../bundle");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ((*got)->new_commits, 1u);
  EXPECT_EQ(shell("git --no-replace-objects log --format=%s agent/job", "src"), "x\nthird\nsecond\nfirst");
}

// Content that was harmless under its old name, and is in the source already.
TEST_F(ImportBundle, inv12_OldContentUnderANewNameIsJudgedByIt) {
  shell(
      "printf '[submodule \"x\"]\\npath = x\\nurl = -u./payload\\n' > harmless; git add .; git commit -qm "
      "text",
      "src");
  shell("rm -rf guest; git clone -q --single-branch src guest");
  in_guest("git mv harmless .gitmodules; git commit -qm renamed; bundle $(git rev-parse HEAD) > ../bundle");
  EXPECT_EQ(error_code(import()), "import.bad_object");
  in_guest(
      "git mv .gitmodules other; git commit -q --amend -m moved; bundle $(git rev-parse HEAD) > ../bundle");
  EXPECT_EQ(error_code(import()), "no error");
}

TEST_F(ImportBundle, inv12_ObjectsOfTheSourcesAlternatesStayPrivate) {
  // "borrower" has all of src's objects by alternates, and the branch main only.
  shell(
      "git clone -q --shared --single-branch src borrower; mv src kept; mv borrower src; mkdir x; "
      "printf '%s\\n' \"$PWD/kept/.git/objects\" > src/.git/objects/info/alternates");
  const std::string secret = shell("git rev-parse private:secret", "kept");
  in_guest("t=$(tree '100644 blob " + secret + "\\tstolen\\n'); objects $(commit $t) $t > ../bundle");
  EXPECT_EQ(error_code(import()), "import.foreign_object");
  in_guest(
      "git checkout -q -f HEAD; echo x > x; git add x; git commit -qm x; bundle $(git rev-parse HEAD) > "
      "../bundle");
  EXPECT_EQ(error_code(import()), "no error") << "the same alternates serve honest work";
}

TEST_F(ImportBundle, inv12_OddSourcesTakeABranchToo) {
  struct Row {
    const char *name, *make, *then;
  };
  const Row rows[] = {
      {"sparse", "git clone -q --sparse src from", ""},
      {"detached", "git clone -q src from; git -C from checkout -q --detach", ""},
      {"packed", "git clone -q src from; git -C from pack-refs --all; git -C from gc -q", ""},
      {"file", "git clone -q src from; git -C from branch file; git -C from checkout -q file", ""},
      {"chain",
       "git clone -q --shared src mid; git clone -q --shared mid from; echo ../../../mid/.git/objects > "
       "from/.git/objects/info/alternates",
       ""},
      {"linked-objects", "git clone -q src from",
       "mv from/.git/objects moved; ln -s ../../moved from/.git/objects"},
      {"odd-path", "mkdir 'a b'; git clone -q src 'a b/c:d'; ln -s 'a b/c:d' from", ""},
      {"pointers",
       "git clone -q src from; cd from; echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes; "
       "printf "
       "'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 5\n' 0 > a.bin; git add .; git "
       "commit -qm "
       "lfs; git config filter.lfs.clean false; git config filter.lfs.smudge false; git config "
       "filter.lfs.required true",
       ""},
      {"submodules",
       "git clone -q src from; cd from; printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = ../s\\n' > "
       ".gitmodules; git "
       "update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s; git add .gitmodules; git commit -qm s",
       ""},
      {"others", "git clone -q src from", "[ $(id -u) != 0 ] || chown -R 54321:54322 from"},
      {"private", "git clone -q src from",
       "chmod -R go-rwx from; [ $(id -u) != 0 ] || chown -R 54321:54322 from"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    shell(std::string("rm -rf from mid moved 'a b' guest; ") + row.make);
    shell("git clone -q \"$(readlink -f from)\" guest");
    in_guest(
        "base=$(git rev-parse HEAD); echo new > new; git add new; git commit -qm one; bundle $(git rev-parse "
        "HEAD) "
        "> ../bundle");
    shell(row.then);
    auto source = resolve("from");
    ASSERT_TRUE(is_ok(source));
    const auto got =
        import_bundle(*source, path("bundle"), path("scratch"), "r", row.name, ImportLimits{1 << 20, 100});
    ASSERT_TRUE(is_ok(got));
    EXPECT_EQ(shell(std::string("git log -1 --format=%s agent/") + row.name, "from"), "one");
    shell("git fsck --strict --no-dangling", "from");
    if (::geteuid() == 0 && std::string_view(row.then).find("chown") != std::string_view::npos) {
      EXPECT_EQ(shell("find .git/objects/pack/ -name 'pack-*' ! -uid 54321", "from"), "")
          << "its owner could not remove it";
    }
  }
}

TEST_F(ImportBundle, inv12_APartialCloneTakesABranchOfWhatItHas) {
  shell(
      "git -C src config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD/src from");
  auto source = resolve("from", "", 1);
  ASSERT_TRUE(is_ok(source));
  ASSERT_TRUE(is_ok(repository_image(*source, Owner{}))) << "the newest commit is there as a whole";
  // Whoever would fetch what is missing finds nobody: nothing asks.
  shell("mv src gone; rm -rf guest; git clone -q --depth 1 file://$PWD/gone guest");
  in_guest("echo new > new; git add .; git commit -qm one; bundle $(git rev-parse HEAD) > ../bundle");
  const auto got =
      import_bundle(*source, path("bundle"), path("scratch"), "r", "p", ImportLimits{1 << 20, 100});
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ(shell("git log -1 --format=%s agent/p", "from"), "one");
}

TEST_F(ImportBundle, inv04_WhereNoJailCanBeMadeNothingIsImported) {
  in_guest("echo x > x; git add .; git commit -qm x; bundle $(git rev-parse HEAD) > ../bundle");
  write("a.tar", std::string(1024, '\0'));
  const std::string before = shell("git for-each-ref; ls .git/objects/pack", "src");
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  const pid_t child = ::fork();
  if (child == 0) {
    // A host on which this user may make no more namespaces.
    const bool limited = ::unshare(CLONE_NEWUSER) == 0 && write_small("/proc/self/setgroups", "deny") &&
                         write_small("/proc/self/uid_map", "0 " + uid + " 1") &&
                         write_small("/proc/self/gid_map", "0 " + gid + " 1") &&
                         write_small("/proc/sys/user/max_user_namespaces", "0") &&
                         write_small("/proc/sys/user/max_net_namespaces", "0");
    if (!limited) ::_exit(2);
    const auto archive = import_archive(path("a.tar"), path("out"), ImportLimits{1 << 20, 100});
    const auto bundle = import();
    ::_exit(error_code(bundle) == "jail.unavailable" && !archive ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "namespaces cannot be limited here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shell("git for-each-ref; ls .git/objects/pack", "src"), before);
  EXPECT_FALSE(exists(path("out")));
}

}  // namespace
}  // namespace firestop::workspace
