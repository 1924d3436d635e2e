"""What goes in and what comes back: repositories, files, folders, mounts, outputs."""
import hashlib
import os
import pathlib
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

# Sizes at which other tools have truncated files.
SIZES = (0, 1, 4095, 4096, 65535, 65536, (108 << 10) - 1, 108 << 10, (108 << 10) + 1, 1 << 20, 100 << 20)

REPOSITORY = """
workspace:
  entries:
    repo: {type: git_repo, repo: "."}
"""

# Counts the tracked files that a command opens.
SPY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
static void saw(const char *p) {
  if (!strstr(p, ".git") && strstr(p, "tracked")) { (void)!write(9, p, strlen(p)); (void)!write(9, "\n", 1); }
}
#define WRAP(name) int name(const char *p, int f, ...) { \
  va_list a; va_start(a, f); int m = va_arg(a, int); va_end(a); saw(p); \
  return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(p, f, m); }
#define WRAP2(name) int name(const char *p, int f) { \
  saw(p); return ((int (*)(const char *, int))dlsym(RTLD_NEXT, #name))(p, f); }
WRAP(open) WRAP(open64) WRAP2(__open_2) WRAP2(__open64_2)
"""


def pattern(size):
    block = bytes((i * 7 + (i >> 8)) & 0xFF for i in range(1 << 16))
    return (block * (size // len(block) + 1))[:size]


class RepositoryTest(SandboxTest):  # 68 s
    def source_state(self, folder):
        """Everything of a repository that a run must not change, and how it looks."""
        seen = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if name.startswith((".git/objects", ".git/refs/heads/agent", ".git/refs/firestop", ".git/logs/refs",
                                "firestop-out")):
                continue
            st = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            if path.is_dir() and name.startswith(".git"):
                seen[name] = (oct(st.st_mode),)
                continue
            seen[name] = (oct(st.st_mode), st.st_mtime_ns if path.is_file() else 0, content)
        return seen

    def test_a_clean_checkout_with_its_history_and_an_origin_without_a_path(self):
        self.repository({"README": "one\n", "dir/tracked.txt": "t\n"})
        (self.work / "README").write_text("two\n")
        self.git("commit", "-qam", "second")
        self.git("tag", "v1")
        self.manifest(REPOSITORY)
        out = self.run_in("""cd repo; git status --porcelain=v1 --branch; git rev-parse HEAD; git log --format=%s | tr '\\n' ' '
            echo; git remote get-url origin; git tag; git fsck --strict --no-dangling >/dev/null 2>&1 && echo sound
            git diff-files --quiet && echo fits; git rev-parse --abbrev-ref HEAD""").splitlines()
        self.assertEqual(out[0], "## main...origin/main")
        self.assertEqual(out[1], self.git("rev-parse", "HEAD"))
        self.assertEqual(out[2].strip(), "second first")
        self.assertNotIn(str(self.folder), out[3])
        self.assertEqual(out[3], "firestop:test")
        self.assertEqual(out[4:], ["v1", "sound", "fits", "main"])

    def test_the_first_status_opens_no_tracked_file(self):
        self.repository({f"tracked/{i}.txt": f"{i}\n" for i in range(50)} | {"spy.c": SPY})
        self.manifest(REPOSITORY)
        out = self.run_in("""gcc -shared -fPIC -o /tmp/spy.so repo/spy.c && cd repo
            LD_PRELOAD=/tmp/spy.so git status --porcelain 9>/tmp/opened; cat /tmp/opened; echo opened: $(wc -l </tmp/opened)
            touch tracked/1.txt; LD_PRELOAD=/tmp/spy.so git status --porcelain 9>/tmp/opened; echo then: $(wc -l </tmp/opened)""")
        self.assertEqual(out, "opened: 0\nthen: 1\n")  # the second count shows that the first could have failed

    def test_depth(self):
        self.repository()
        for i in range(4):
            (self.work / "README").write_text(f"{i}\n")
            self.git("commit", "-qam", f"c{i}")
        self.manifest("workspace:\n  entries:\n    repo: {type: git_repo, repo: '.', depth: 2}\n")
        self.assertEqual(self.run_in("cd repo; git log --format=%s; git rev-parse --is-shallow-repository"),
                         "c3\nc2\ntrue\n")

    def test_commits_and_uncommitted_work_come_back_and_the_source_is_untouched(self):
        self.repository({"README": "hello\n", "gone": "x\n", ".gitignore": "ignored\n"})
        hook = self.work / ".git/hooks/post-checkout"
        for name in ("post-checkout", "reference-transaction", "post-merge", "pre-receive", "update"):
            path = hook.with_name(name)
            path.write_text(f"#!/bin/sh\ntouch {self.folder}/hook-ran\n")
            path.chmod(0o755)
        (self.work / "README").write_text("a change of mine, not committed\n")
        (self.work / "staged").write_text("staged\n")
        self.git("add", "staged")
        self.manifest(REPOSITORY)
        before = self.source_state(self.work)
        done = self.firestop("run", "--name", "task", "--json", "--", "sh", "-c", """
            set -e; cd repo; cat README; echo new > new; git add new; git commit -qm 'agent: new'
            rm gone; printf '#!/bin/sh\\n' > script; chmod +x script; echo no > ignored
            ln -s README link; git config core.hooksPath /tmp/evil; git config alias.x '!touch /tmp/x'""")
        self.assertEqual(done.stdout, b"hello\n")
        self.assertEqual(self.source_state(self.work), before)
        self.assertFalse((self.folder / "hook-ran").exists())
        branch = self.ended(done)["run"]["branches"][0]
        self.assertEqual((branch["ref"], branch["new_commits"], branch["uncommitted"]), ("refs/heads/agent/task", 2, True))
        self.assertEqual(self.git("log", "--format=%s", "agent/task~1").splitlines(), ["agent: new", "first"])
        tree = dict(reversed(line.split("\t")) for line in self.git("ls-tree", "-r", "agent/task").splitlines())
        self.assertEqual(sorted(tree), [".gitignore", "README", "link", "new", "script"])
        self.assertTrue(tree["script"].startswith("100755"))
        self.assertTrue(tree["link"].startswith("120000"))
        self.git("fsck", "--strict")

    def test_nothing_new_makes_no_branch(self):
        self.repository()
        self.manifest(REPOSITORY)
        done = self.firestop("run", "--name", "idle", "--json", "--", "true")
        self.assertEqual(self.ended(done)["run"]["branches"], [])
        self.assertEqual(self.git("branch", "--list", "agent/*"), "")

    def test_what_stays_behind_is_said(self):
        self.repository()
        self.manifest(REPOSITORY)
        done = self.firestop("run", "--name", "side", "--json", "--", "sh", "-c", """set -e; cd repo
            git switch -qc other; echo o > o; git add o; git commit -qm other; git switch -q main; ln -s /etc/passwd leak""")
        notes = " | ".join(self.ended(done)["notes"])
        self.assertIn("other", notes)
        self.assertIn("absolute", notes)

    def test_a_branch_that_exists_is_said_before_the_start(self):
        self.repository()
        self.git("branch", "agent/taken")
        self.manifest(REPOSITORY)
        done = self.firestop("run", "--name", "taken", "--", "true", status=242)
        self.assertIn(b"agent/taken", done.stderr)

    def test_sources_in_odd_shapes(self):
        origin = self.repository(folder=self.folder / "origin")
        (origin / "README").write_text("2\n")
        self.git("commit", "-qam", "second", cwd=origin)
        self.git("worktree", "add", "-q", "-b", "side", self.folder / "linked", cwd=origin)
        self.git("clone", "-q", "--depth", "1", f"file://{origin}", self.folder / "shallow")
        self.git("init", "-q", "-b", "main", "--object-format=sha256", cwd=self.make("sha256"))
        (self.folder / "sha256/f").write_text("x")
        self.git("add", "f", cwd=self.folder / "sha256")
        self.git("commit", "-qm", "c", cwd=self.folder / "sha256")
        self.git("clone", "-q", origin, self.folder / "detached")
        self.git("checkout", "-q", "--detach", cwd=self.folder / "detached")
        for name in ("linked", "shallow", "sha256", "detached"):
            with self.subTest(name):
                folder = self.folder / name
                self.manifest(REPOSITORY, folder=folder)
                self.firestop("run", "--name", f"t-{name}", "--", "sh", "-c",
                              "cd repo && git status --porcelain && echo y > y && git add y && git commit -qm y", cwd=folder)
                self.assertEqual(self.git("show", f"agent/t-{name}:y", cwd=folder), "y")

    def make(self, name):
        (self.folder / name).mkdir()
        return self.folder / name

    def test_a_source_without_commits_or_without_git_is_refused(self):
        self.git("init", "-q")
        self.manifest(REPOSITORY)
        self.assertIn(b"commit", self.firestop("run", "--", "true", status=242).stderr)
        plain = self.make("plain")
        self.manifest(REPOSITORY, folder=plain)
        self.assertIn(b"git", self.firestop("run", "--", "true", status=242, cwd=plain).stderr)


class FilesTest(SandboxTest):  # 37 s
    def test_files_of_every_size_go_in_and_come_out_the_same(self):
        source = self.work / "in"
        source.mkdir()
        want = {}
        for size in SIZES:
            data = pattern(size)
            (source / str(size)).write_bytes(data)
            want[str(size)] = hashlib.sha256(data).hexdigest()
        self.manifest("""
            limits: {memory: 256MiB, disk: 1GiB}
            workspace:
              entries:
                in: {type: local_dir, src: in}
                out: {type: dir, output: true, max: 200MiB}
            """)
        inside = self.run_in("cd in && sha256sum * && cp * ../out/", "--name", "sizes")
        self.assertEqual({line.split()[1]: line.split()[0] for line in inside.splitlines()}, want)
        back = self.work / "firestop-out/sizes/out"
        self.assertEqual({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in back.iterdir()}, want)

    def test_modes_links_times_and_odd_names_survive_both_ways(self):
        source = self.work / "in"
        (source / "sub").mkdir(parents=True)
        odd = [b"caf\xe9", b"new\nline", "ünï".encode(), b"-rf", b"a b", b"x" * 255]
        for name in odd:
            (pathlib.Path(os.fsdecode(os.fsencode(source) + b"/" + name))).write_bytes(name)
        (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
        (source / "run.sh").chmod(0o750)
        (source / "read-only").write_text("r")
        (source / "read-only").chmod(0o444)
        os.symlink("run.sh", source / "link")
        os.symlink("nowhere", source / "dangling")
        os.utime(source / "run.sh", (1_000_000_000, 1_000_000_000))
        self.manifest("""
            workspace:
              entries:
                in: {type: local_dir, src: in}
                out: {type: dir, output: true, max: 20MiB}
            """)
        out = self.run_in("./in/run.sh; stat -c '%a %Y' in/run.sh; cp -a in/. out/", "--out", self.folder / "back")
        self.assertEqual(out, "ran\n750 1000000000\n")
        back = self.folder / "back/out"
        self.assertEqual(sorted(os.listdir(os.fsencode(back))), sorted(os.listdir(os.fsencode(source))))
        for name in odd:
            self.assertEqual(pathlib.Path(os.fsdecode(os.fsencode(back) + b"/" + name)).read_bytes(), name)
        self.assertEqual(stat.S_IMODE((back / "run.sh").stat().st_mode), 0o750)
        self.assertEqual(int((back / "run.sh").stat().st_mtime), 1_000_000_000)
        self.assertEqual(stat.S_IMODE((back / "read-only").stat().st_mode), 0o444)
        self.assertEqual(os.readlink(back / "link"), "run.sh")
        self.assertEqual(os.readlink(back / "dangling"), "nowhere")

    def test_plain_entries(self):
        (self.work / "local.txt").write_text("local\n")
        data = self.folder / "elsewhere"
        data.mkdir()
        (data / "f").write_text("bound\n")
        self.manifest("""
            workspace:
              users: [{name: analyst, groups: [staff2]}, {name: other}]
              groups: [{name: staff2}]
              entries:
                note.md: {type: file, content: "begin here\\n", permissions: "0640"}
                deep/er/x: {type: local_file, src: local.txt}
                empty: {type: dir}
                bound: {type: local_dir, source: {bind: data}}
            run_as: analyst
            """)
        out = self.run_in("""cat note.md deep/er/x bound/f; stat -c '%a %U %n' note.md empty; id -un; id -Gn; echo w > empty/w && echo ok
            echo home > ~/file && cat ~/file; touch /etc/x 2>/dev/null || echo no""", "--bind", f"data={data}")
        self.assertEqual(out, "begin here\nlocal\nbound\n640 analyst note.md\n755 analyst empty\nanalyst\n"
                              "analyst staff2\nok\nhome\nno\n")

    def test_inv13_a_mount_is_read_only_and_in_nothing_that_comes_back(self):
        data = self.folder / "dataroom"
        data.mkdir()
        (data / "paper").write_text("secret paper\n")
        self.repository({"README": "hello\n", "docs/a": "a\n"})
        self.manifest("""
            workspace:
              entries:
                repo: {type: git_repo, repo: "."}
                repo/docs/dataroom: {type: mount, source: {bind: dataroom}, read_only: true}
                out: {type: dir, output: true, max: 1MiB}
            """)
        out = self.run_in("""cat repo/docs/dataroom/paper; touch repo/docs/dataroom/x 2>/dev/null || echo refused
            git -C repo status --porcelain; mv repo/docs repo/moved && echo moved
            echo y > repo/y; echo o > out/o""", "--bind", f"dataroom={data}", "--name", "m")
        self.assertEqual(out, "secret paper\nrefused\nmoved\n")
        self.assertNotIn("dataroom", self.git("ls-tree", "-r", "--name-only", "agent/m"))
        self.assertEqual(os.listdir(self.work / "firestop-out/m"), ["out"])
        self.assertEqual(os.listdir(data), ["paper"])

    def test_an_output_beyond_its_cap_is_refused_whole(self):
        self.manifest("""
            workspace:
              entries:
                out: {type: dir, output: true, max: 1MiB}
            """)
        done = self.firestop("run", "--name", "big", "--", "sh", "-c", "head -c 2M /dev/zero > out/f", status=246)
        self.assertIn(b"out", done.stderr)
        self.assertFalse((self.work / "firestop-out/big").exists())

    def test_outputs_are_never_written_over(self):
        self.manifest("workspace:\n  entries:\n    out: {type: dir, output: true, max: 1MiB}\n")
        (self.folder / "there").mkdir()
        self.firestop("run", "--out", self.folder / "there", "--", "true", status=240)

    def test_a_source_with_a_link_that_leaves_it_is_refused(self):
        (self.work / "in").mkdir()
        os.symlink("/etc/passwd", self.work / "in/leak")
        self.manifest("workspace:\n  entries:\n    in: {type: local_dir, src: in}\n")
        done = self.firestop("run", "--", "true", status=242)
        self.assertIn(b"leak", done.stderr)


class KeepTest(SandboxTest):
    def test_keep_leaves_the_disk_and_rm_removes_it(self):
        self.manifest("")
        self.firestop("run", "--keep", "--name", "kept", "--", "true")
        self.assertEqual(len(list(self.state.rglob("scratch.img"))), 1)
        self.firestop("rm", "kept")
        self.assertEqual(list(self.state.rglob("scratch.img")), [])


if __name__ == "__main__":
    main()
