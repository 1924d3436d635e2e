"""Every way to run code that the record promises to catch, each held against the bytes that were run."""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

MANIFEST = """
workspace: {entries: {repo: {type: git_repo, repo: "."}}}
limits: {memory: 384MiB, disk: 512MiB}
"""


class Recorded(SandboxTest):
    """What the record of the last run holds."""

    def read_record(self):
        [path] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
        self.record = path
        self.events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def bytes_of(self, digest):
        path = self.record / "content" / digest[:2] / digest
        return path.read_bytes() if path.exists() else None

    def end(self):
        [end] = self.of("record.end")
        return end


def sha(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


# name, how it is recorded, the bytes, the shell command that runs it (FILE is the file with the bytes)
def ways():
    def shell(name):
        return f"#!/bin/sh\n# {name}\necho {name}\n"

    yield "by its #! line", "script", shell("a1"), "chmod +x FILE; FILE"
    yield "named to sh", "argument", shell("a2"), "sh FILE"
    yield "named to bash, no suffix", "argument", "echo a3\n", "bash FILE"
    yield "named to python", "argument", "print('a4')\n", "python3 FILE"
    yield "named to perl", "argument", "print \"a5\\n\";\n", "perl FILE"
    yield "a makefile", "argument", "all:\n\t@echo a6\n", "if command -v make >/dev/null; then make -f FILE; else echo a6; fi"
    yield "sourced", "module", "echo a7\n", ". FILE"
    yield "a module of python's", "module", "print('a8')\n", \
        "mkdir -p /tmp/lib; cp FILE /tmp/lib/a8module.py; PYTHONPATH=/tmp/lib python3 -c 'import a8module'"
    yield "in /dev/shm", "argument", "echo a9\n", "cp FILE /dev/shm/a9; sh /dev/shm/a9"
    yield "removed while it runs", "script", "#!/bin/sh\nrm -- \"$0\"\necho b1\n", "chmod +x FILE; FILE; test ! -e FILE"
    yield "removed, by a descriptor", "module", "echo b2\n", "exec 3< FILE; rm FILE; sh /proc/self/fd/3; exec 3<&-"
    yield "a pipe to sh", "stdin", "echo b3\n", "cat FILE | sh"
    yield "a pipe to bash", "stdin", "echo b4\n", "cat FILE | bash"
    yield "a pipe to python", "stdin", "print('b5')\n", "cat FILE | python3"
    yield "a pipe to python -", "stdin", "print('b6')\n", "cat FILE | python3 - arg"
    yield "a file as stdin", "stdin", "echo b7\n", "sh < FILE"
    yield "a here-document", "stdin", "echo b8\n", "sh <<'EOF'\necho b8\nEOF"
    yield "sh -s", "stdin", "echo b9\n", "cat FILE | sh -s one two"
    yield "process substitution", "stdin", "echo c1\n", "bash -c 'bash <(cat FILE)'"
    yield "a pipe with a name", "stdin", "echo c2\n", "mkfifo /tmp/c2; cat FILE > /tmp/c2 & sh /tmp/c2; wait"
    yield "sh -c", "command", "echo c3; :", "sh -c 'echo c3; :'"
    yield "python -c", "command", "print('c4')", "python3 -c \"print('c4')\""
    yield "perl -e", "command", "print qq(c5\\n)", "perl -e 'print qq(c5\\n)'"
    yield "awk", "command", "BEGIN{print \"c6\"}", "awk 'BEGIN{print \"c6\"}'"
    yield "a long command", "command", "echo c7 #" + "x" * 20000, "sh -c \"echo c7 #$(head -c 20000 /dev/zero | tr '\\0' x)\""
    yield "changed in place, same size", "module", "echo c9\n", \
        "printf 'echo c8\\n' > /tmp/c89; . /tmp/c89; printf 'echo c9\\n' > /tmp/c89; . /tmp/c89"
    yield "renamed before it runs", "argument", "echo d1\n", "mv FILE /tmp/d1; sh /tmp/d1"
    yield "by a link", "argument", "echo d2\n", "ln -s FILE /tmp/d2; sh /tmp/d2"
    yield "bytes that are no text", "argument", b"echo d3 # \xff\xfe\n", "sh FILE"
    yield "a memory file, by python", "program", None, """python3 - <<'EOF'
import os
fd = os.memfd_create('d4')
os.write(fd, open('/usr/bin/true','rb').read() + b'd4')
pid = os.fork()
if not pid: os.execve(fd, ['d4'], {})
print('d4' if os.waitpid(pid, 0)[1] == 0 else 'no')
EOF"""
    yield "a program of its own", "program", None, """cp /usr/bin/true /tmp/d5; printf d5 >> /tmp/d5; /tmp/d5 && echo d5"""
    yield "a program run by the loader", "argument", None, \
        "cp /usr/bin/true /tmp/d6; printf d6 >> /tmp/d6; /lib64/ld-linux-x86-64.so.2 /tmp/d6 && echo d6"


class Inv11EveryWayToRunCode(Recorded):
    """The record is not the agent's: the bytes of what ran are in it, however it ran, and if it is gone."""

    def test_inv11_every_way_is_caught_byte_for_byte(self):
        files, lines = {}, []
        for number, (_, _, content, command) in enumerate(ways()):
            name = f"way{number}"
            if content is not None:
                files[name] = content
            lines.append(command.replace("FILE", f"/workspace/repo/{name}"))
        files["all.sh"] = "".join(f"{{ {line}\n}} || echo failed: {number}\n" for number, line in enumerate(lines))
        self.repository(files)
        self.manifest(MANIFEST)
        done = self.firestop("run", "--", "bash", "./repo/all.sh")
        output = done.stdout.decode()
        self.assertNotIn("failed", output)
        self.read_record()
        codes = self.of("code")
        for number, (name, how, content, _) in enumerate(ways()):
            with self.subTest(name):
                if content is None:
                    tail = f"d{4 + [w[0] for w in ways() if w[2] is None].index(name)}".encode()
                    found = [c for c in codes if c["how"] == how and c.get("digest") and
                             (self.bytes_of(c["digest"]) or b"").endswith(tail)]
                    self.assertTrue(found, (how, tail))
                    continue
                data = content if isinstance(content, bytes) else content.encode()
                found = [c for c in codes if c.get("digest") == sha(data)]
                self.assertTrue(found, (name, [c for c in codes if c["how"] == how]))
                self.assertIn(how, [c["how"] for c in found], name)
                self.assertEqual(self.bytes_of(sha(data)), data)
        with self.subTest("nothing was lost"):
            self.assertEqual(self.of("lost"), [])
            self.assertTrue(self.end()["complete"], self.end())
        with self.subTest("who wrote it"):
            [code] = [c for c in codes if c["path"] == "/tmp/d5"]
            self.assertNotEqual(code["writer"], 0)


if __name__ == "__main__":
    main()
