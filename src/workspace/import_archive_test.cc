#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "guest/export_outputs.h"
#include "workspace/testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::is_ok;

class ImportArchive : public testing::Sandbox {
 protected:
  Result<ImportedFiles> import(uint64_t bytes = 64u << 20, uint32_t files = 1000) {
    return import_archive(path("a.tar"), path("to/out"), ImportLimits{bytes, files});
  }
  // A python script with `add(name, type=b'0', data=b'', link='', mode=0o644, size=None, pax=None)`.
  void make(const std::string& script) {
    write("make.py", R"py(
import sys, tarfile, io
out = open('a.tar', 'wb')
t = tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT, encoding='utf-8', errors='surrogateescape')
def add(name, type=b'0', data=b'', link='', mode=0o644, size=None, pax=None):
    i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.mode = mode
    i.size = len(data) if size is None else size; i.pax_headers = pax or {}
    t.addfile(i, io.BytesIO(data) if type == b'0' and size is None else None)
)py" + script + "\nt.close(); out.close()\n");
    shell("python3 make.py");
  }
};

TEST_F(ImportArchive, WhatTheGuestSendsArrives) {
  shell(R"x(mkdir -p ws/report/sub ws/plain; cd ws/report
for n in 0 1 4095 4096 65535 65536 110591 110592 110593 1048576; do head -c $n /dev/urandom > size-$n; done
printf a > "$(printf 'caf\351')"; printf b > "$(printf 'new\nline')"; chmod 750 sub; echo x > sub/x; chmod 711 sub/x
ln -s sub/x link; ln -s ../size-1 sub/up; truncate -s 20M hole; printf end >> hole
n=$(printf '%0200d' 0); mkdir -p $n/$n; echo long > $n/$n/$n; mkdir -m 0500 closed
touch -d @1600000000.123456789 size-1 sub; touch -d @1600000000.5 closed)x");
  const UniqueFd tar = *open_file(path("a.tar"), O_WRONLY | O_CREAT);
  const auto sent = guest::export_outputs(path("ws"), {{"report", 64u << 20}, {"plain", 10}, {"gone", 10}},
                                          [&](std::string_view data) { return write_all(tar.get(), data); });
  ASSERT_TRUE(is_ok(sent));
  EXPECT_EQ(sent->error, "");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ(got->files, sent->members);
  const std::string list =
      "find . -printf '%P %y %#m %s %l %T@\\n' | grep -v '^ ' | grep -v '^[^/]* d' | sort";
  EXPECT_EQ(shell(list, "to/out/report"), shell(list, "ws/report"));
  EXPECT_EQ(shell("find . -type f -print0 | sort -z | xargs -0 sha256sum", "to/out"),
            shell("find . -type f -print0 | sort -z | xargs -0 sha256sum", "ws"));
  EXPECT_EQ(shell("stat -c %a:%Y report/sub report/closed", "to/out"), "750:1600000000\n500:1600000000");
  struct stat status{};
  ASSERT_EQ(::stat(path("to/out/report/hole").c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20) << "the hole was filled";
  EXPECT_EQ(shell("ls -A to"), "out");
  EXPECT_EQ(error_code(import()), "import.exists");
}

TEST_F(ImportArchive, TheExportLeavesOutWhatCannotCome) {
  shell(
      R"x(mkdir -p ws/a ws/b ws/c; cd ws; ln -s /etc/passwd a/abs; ln -s ../b a/up; ln -s ../../x a/out; mkfifo a/pipe
echo fine > a/fine; chmod 4755 a/fine; head -c 2000 /dev/zero > b/big; rmdir c; ln -s /etc c)x");
  const UniqueFd tar = *open_file(path("a.tar"), O_WRONLY | O_CREAT);
  const auto sent = guest::export_outputs(path("ws"), {{"a", 100}, {"b", 1999}, {"c", 100}},
                                          [&](std::string_view data) { return write_all(tar.get(), data); });
  ASSERT_TRUE(is_ok(sent));
  EXPECT_NE(sent->error.find("b: more than its 1999 bytes"), std::string::npos) << sent->error;
  EXPECT_NE(sent->error.find("c: is not the folder"), std::string::npos) << sent->error;
  EXPECT_EQ(sent->notes.size(), 4u);
  ASSERT_TRUE(is_ok(import()));
  EXPECT_EQ(shell("find . | sort; stat -c %a a/fine", "to/out"), ".\n./a\n./a/fine\n755");
}

TEST_F(ImportArchive, inv03_HostileMembersAreRefused) {
  shell("mkdir outside; echo mine > outside/file");
  struct Row {
    const char *script, *code, *named;
  };
  const Row rows[] = {
      {"add('/abs')", "import.bad_member", "/abs"},
      {"add('../up')", "import.bad_member", "../up"},
      {"add('a/../../up')", "import.bad_member", "a/../../up"},
      {"add('a/..')", "import.bad_member", "a/.."},
      {"add('./a')", "import.bad_member", "./a"},
      {"add('a//b')", "import.bad_member", "a//b"},
      {"add('a/' + 'x' * 256)", "import.bad_member", "xxx"},
      {"add('/'.join(['d'] * 2100))", "import.bad_member", "d/d"},
      {"add('a/l', b'2', link='/etc/passwd')", "import.bad_member", "a/l"},
      {"add('a/l', b'2', link='../../x')", "import.bad_member", "a/l"},
      {"add('a/l', b'2', link='../b')", "import.bad_member", "a/l"},  // out of its own output
      {"add('l', b'2', link='x')", "import.bad_member", "l"},         // beside the outputs
      {"add('a/l', b'2', link='')", "import.bad_member", "a/l"},
      {"add('a/l', b'2', link='d'); add('a/l/x', data=b'x')", "import.bad_member",
       "a/l/x"},  // through a link
      {"add('a/d', b'5'); add('a/l', b'2', link='d'); add('a/l/x', data=b'x')", "import.bad_member", "a/l/x"},
      {"add('a/h', b'1', link='/etc/passwd')", "import.bad_member", "a/h"},
      {"add('a/h', b'1', link='../outside/file')", "import.bad_member", "a/h"},
      {"add('a/h', b'1', link='nothing')", "import.bad_member", "a/h"},
      {"add('a/l', b'2', link='y'); add('a/h', b'1', link='a/l')", "import.bad_member", "a/h"},  // to a link
      {"add('a/c', b'3')", "import.bad_member", "a/c"},                                  // character device
      {"add('a/b', b'4')", "import.bad_member", "a/b"},                                  // block device
      {"add('a/f', b'6')", "import.bad_member", "a/f"},                                  // fifo
      {"add('a/s', data=b'x', mode=0o4755)", "import.bad_member", "a/s"},                // setuid
      {"add('a/s', b'5', mode=0o2755)", "import.bad_member", "a/s"},                     // setgid
      {"add('a/x', data=b'1'); add('a/x', data=b'2')", "import.bad_member", "a/x"},      // twice
      {"add('a/x', data=b'1'); add('a/x/y', data=b'2')", "import.bad_member", "a/x/y"},  // a file as folder
      {"add('a', b'5'); add('a', b'5')", "import.bad_member", "a"},
      {"add('a/x', size=1 << 40)", "import.too_large", "a/x"},  // says more than it may
      {"[add('a/%d' % i, data=b'x' * 1000000) for i in range(70)]", "import.too_large", "a/"},
      {"[add('a/%d' % i) for i in range(1100)]", "import.too_large", "a/"},
      {"add('a/x', pax={'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.realsize': str(1 << "
       "50), 'GNU.sparse.name': 'a/x'}, data=b'1\\n0\\n1\\n' + b'\\0' * 506)",
       "import.too_large|import.bad_member|import.bad_archive", ""},
      {"add('a/ok', data=b'x'); add('a/x', pax={'path': '../../evil'})", "import.bad_member", "evil"},
      {"t.fileobj.write(b'\\x41' * 5120)", "import.bad_archive", ""},
      // Numbers that lie.
      {"add('a/x', size=-5)", "import.bad_member|import.bad_archive", ""},
      {"add('a/x', pax={'size': '9' * 30}, data=b'x')",
       "import.bad_member|import.bad_archive|import.too_large", ""},
      {"add('a/x', size=500000)", "import.bad_member|import.bad_archive", ""},  // more than the archive has
      {"add('a/y', data=b'x' * 2000, pax={'size': '100'})", "import.bad_member|import.bad_archive", ""},
      {"add('a/' + 'x' * 200, pax={'comment': 'c' * (8 << 20)})", "import.bad_archive|import.bad_member", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.script);
    make(row.script);
    const auto got = import();
    const std::string code = error_code(got);
    EXPECT_NE(std::string(row.code).find(code), std::string::npos) << code;
    if (!got) {
      EXPECT_NE(got.error().message.find(row.named), std::string::npos) << got.error().message;
    }
    EXPECT_EQ(shell("ls -A to"), "") << "something stayed";
    EXPECT_EQ(shell("cat outside/file; ls outside"), "mine\nfile");
  }
}

TEST_F(ImportArchive, inv03_TimesAndOwnersThatLieHarmNothing) {
  make(
      "[add('a/%d' % i, pax={'mtime': m}) for i, m in enumerate(['9' * 30, '-' + '9' * 30, '-1.5', '1e9', "
      "'0x7f', '', "
      "'1.999999999999'])]; add('a/o', pax={'uid': '0', 'gid': '0', 'uname': 'root', 'gname': 'shadow'}); "
      "add('a/c', "
      "pax={'SCHILY.xattr.security.capability': 'x', 'SCHILY.fflags': 'sappnd', 'SCHILY.acl.access': "
      "'user::rwx'})");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ(got->files, 9u);
  EXPECT_EQ(shell("find to/out -type f ! -uid $(id -u) -o -type f -perm /7000 -o -type f -size +0"), "");
  EXPECT_EQ(shell("stat -c %Y to/out/a/* | wc -l"), "9");
}

TEST_F(ImportArchive, inv05_AMillionMembersEndAtTheBound) {
  write("million.py", R"py(
with open('a.tar', 'wb') as out:
    raw = bytearray(512)
    raw[100:108], raw[124:136], raw[136:148] = b'0000644\0', b'00000000000\0', b'00000000000\0'
    raw[156:157], raw[257:265] = b'0', b'ustar\x0000'
    for i in range(1000000):
        raw[0:9], raw[148:156] = b'a/%07d' % i, b' ' * 8
        raw[148:156] = b'%06o\0 ' % sum(raw)
        out.write(raw)
    out.write(bytes(10240))
)py");
  shell("python3 million.py");
  const auto got = import(64u << 20, 10000);
  EXPECT_EQ(error_code(got), "import.too_large");
  EXPECT_EQ(shell("ls -A to"), "") << "something stayed";
}

TEST_F(ImportArchive, LinksThatStayAreKept) {
  make(
      "add('a', b'5'); add('a/f', data=b'x'); add('a/l', b'2', link='f'); add('a/d/l', b'2', link='../f');"
      "add('a/h', b'1', link='a/f'); add('a/dangling', b'2', link='none'); add('a/loop', b'2', link='loop')");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ(shell("cat l d/l h; stat -c %h f; readlink dangling loop", "to/out/a"), "xxx2\nnone\nloop");
}

TEST_F(ImportArchive, inv03_CutOffArchives) {
  make("add('a/f', data=b'x' * 5000); add('a/g', data=b'y')");
  const std::string whole = *read_file(path("a.tar"));
  for (const size_t size : {size_t{0}, size_t{100}, size_t{512}, size_t{3000}, size_t{6656}, size_t{7168}}) {
    write("a.tar", whole.substr(0, size));
    EXPECT_EQ(error_code(import()), "import.bad_archive") << size;
    EXPECT_FALSE(exists(path("to/out")));
  }
}

TEST_F(ImportArchive, NothingInIt) {
  make("");
  const auto got = import();
  ASSERT_TRUE(is_ok(got));
  EXPECT_EQ(got->files, 0u);
  EXPECT_FALSE(exists(path("to/out")));
}

TEST_F(ImportArchive, inv05_CompressedArchivesAreNoArchives) {
  make("add('a/f', data=b'x')");
  shell("gzip -c a.tar > b; head -c 2000 /dev/zero >> b; mv b a.tar");
  EXPECT_EQ(error_code(import()), "import.bad_archive");
}

}  // namespace
}  // namespace firestop::workspace
