"""Every way to run code that the record promises to catch, each held against the bytes that were run; and for each that it
says cannot be had, what it has instead."""
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import termios
import time
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

IMAGES = pathlib.Path(__file__).resolve().parent.parent / "images"

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

    def has(self, data):
        """The records of code with these bytes; none: they are not even in the store."""
        found = [code for code in self.of("code") if code.get("digest") == sha(data)]
        self.assertEqual(bool(found), self.bytes_of(sha(data)) is not None)
        return found

    def complete(self):
        self.assertEqual(self.of("lost"), [])
        self.assertTrue(self.end()["complete"], self.end())

    def run_all(self, ways, *options, files=None, more=""):
        """Runs each way in one sandbox, then `more`; returns what was printed."""
        files, lines = files or {}, []
        for number, (_, _, content, command) in enumerate(ways):
            name = f"way{number}"
            if content is not None:
                files[name] = content
            lines.append(command.replace("FILE", f"/workspace/repo/{name}"))
        files["all.sh"] = "".join(f"{{ {line}\n}} || echo failed: {number}\n" for number, line in enumerate(lines)) + more
        self.repository(files)
        output = self.firestop("run", *options, "--", "bash", "./repo/all.sh").stdout.decode()
        self.assertNotIn("failed", output)
        self.read_record()
        return output

    def each_is_caught(self, ways):
        for name, how, content, _ in ways:
            if content is None:
                continue
            data = content if isinstance(content, bytes) else content.encode()
            with self.subTest(name):
                found = self.has(data)
                self.assertTrue(found, (name, [c for c in self.of("code") if c["how"] == how]))
                self.assertIn(how, [c["how"] for c in found], name)
                self.assertEqual(self.bytes_of(sha(data)), data)
        with self.subTest("nothing was lost"):
            self.complete()


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
    yield "awk -f", "argument", "BEGIN { print \"c8\" }\n", "awk -f FILE"
    yield "sed -f", "argument", "s/x/c8b/\n", "echo x | sed -f FILE"
    yield "python -m", "module", "print('a8b')\n", \
        "mkdir -p /tmp/lib; cp FILE /tmp/lib/a8other.py; cd /tmp/lib; python3 -m a8other; cd - > /dev/null"
    yield "perl's do", "module", "print \"a5b\\n\";\n", "cp FILE /tmp/a5b.pl; perl -e 'do \"/tmp/a5b.pl\"'"
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


# In the tests' image: what agent-base does not have.
def other_languages():
    yield "named to node", "argument", "console.log('n1')\n", "cp FILE /tmp/n1.js; node /tmp/n1.js"
    yield "named to node, no suffix", "argument", "console.log('n2')\n", "node FILE"
    yield "a pipe to node", "stdin", "console.log('n3')\n", "cat FILE | node"
    yield "a pipe to node -", "stdin", "console.log('n4')\n", "cat FILE | node - arg"
    # One process, since each takes seconds under emulation.
    yield "imported by node", "module", "export const x = 'n5';\n", "cp FILE /tmp/n5.mjs"
    yield "required by node", "module", "console.log('n6')\n", "cp FILE /tmp/n6.js"
    yield "node --require", "argument", "console.log('n7')\n", "cp FILE /tmp/n7.js"
    text = "require('/tmp/n6.js'); import('/tmp/n5.mjs').then(m => console.log(m.x))"
    yield "node -e", "command", text, f"node -r /tmp/n7.js -e \"{text}\""
    yield "its #! line says node", "script", "#!/usr/bin/env node\nconsole.log('n8')\n", "chmod +x FILE; FILE"
    yield "named to ruby", "argument", "puts 'r1'\n", "ruby --disable-gems FILE"
    yield "ruby -e", "command", "puts 'r2'", "ruby --disable-gems -e \"puts 'r2'\""
    yield "a pipe to ruby", "stdin", "puts 'r3'\n", "cat FILE | ruby --disable-gems"
    yield "required by ruby", "module", "puts 'r4'\n", \
        "cp FILE /tmp/r4.rb; ruby --disable-gems -e \"require '/tmp/r4'\""
    yield "ruby -r", "module", "puts 'r5'\n", "cp FILE /tmp/r5.rb; ruby --disable-gems -r/tmp/r5.rb -e 0"
    yield "its #! line says ruby", "script", "#!/usr/bin/ruby --disable-gems\nputs 'r6'\n", "chmod +x FILE; FILE"


class Inv11EveryWayToRunCode(Recorded):  # 40 s
    """The record is not the agent's: the bytes of what ran are in it, however it ran, and if it is gone."""

    def test_inv11_every_way_is_caught_byte_for_byte(self):
        self.manifest(MANIFEST)
        output = self.run_all(list(ways()), more="echo digests:; cd /usr/bin\n"
                              "sha256sum bash dash cat python3.11 perl mawk make rm mkfifo\n")
        self.each_is_caught(ways())
        codes = self.of("code")
        for number, (name, how) in enumerate([w[:2] for w in ways() if w[2] is None], 4):
            with self.subTest(name):
                tail = f"d{number}".encode()
                self.assertTrue([c for c in codes if c["how"] == how and c.get("digest") and
                                 (self.bytes_of(c["digest"]) or b"").endswith(tail)], (how, tail))
        with self.subTest("who wrote it"):
            [code] = [c for c in codes if c["path"] == "/tmp/d5"]
            self.assertNotEqual(code["writer"], 0)
        with self.subTest("what is the image's has its digest, too"):
            executions = self.of("process.exec")
            self.assertEqual([e["file"] for e in executions if "digest" not in e], [])
            told = {e["file"]: e["digest"] for e in executions if e["image"]}
            inside = dict(reversed(line.split()) for line in output.split("digests:\n")[1].splitlines())
            self.assertEqual(len(inside), 9)
            self.assertEqual({name: told[f"/usr/bin/{name}"] for name in inside}, inside)
            [own] = [e for e in executions if e["file"] == "/tmp/d5"]
            self.assertFalse(own["image"])
            self.assertNotEqual(own["digest"], told["/usr/bin/true"] if "/usr/bin/true" in told else "")


class Inv11EveryOtherLanguage(Recorded):  # 60 s
    """The same for interpreters that agents bring or install."""

    def setUp(self):
        super().setUp()
        self.env["FIRESTOP_IMAGES"] = str(IMAGES)
        self.manifest("image: egress-clients\nlimits: {memory: 768MiB, disk: 512MiB}\nrating: 8m\n"
                      "workspace: {entries: {repo: {type: git_repo, repo: '.'}}}\n")

    def test_inv11_node_and_ruby(self):
        found = list(other_languages())
        self.run_all(found)
        self.each_is_caught(found)

    @unittest.skipUnless(shutil.which("javac"), "needs javac")
    def test_inv11_java(self):
        (self.work / "Hello.java").write_text(
            "public class Hello { public static void main(String[] a) { System.out.println(\"hello\"); } }\n")
        subprocess.run(["javac", "--release", "17", "Hello.java"], cwd=self.work, check=True)
        compiled = (self.work / "Hello.class").read_bytes()
        with zipfile.ZipFile(self.work / "hello.jar", "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "Main-Class: Hello\n")
            jar.writestr("Hello.class", compiled)
        packed = (self.work / "hello.jar").read_bytes()
        self.run_all([("named to java", "module", compiled, "java -Xint -cp /workspace/repo Hello"),
                      ("java -jar", "argument", packed, "java -Xint -jar /workspace/repo/hello.jar")],
                     files={"Hello.class": compiled, "hello.jar": packed})
        self.assertEqual({(code["path"], code["how"]) for code in self.has(compiled) + self.has(packed)},
                         {("/workspace/repo/Hello.class", "module"), ("/workspace/repo/hello.jar", "argument")})
        self.complete()


class Inv11AtATerminal(Recorded):  # 15 s
    """What a person, or a harness, types at a prompt is a program as well."""

    def test_inv11_what_is_typed(self):
        self.manifest("")
        leader, follower = pty.openpty()
        process = self.start("run", "--tty", "--", "sh", stdin=follower, stdout=follower, stderr=subprocess.DEVNULL,
                             start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(follower)
        seen = b""

        def until(text):
            nonlocal seen
            deadline = time.monotonic() + 120
            while text not in seen and time.monotonic() < deadline:
                try:
                    seen += os.read(leader, 4096)
                except OSError:
                    break
            self.assertIn(text, seen)

        typed = {"dash": "", "bash": "", "python3.11": ""}

        def say(shell, text, answer):
            typed[shell] += text
            os.write(leader, text.encode())
            until(answer)

        until(b"$ ")
        say("dash", "echo $((40 + 2))one\n", b"42one")
        say("dash", "bash --norc\n", b"bash-")
        say("bash", "echo $((40 + 3))two\n", b"43two")
        say("bash", "python3 -q\n", b">>> ")
        say("python3.11", "print(str(44) + 'three')\n", b"44three")
        say("python3.11", "exit()\n", b"bash-")
        say("bash", "exit\n", b"exit")
        say("dash", "exit 7\n", b"")
        self.assertEqual(process.wait(timeout=120), 7)
        os.close(leader)
        self.read_record()
        got = dict.fromkeys(typed, "")
        for code in self.of("code"):
            if code["how"] == "typed":
                got[code["interpreter"].rsplit("/", 1)[-1]] += self.bytes_of(code["digest"]).decode()
        self.assertEqual({shell: text.replace("\r", "\n") for shell, text in got.items()}, typed)
        self.complete()


class Inv11TenThousandScripts(Recorded):  # 40 s
    """Each another, as fast as the machine goes: all are in the record, or what is missing is counted."""

    limit = 1800

    def test_inv11_each_is_kept_or_counted(self):
        count = int(os.environ.get("FIRESTOP_SCRIPTS", "1000"))
        self.manifest("limits: {memory: 384MiB, disk: 512MiB}\nrating: 30m\n")
        # Most are sourced, since a process costs 30 ms under emulation; every twentieth is a process of its own.
        out = self.run_in(f"""
            begun=$(date +%s)
            i=0
            while [ $i -lt {count} ]; do
              i=$((i + 1))
              echo "x=$i # script" > /tmp/s$((i % 7))
              if [ $((i % 20)) = 0 ]; then sh /tmp/s$((i % 7)); else . /tmp/s$((i % 7)); fi
            done
            echo took $(($(date +%s) - begun))""")
        self.read_record()
        kept = sum(bool(self.bytes_of(sha(f"x={i} # script\n"))) for i in range(1, count + 1))
        told = {code["digest"] for code in self.of("code") if code.get("digest")}
        self.assertEqual(len({sha(f"x={i} # script\n") for i in range(1, count + 1)} & told), kept)
        lost = self.end()["lost"]
        print(f"{count} scripts, {out.strip()} s inside: {kept} kept, {lost} lost", file=sys.stderr)
        self.assertGreaterEqual(kept + lost, count)
        self.assertEqual(self.end()["complete"], lost == 0)


# Does with its bytes what no collector can see as code.
OWN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char text[200] = {0};
  if (!strcmp(argv[1], "read")) {  // a language of its own
    if (read(0, text, sizeof text) > 0) puts("own");
  } else if (!strcmp(argv[1], "readv")) {
    struct iovec one = {text, sizeof text};
    if (readv(0, &one, 1) > 0) puts("own");
  } else if (!strcmp(argv[1], "recv")) {
    if (recv(0, text, sizeof text, 0) > 0) puts("own");
  } else if (!strcmp(argv[1], "open")) {
    if (read(open(argv[2], O_RDONLY), text, sizeof text) > 0) puts("own");
  } else if (!strcmp(argv[1], "memory")) {  // mov eax, 42; ret
    unsigned char code[] = {0xb8 ^ 85, 42 ^ 85, 85, 85, 85, 0xc3 ^ 85};
    for (int i = 0; i < 6; ++i) code[i] ^= 85;
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code);
    if (((int (*)(void))at)() == 42) puts("own");
  } else if (!strcmp(argv[1], "unlink")) {
    int folder = open(argv[2], O_RDONLY);
    if (!unlinkat(folder, argv[3], 0)) puts("own");
    _exit(0);
  }
  return 0;
}
"""


class Inv11WhatCannotBeHad(Recorded):  # 40 s
    """Each entry of that list in docs/evidence.md: what the record has, and what it does not have."""

    def test_inv11_the_record_says_what_it_does_not_have(self):
        self.manifest(MANIFEST.replace("memory: 384MiB", "memory: 512MiB"))
        long = "".join(f"# {number:062d}\n" for number in range(17000)) + "echo last\n"
        files = {"own.c": OWN, "long": long, "notes.txt": "notes, and no code\n", "sub/given": "given\n"}
        output = self.run_all([
            # Data that is code to the program that reads it.
            ("", "", None, "gcc -O -o /tmp/own /workspace/repo/own.c"),
            ("", "", None, "test $(echo 'do of-its-own' | /tmp/own read) = own"),
            ("", "", None, "printf 'opened of-its-own' > /tmp/data.py; test $(/tmp/own open /tmp/data.py) = own"),
            ("", "", None, "cp /usr/bin/dash /tmp/harmless; test $(echo 'echo copied' | /tmp/harmless) = copied"),
            ("", "", None, "printf 'int main(void) { return 7; }' | gcc -xc -o /tmp/piped -; /tmp/piped; test $? = 7"),
            ("", "", None, "test $(echo '[1]' | jq '.[0] + 41') = 42"),
            # What is changed under an interpreter by somebody who does not close it.
            ("", "", None, "exec 9>> /tmp/held; printf 'echo one\\necho echo two >&9\\n' > /tmp/held; sh /tmp/held | grep -q two"),
            # Code that is made in memory.
            ("", "", None, "test $(/tmp/own memory) = own"),
            # More than 1 MiB from a pipe.
            ("", "", None, "test $(cat /workspace/repo/long | sh) = last"),
            # Programs that come by readv or recv.
            ("", "", None, "cp /tmp/own /tmp/lua; test $(echo 'by readv' | /tmp/lua readv) = own"),
            ("", "", None, "python3 -c \"import socket, subprocess; a, b = socket.socketpair(); a.send(b'by recv'); "
                           "subprocess.run(['/tmp/lua', 'recv'], stdin=b, check=True)\""),
            # Names relative to a directory's descriptor.
            ("", "", None, "mkdir /workspace/gone; cd /workspace/gone; for i in 1 2 3 4 5 6 7 8; do "
                           "touch $i; /tmp/own unlink /workspace/gone $i > /dev/null; done; cd - > /dev/null"),
            # At the end: files that were only moved along, and what is more than 256 MiB.
            ("", "", None, "cd /workspace; echo written > written; mkdir folder; echo new > folder/new; "
                           "ln written folder/second; mv repo/sub repo/elsewhere; mv folder moved; cd - > /dev/null"),
            ("", "", None, "printf x > /workspace/large; truncate -s 300M /workspace/large"),
            # What shells open is code or data: nobody outside can tell.
            ("", "", None, "while read -r line; do :; done < /workspace/repo/notes.txt"),
            # 8 MiB of a file.
            ("", "", None, "cp /usr/bin/true /tmp/big; head -c 9000000 /dev/zero >> /tmp/big; /tmp/big"),
        ], files=files, more="echo digests:; sha256sum /tmp/own /tmp/piped /tmp/big\n")
        inside = {name: digest for digest, name in map(str.split, output.split("digests:\n")[1].splitlines())}
        codes = self.of("code")

        def programs(path):
            return [code for code in codes if code["path"] == path and code["how"] == "program"]

        with self.subTest("the program's own bytes are kept, what it makes of its input is not"):
            self.assertEqual({code["digest"] for code in programs("/tmp/own")}, {inside["/tmp/own"]})
            self.assertTrue(self.bytes_of(inside["/tmp/own"]))
            self.assertEqual(self.has("do of-its-own\n"), [])
            [opened] = self.has("opened of-its-own")
            self.assertEqual((opened["how"], opened["path"]), ("module", "/tmp/data.py"))
        with self.subTest("nor what a copy reads"):
            [copied] = programs("/tmp/harmless")
            dashes = {e["digest"] for e in self.of("process.exec") if e["file"] == "/usr/bin/dash"}
            self.assertEqual({copied["digest"]}, dashes)
            self.assertEqual(self.has("echo copied\n"), [])
        with self.subTest("nor what the image's programs compute from data; but what comes of it, when it runs"):
            self.assertEqual(self.has("int main(void) { return 7; }"), [])
            self.assertEqual([code["digest"] for code in programs("/tmp/piped")], [inside["/tmp/piped"]])
            self.assertEqual(self.has(".[0] + 41"), [])
            self.assertIn([e for e in self.of("process.exec") if e["file"] == "/usr/bin/jq"][0]["argv"][1:],
                          [[".[0] + 41"]])
        with self.subTest("changed by somebody who holds it open: as it was opened, and that it was written"):
            opened = "echo one\necho echo two >&9\n"
            self.assertEqual([code["path"] for code in self.has(opened)], ["/tmp/held"])
            self.assertEqual(self.has(opened + "echo two\n"), [])
            self.assertIn("/tmp/held", [change["path"] for change in self.of("file.write")])
        with self.subTest("code made in memory: the program that made it"):
            [made] = [e for e in self.of("process.exec") if e["argv"] == ["/tmp/own", "memory"]]
            self.assertEqual(made["digest"], inside["/tmp/own"])
            self.assertEqual([c["how"] for c in codes if c["pid"] == made["pid"]], ["program"])
            machine = bytes([0xb8, 42, 0, 0, 0, 0xc3])
            self.assertNotIn(machine, self.bytes_of(inside["/tmp/own"]))
        with self.subTest("of a pipe the first 1 MiB, and a note"):
            [reader] = {c["pid"] for c in codes if c["how"] == "stdin"}
            parts = [c for c in codes if c["pid"] == reader]
            self.assertEqual(b"".join(self.bytes_of(c["digest"]) for c in parts), long.encode()[:1 << 20])
            self.assertEqual([c["note"] for c in parts if c["note"]], [f"cut after {1 << 20} bytes"])
            self.assertEqual(parts[-1]["note"], f"cut after {1 << 20} bytes")
        with self.subTest("readv and recv: the program"):
            self.assertEqual({c["digest"] for c in programs("/tmp/lua")}, {inside["/tmp/own"]})
            self.assertEqual(len(programs("/tmp/lua")), 2)
            self.assertEqual(self.has("by readv\n") + self.has("by recv"), [])
        with self.subTest("removed relative to a descriptor: each, by its name at least"):
            gone = [change["path"] for change in self.of("file.delete")]
            for number in range(1, 9):
                self.assertEqual(len([p for p in gone if p in (f"/workspace/gone/{number}", f"?/{number}")]), 1, gone)
        finals = {final["path"]: final for final in self.of("file.final")}
        with self.subTest("files that moved along with their directory: its rename, and no final digest"):
            self.assertIn(("/workspace/folder", "/workspace/moved"),
                          [(c["path"], c["to"]) for c in self.of("file.rename")])
            self.assertEqual(finals["/workspace/written"]["digest"], sha("written\n"))
            self.assertEqual(finals["/workspace/moved/new"]["digest"], sha("new\n"))
            self.assertEqual([path for path in finals if path.endswith("/given")], [])
        with self.subTest("a second name: that it was given, and what lies there"):
            self.assertEqual([(c["path"], c["to"]) for c in self.of("file.link")],
                             [("/workspace/written", "/workspace/folder/second")])
            self.assertEqual(finals["/workspace/moved/second"]["digest"], sha("written\n"))
        with self.subTest("behind 256 MiB: the size and a note"):
            self.assertEqual(finals["/workspace/large"]["size"], 300 << 20)
            self.assertEqual(finals["/workspace/large"]["digest"], "")
            self.assertIn("not read", finals["/workspace/large"]["note"])
        with self.subTest("data that a shell opens is taken for code"):
            self.assertEqual([code["how"] for code in self.has("notes, and no code\n")], ["module"])
        with self.subTest("of a file 8 MiB, with its size and a note"):
            [big] = programs("/tmp/big")
            self.assertEqual((big["kept"], big["note"]), (8 << 20, f"cut after {8 << 20} bytes"))
            self.assertGreater(big["size"], 9000000)
            self.assertNotEqual(big["digest"], inside["/tmp/big"])
            self.assertEqual(len(self.bytes_of(big["digest"])), 8 << 20)
        self.complete()

    def test_inv11_a_full_store_is_said_of_each_that_is_cut(self):
        self.manifest("")
        self.env["FIRESTOP_TEST_RECORD_CONTENTS"] = "100"
        self.run_in("sh -c 'echo one; :'; sh -c ': " + "x" * 200 + "'; sh -c 'echo two; :'")
        self.read_record()
        notes = [(code["kept"] < code["size"], "the record keeps no more of this run" in code["note"])
                 for code in self.of("code")]
        self.assertIn((True, True), notes)
        self.assertEqual([cut for cut, said in notes if cut != said], [])
        self.assertLessEqual(sum(p.stat().st_size for p in (self.record / "content").glob("*/*")), 100)
        self.complete()  # all was seen and told; what was not kept is said


if __name__ == "__main__":
    main()
