"""Capabilities `skills` and `memory`: what is there, what is kept, and what cannot be had with them."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from guest_take_over import TAKE_OVER  # noqa: E402
from sandbox_test import SandboxTest, main  # noqa: E402

# Each line of it is tried; what succeeds is printed.
CHANGE_SKILLS = r"""
cd /workspace
for attempt in 'echo x > .skills/new' 'echo x >> .skills/review/SKILL.md' 'rm -f .skills/review/SKILL.md' \
    'mkdir .skills/other' 'mv .skills elsewhere' 'rmdir .skills' 'chmod 777 .skills/review' 'touch .skills/review/x' \
    'ln .skills/review/SKILL.md report/linked' 'mount -o remount,rw .skills' 'umount .skills' \
    'exec 9<.skills/review/SKILL.md; echo x > /proc/self/fd/9'; do
  if ( eval "$attempt" ) 2>/dev/null; then echo "done: $attempt"; fi
done
"""


class SkillsTest(SandboxTest):
    def skill(self, name, folder=None):
        folder = (folder or self.work / "skills") / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"# {name}\n")
        (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
        (folder / "run.sh").chmod(0o755)
        (folder / "link").symlink_to("SKILL.md")
        return folder

    def test_inv13_skills_are_there_to_read_and_in_nothing_that_comes_back(self):
        self.repository({"README": "hello\n"})
        self.skill("review")
        elsewhere = self.skill("house", self.folder)
        self.manifest("""
            capabilities: [shell, filesystem, skills]
            skills: {review: {src: skills/review}, house: {source: {bind: house}}}
            workspace:
              entries:
                repo: {type: git_repo, repo: "."}
                report: {type: dir, output: true, max: 1MiB}
            """)
        script = CHANGE_SKILLS + r"""
            ls .skills; cat .skills/review/SKILL.md .skills/house/link; .skills/review/run.sh; stat -c %U .skills/house
            cat /run/firestop/capabilities.json
            ln -s ../.skills/review report/link; echo text > report/text; echo more >> repo/README; cd repo
            git add -A && git commit -qm "all of it" && git status --porcelain"""
        told = self.run_in(script, "--name", "with", "--bind", f"house={elsewhere}")
        self.assertEqual(told, 'house\nreview\n# review\n# house\nran\nagent\n{"capabilities":["shell","filesystem",'
                               '"skills"],"skills":{"directory":"/workspace/.skills"}}\n')
        self.assertEqual(self.git("ls-tree", "-r", "--name-only", "agent/with"), "README")
        self.assertEqual(sorted(os.listdir(self.work / "firestop-out/with")), ["report"])
        self.assertEqual(os.listdir(self.work / "firestop-out/with/report"), ["text"])

    def test_inv02_without_filesystem_and_shell_skills_are_read_only_and_run_nothing(self):
        self.skill("review")
        (self.work / "job.py").write_text("""
import os
print(open('.skills/review/SKILL.md').read().strip())
for path, what in (('.skills/review/SKILL.md', lambda p: open(p, 'a')), ('.skills/review/run.sh', lambda p: os.execv(p, [p]))):
    try:
        what(path)
        print('done')
    except OSError as error:
        print(error.strerror)
""")
        self.manifest("capabilities: [skills]\nskills: {review: {src: skills/review}}\ncommand: [python3, job.py]\n"
                      "workspace: {entries: {job.py: {type: local_file, src: job.py}}}\n")
        done = self.firestop("run")
        self.assertEqual(done.stdout.decode(), "# review\nRead-only file system\nPermission denied\n")

    def test_inv02_a_skill_brings_nothing_from_beside_it(self):
        for name, make, word in (("link", lambda f: (f / "out").symlink_to("../../secret"), "leaves its folder"),
                                 ("absolute", lambda f: (f / "out").symlink_to("/etc"), "leaves its folder"),
                                 ("twins", lambda f: (f / "out").symlink_to("../other"), "leaves its folder"),
                                 ("fifo", lambda f: os.mkfifo(f / "fifo"), "fifo"),
                                 ("file", lambda f: None, "not a folder")):
            with self.subTest(name):
                folder = self.skill(name)
                make(folder)
                source = f"skills/{name}/SKILL.md" if name == "file" else f"skills/{name}"
                self.manifest(f"capabilities: [shell, skills]\nskills: {{{name}: {{src: {source}}}}}\n")
                done = self.firestop("run", "--", "true", status=242)
                self.assertIn(word if name != "file" else "irectory", done.stderr.decode())
        self.manifest("capabilities: [shell, skills]\nskills: {a: {src: nowhere}}\n")
        self.assertIn(b"skill a", self.firestop("run", "--", "true", status=242).stderr)
        self.manifest("capabilities: [shell, skills]\nskills: {a: {source: {bind: b}}}\n")
        self.assertIn(b"--bind b=PATH", self.firestop("run", "--", "true", status=240).stderr)


MEMORY = "capabilities: [shell, filesystem, memory]\n"


class MemoryBase(SandboxTest):
    def named(self, name, text=MEMORY, **kwargs):
        return self.manifest(f"name: {name}\n" + text, **kwargs)

    def kept(self, name="test"):
        """What is kept: path to bytes, or None."""
        folder = self.state / "firestop/memory" / name / "kept/content"
        if not folder.exists():
            return None
        return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}

    def run_json(self, script, *args, status=0):
        return self.ended(self.firestop("run", "--json", *args, "--", "sh", "-c", script, status=status))


class MemoryTest(MemoryBase):  # 40 s
    def test_what_is_kept_is_there_in_the_next_run_and_nothing_else_is(self):
        self.manifest(MEMORY)
        self.assertIsNone(self.kept())
        first = self.run_json("ls -A .memory; echo one > .memory/notes; mkdir .memory/d; echo deep > .memory/d/file;"
                              "ln -s d/file .memory/link; echo x > /tmp/x; echo x > ~/x; echo x > /workspace/x")
        self.assertEqual(first["run"]["memory"],
                         {"name": "test", "kept": True, "files": 4, "bytes": 9, "message": ""})
        self.assertEqual(self.kept(), {"notes": "one\n", "d/file": "deep\n", "link": "deep\n"})
        told = self.run_in("cat .memory/notes .memory/link; stat -c %U .memory .memory/d/file; echo two >> .memory/notes;"
                           "rm -r .memory/d .memory/link; ls -A /tmp ~ /workspace; cat /run/firestop/capabilities.json")
        self.assertEqual(told.split("\n")[:4], ["one", "deep", "agent", "agent"])
        self.assertNotIn("x\n", told)
        self.assertEqual(json.loads(told.splitlines()[-1])["memory"],
                         {"directory": "/workspace/.memory", "max_bytes": 16 << 20, "max_files": 1000})
        self.assertEqual(self.kept(), {"notes": "one\ntwo\n"})
        self.assertIn(b"kept by this run", self.firestop("show", self.newest()).stdout)
        # Whatever it ends with, and by itself or not; without the capability it is neither there nor touched.
        self.run_json("echo three >> .memory/notes; exit 7", status=7)
        self.manifest("capabilities: [shell, filesystem]\n")
        self.assertEqual(self.run_in("ls -A"), "")
        self.manifest(MEMORY + "rating: 6s\n")
        self.run_json("echo four >> .memory/notes; sleep 100", status=243)
        self.assertEqual(self.kept(), {"notes": "one\ntwo\nthree\nfour\n"})

    def newest(self):
        return self.json_of("runs")[0]["id"]

    def test_inv02_of_another_name_nothing_is_there(self):
        self.named("alpha")
        self.run_in("echo secret > .memory/notes")
        self.named("beta")
        told = self.run_in("ls -A .memory; find / -xdev -name notes 2>/dev/null; ls -A ..; ln -s ../alpha .memory/l;"
                           "mkdir -p .memory/kept/content; echo x > .memory/kept/content/notes; mv .memory ../x; rmdir .memory; true")
        self.assertNotIn("notes", told)
        self.assertEqual(self.kept("alpha"), {"notes": "secret\n"})
        self.assertEqual(self.kept("beta"), {"kept/content/notes": "x\n"})
        listed = {each["name"]: each["files"] for each in self.json_of("memory", "list")}
        self.assertEqual(listed, {"alpha": 1, "beta": 3})
        self.firestop("memory", "forget", "alpha")
        self.assertIsNone(self.kept("alpha"))
        self.assertEqual(self.firestop("memory", "forget", "alpha", status=240).stdout, b"")
        self.assertEqual([each["name"] for each in self.json_of("memory", "list")], ["beta"])

    def test_inv05_more_than_may_be_kept_keeps_what_was_kept(self):
        caps = MEMORY + "limits: {memory: 256MiB, disk: 512MiB, memory_directory: 1MiB, memory_files: 10}\n"
        self.manifest(caps)
        self.run_in("echo good > .memory/notes")
        for script, word in (("head -c 1048577 /dev/urandom > .memory/big", "more than its 1048576 bytes"),
                             ("truncate -s 1T .memory/sparse", "more than its"),
                             ("for i in $(seq 11); do : > .memory/$i; done", "more than 10"),
                             ("mkdir -p .memory/1/2/3/4/5/6/7/8/9/10/11", "more than 10")):
            with self.subTest(script):
                end = self.run_json(script, status=246)
                self.assertEqual(end["error"]["code"], "memory.not_kept")
                self.assertIn(word, end["error"]["message"])
                self.assertIn("what was kept before stays", end["error"]["message"])
                self.assertFalse(end["run"]["memory"]["kept"])
                self.assertIn(word, end["run"]["memory"]["message"])
                self.assertEqual(self.kept(), {"notes": "good\n"})
        # What cannot come is left out and said; what would lock us out does not.
        end = self.run_json("mkfifo .memory/fifo; ln -s /etc/passwd .memory/out; ln -s ../../../.. .memory/up; cd .memory;"
                            "echo x > s; chmod 4755 s; mkdir -m 0 closed; : > f; chmod 0 f notes; chmod 0 .")
        self.assertEqual(len([note for note in end["notes"] if note.startswith("memory: ")]), 3, end["notes"])
        self.assertEqual(self.kept(), {"notes": "good\n", "s": "x\n", "f": ""})
        self.assertEqual(self.run_in("ls .memory; stat -c %a .memory/s"), "closed\nf\nnotes\ns\n755\n")
        # A result that is too large costs the outputs and not what was kept.
        self.manifest(caps.replace("memory_files: 10", "memory_files: 10, result: 1MiB") +
                      "workspace: {entries: {o: {type: dir, output: true}}}\n")
        self.run_json("echo other > .memory/notes; head -c 3M /dev/urandom > o/big", status=246)
        self.assertIn(self.kept()["notes"], ("good\n", "other\n"))
        # A cap that is lower than what is there.
        self.manifest(MEMORY + "limits: {memory: 256MiB, disk: 512MiB, memory_files: 1}\n")
        done = self.firestop("run", "--", "true", status=242)
        self.assertIn(b"firestop memory forget test", done.stderr)

    def test_inv13_it_is_in_no_repository_and_no_output(self):
        self.repository()
        self.manifest("capabilities: [shell, filesystem, memory]\n"
                      'workspace: {entries: {repo: {type: git_repo, repo: "."}, o: {type: dir, output: true}}}\n')
        for name in ("first", "second"):
            self.run_in("echo mine > .memory/notes; ln -s ../.memory o/link; echo x > o/x; cd repo; echo x >> README;"
                        "git add -A; git commit -qm x; git status --porcelain", "--name", name)
            self.assertEqual(self.git("ls-tree", "-r", "--name-only", f"agent/{name}"), "README")
            self.assertEqual(os.listdir(self.work / f"firestop-out/{name}"), ["o"])
            self.assertEqual(os.listdir(self.work / f"firestop-out/{name}/o"), ["x"])

    def test_without_filesystem_it_is_writable_and_all_around_it_is_not(self):
        self.manifest("capabilities: [shell, memory]\n")
        self.assertEqual(self.run_in("echo x > .memory/x; ls .memory; (echo x > y) 2>/dev/null || echo refused"), "x\nrefused\n")
        self.assertEqual(self.run_in("cat .memory/x; rm .memory/x && echo gone"), "x\ngone\n")
        self.assertEqual(self.kept(), {})

    def test_inv15_the_second_is_told_who_has_it(self):
        self.manifest(MEMORY)
        first = self.start("run", "--name", "first", "--", "sh", "-c", "echo one > .memory/x; echo up; read line",
                           stdin=-1, stdout=-1)
        self.assertEqual(first.stdout.readline(), b"up\n")
        owner = self.json_of("memory", "list")[0]["in_use_by"]
        self.assertEqual(owner, self.json_of("show", "first")["id"])
        done = self.firestop("run", "--name", "second", "--json", "--", "true", status=242)
        error = self.ended(done)["error"]
        self.assertEqual(error["code"], "memory.busy")
        self.assertIn(owner, error["message"])
        self.firestop("memory", "forget", "test", status=242)
        first.stdin.write(b"go\n")
        first.stdin.flush()
        self.assertEqual(first.wait(timeout=120), 0)
        self.assertEqual(self.run_in("cat .memory/x"), "one\n")
        # A crash releases it and changes nothing.
        second = self.start("run", "--", "sh", "-c", "echo two > .memory/x; echo up; read line", stdin=-1, stdout=-1)
        self.assertEqual(second.stdout.readline(), b"up\n")
        second.send_signal(signal.SIGKILL)
        second.wait()
        self.assertEqual(self.run_in("cat .memory/x"), "one\n")

    def test_another_manifest_of_the_same_name_is_said(self):
        self.manifest(MEMORY)
        self.run_in("echo x > .memory/x")
        other = self.folder / "other"
        other.mkdir()
        self.manifest(MEMORY, folder=other)
        done = self.firestop("run", "--", "cat", ".memory/x", cwd=other)
        self.assertEqual(done.stdout, b"x\n")
        self.assertIn(f"kept by another manifest: {self.work}/firestop.yaml".encode(), done.stderr)


ARCHIVE = r"""
import io, tarfile
t = tarfile.open('/tmp/archive', 'w', format=tarfile.PAX_FORMAT)
def add(name, type=b'0', data=b'', link='', mode=0o644):
    i = tarfile.TarInfo(name); i.type = type; i.linkname = link; i.mode = mode; i.size = len(data)
    t.addfile(i, io.BytesIO(data) if data else None)
add('.memory', b'5', mode=0o755)
"""


class GuestRootTest(MemoryBase):  # 60 s
    CAPS = MEMORY + "limits: {memory: 256MiB, disk: 512MiB, memory_directory: 64KiB, memory_files: 10}\n"

    def setUp(self):
        super().setUp()
        self.manifest(self.CAPS)
        self.run_in("echo good > .memory/notes")
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"

    def test_inv05_root_gets_no_more_out_than_the_cap(self):
        for script in ("head -c 20M /dev/urandom > .memory/big", "for i in $(seq 2000); do : > .memory/$i; done",
                       "truncate -s 1T .memory/sparse", "mount -t tmpfs none .memory && head -c 1M /dev/zero > .memory/x",
                       "umount .memory && rmdir .memory"):
            with self.subTest(script):
                self.run_json("cd /workspace && " + script, status=246)
                self.assertEqual(self.kept(), {"notes": "good\n"})
        end = self.run_json("cd /workspace && mknod .memory/device b 254 0 && mknod .memory/null c 1 3")
        self.assertEqual(len(end["notes"]), 2, end["notes"])
        self.assertEqual(self.kept(), {"notes": "good\n"})

    def test_inv03_forged_archives(self):
        (self.folder / "outside").mkdir()
        for members, kept in (("add('.memory/fine', data=b'forged')", {"fine": "forged"}),
                              ("add('.memory/../../../other/kept/content/x', data=b'x')", None),
                              ("add('/tmp/firestop-forged', data=b'x')", None),
                              ("add('.memory/l', b'2', link='/etc'); add('.memory/l/x', data=b'x')", None),
                              ("add('.memory/d', b'3')", None), ("add('.memory/s', data=b'x', mode=0o6755)", None),
                              ("add('.memory/big', data=b'x' * 70000)", None),
                              ("[add('.memory/%d' % i) for i in range(11)]", None),
                              ("add('kept', b'5')", None)):
            with self.subTest(members):
                before = self.kept()
                script = ARCHIVE + members + "\nt.close()\n" + TAKE_OVER
                done = self.firestop("run", "--json", "--", "python3", "-c", script, status=None)
                end = self.ended(done)
                self.assertEqual(self.kept(), kept if kept is not None else before)
                self.assertEqual(done.returncode, 0 if kept is not None else 246, end)
                if kept is None:
                    self.assertEqual(end["error"]["code"], "memory.not_kept", end)
        self.assertEqual(sorted(os.listdir(self.state / "firestop/memory")), [".lock", "test"])
        self.assertFalse(os.path.exists("/tmp/firestop-forged"))

    def test_inv05_an_archive_without_end(self):
        script = TAKE_OVER.replace('archive = open("/tmp/archive", "rb").read()', 'archive = bytes(4 << 20)')
        done = self.firestop("run", "--json", "--", "python3", "-c", script, status=None)
        self.assertIn(done.returncode, (245, 246), self.ended(done))
        self.assertEqual(self.kept(), {"notes": "good\n"})


if __name__ == "__main__":
    main()
