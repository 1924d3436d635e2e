#!/usr/bin/env python3
"""Invariant 11, from the container: programs and scripts that are over in a moment, before somebody who looks now and
then could look at them. Most of what the kernel tells the collectors waits for their next look; these must not."""
import hashlib
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

COUNT = 40  # of each kind

# A program that ends at once, another one for each number.
PROGRAM = r'''
def program(number):
    code = bytes.fromhex("31ffb83c0000000f05") + b"moment %d" % number
    size = 120 + len(code)
    return (struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0) +
            struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 4096) + code)
'''
WORK = r'''
import os, struct, subprocess, sys
COUNT = int(sys.argv[1])

# What the image has that may be executed and cannot: the collectors are asked about it, and it does not run.
odd = next((name for folder, _, names in os.walk("/usr/lib") for name in (os.path.join(folder, n) for n in names)
            if os.access(name, os.X_OK) and not os.path.islink(name) and
            not open(name, "rb").read(4).startswith((b"#!", b"\x7fELF"))), None)

def in_memory(content):
    memory = os.memfd_create("m", 0)
    os.write(memory, content)
    return memory

def child(what):
    pid = os.fork()
    if pid == 0:
        try: what()
        finally: os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def runs(number):
    memory = in_memory(program(number))
    if odd and number % 3 == 0:
        try: os.execv(odd, ["odd"])
        except OSError: pass
    os.execve(memory, ["m"], {})

def reads(number):
    os.execv("/bin/dash", ["dash", f"/proc/self/fd/{in_memory(b'exit 0 # %d' % number)}"])

def changes(number):  # from the image to what is not, without a fork between
    memory = in_memory(b'exit 0 # changed %d' % number)
    os.execv("/usr/bin/env", ["env", "dash", f"/proc/self/fd/{memory}"])

def removes(number):
    folder = os.open("/tmp/d", os.O_RDONLY)
    os.unlink(str(number), dir_fd=folder)
    os._exit(0)

os.mkdir("/tmp/d")
for what in (runs, reads, changes, removes):
    for number in range(COUNT):
        if what is removes: open(f"/tmp/d/{number}", "w").close()
        assert child(lambda: what(number)) == 0, (what, number)
print("odd" if odd else "none")
'''

scope = {"struct": struct}
exec(PROGRAM, scope)  # pylint: disable=exec-used  # the same here and inside


def sha(data):
    return hashlib.sha256(data).hexdigest()


class Observed(SandboxTest):
    def python(self, processors, script):
        """Runs it with python3; what it printed."""
        self.manifest(f"limits: {{memory: 512MiB, cpus: {processors}}}\nrating: 8m\n")
        out = self.run_in(f"cat > work.py <<'END'\n{script}\nEND\npython3 work.py {COUNT}")
        [folder] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        return out

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def code(self, data):
        return [code for code in self.of("code") if code.get("digest") == sha(data)]

    def complete(self):
        self.assertEqual(self.of("lost"), [])
        self.assertTrue(self.of("record.end")[0]["complete"])


class Inv11OverInAMoment(Observed):  # 50 s
    def each_is_kept(self, processors):
        self.python(processors, PROGRAM + WORK)
        codes = {(code["how"], code.get("digest")) for code in self.of("code")}
        wanted = [(what, number, key) for number in range(COUNT)
                  for what, key in (("program", ("program", sha(scope["program"](number)))),
                                    ("script", ("argument", sha(b"exit 0 # %d" % number))),
                                    ("changed", ("argument", sha(b"exit 0 # changed %d" % number))))]
        self.assertEqual([(what, number) for what, number, key in wanted if key not in codes], [])
        removed = [change["path"] for change in self.of("file.delete")]
        self.assertEqual([n for n in range(COUNT) if f"/tmp/d/{n}" not in removed and f"?/{n}" not in removed], [])
        ran = [run for run in self.of("process.exec") if run["file"].endswith("/env")]
        self.assertEqual([run["image"] for run in ran], [True] * COUNT)
        self.complete()

    def test_inv11_on_one_processor(self):
        self.each_is_kept(1)

    def test_inv11_on_two_processors(self):
        self.each_is_kept(2)


# Scripts that are not what they were when they were opened first.
CHANGING = r"""
import mmap, os, subprocess, time
for folder in ("/dev/shm", "/tmp", "/workspace"):
    path = folder + "/mapped.sh"
    with open(path, "w+b") as file:
        file.write(b"echo aaaa %s\n" % folder.encode()); file.flush()
        memory = mmap.mmap(file.fileno(), 0)
    memory[5:9] = b"bbbb"  # the first store is one that the file system may see
    time.sleep(0.2)
    for text in (b"cccc", b"dddd", b"eeee"):
        memory[5:9] = text
        subprocess.run(["sh", path], check=True)
    path = folder + "/growing.sh"
    with open(path, "w") as file: file.write("echo one\necho 'echo two " + folder + "' >> $0\n")
    subprocess.run(["sh", path], check=True)
"""


class Inv11ChangedMeanwhile(Observed):  # 20 s
    def test_inv11_a_script_that_changes_is_kept_as_each_that_it_was(self):
        out = self.python(1, CHANGING)
        for folder in ("/dev/shm", "/tmp", "/workspace"):
            for text in ("cccc", "dddd", "eeee"):
                self.assertIn(f"{text} {folder}\n", out)
                self.assertTrue(self.code(f"echo {text} {folder}\n".encode()), (folder, text))
            self.assertIn(f"two {folder}\n", out)
            grown = f"echo one\necho 'echo two {folder}' >> $0\necho two {folder}\n".encode()
            [code] = self.code(grown)
            self.assertEqual((code["path"], code["how"], code["note"]),
                             (folder + "/growing.sh", "argument", "written after it was opened"))
        self.complete()


# Files without a telling name, given by ways that lead through /proc.
BY_LINKS = r"""
import os, subprocess
def run(number, *words, **more):
    subprocess.run(["python3", *words], check=True, **more)
def text(number): return b"pass # by link %d\n" % number
def file(number):
    with open(f"/tmp/data{number}", "wb") as out: out.write(text(number))
    return os.open(f"/tmp/data{number}", os.O_RDONLY)
def memory(number):
    fd = os.memfd_create("d")
    os.write(fd, text(number))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
for number, made in ((0, file), (10, memory)):
    fd = made(number); run(number, "/dev/stdin", stdin=fd)
    fd = made(number + 1); run(number + 1, f"/proc/self/fd/{fd}", pass_fds=[fd])
    fd = made(number + 2); run(number + 2, f"/proc/thread-self/fd/{fd}", pass_fds=[fd])
    fd = made(number + 3); run(number + 3, f"/dev/fd/{fd}", pass_fds=[fd])
    fd = made(number + 4); os.symlink(f"/proc/self/fd/{fd}", f"/tmp/link{number}"); run(number + 4, f"/tmp/link{number}", pass_fds=[fd])
    fd = made(number + 5); run(number + 5, f"/proc/{os.getpid()}/fd/{fd}")
    fd = made(number + 6); run(number + 6, "-", stdin=fd)
"""


class Inv11ByLinks(Observed):  # 12 s
    def test_inv11_links_through_proc_hide_no_script(self):
        self.python(1, BY_LINKS)
        missing = [n for n in [*range(7), *range(10, 17)] if not self.code(b"pass # by link %d\n" % n)]
        self.assertEqual(missing, [])
        self.complete()


# memfd_create(2) is what it was to those who call it.
MEMORY = r"""
import ctypes, errno, fcntl, os, threading
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, flags):
    fd = libc.memfd_create(name, flags)
    return errno.errorcode[ctypes.get_errno()] if fd < 0 else os.close(fd)
fd = os.memfd_create("name of it", os.MFD_ALLOW_SEALING)
what = os.fstat(fd)
print(what.st_uid == os.getuid(), what.st_gid == os.getgid(), oct(what.st_mode), os.readlink(f"/proc/self/fd/{fd}"))
print(fcntl.fcntl(fd, fcntl.F_GETFD), fcntl.fcntl(os.memfd_create("x", os.MFD_CLOEXEC), fcntl.F_GETFD), os.get_inheritable(fd))
os.write(fd, b"some"); os.fchmod(fd, 0o600); os.ftruncate(fd, 2); fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
print(os.pread(fd, 9, 0), fcntl.fcntl(fd, fcntl.F_GET_SEALS))
print(refused(b"x" * 249, 0), refused(b"x" * 250, 0), refused(b"x", 0x80000000), refused(ctypes.c_char_p(None), 0), refused(b"", 0))

# As many at a time as there may be; those that are closed make room.
def hold(limit):
    held = []
    try:
        while len(held) < limit: held.append(os.memfd_create("many"))
    except OSError as error: return held, errno.errorcode[error.errno]
    return held, None
made = 0
for _ in range(12):
    held, _ = hold(500)
    made += len(held)
    for fd in held: os.close(fd)
print(made)
readers = []
for _ in range(12):
    reader, writer = os.pipe()
    if os.fork() == 0:
        held, why = hold(500)
        os.write(writer, b"%d %s\n" % (len(held), str(why).encode()))
        threading.Event().wait()
    readers.append(os.read(reader, 100).split())
print(sum(int(count) for count, _ in readers), {why for _, why in readers} == {b"None", b"ENFILE"})
"""


class MemfdTest(Observed):  # 20 s
    def test_memfds_are_made_for_the_container_and_are_its_own(self):
        lines = self.python(1, MEMORY).splitlines()
        self.assertEqual(lines[0], "True True 0o100777 /memfd:name of it (deleted)")
        self.assertEqual(lines[1], "0 1 True")
        self.assertEqual(lines[2], "b'so' 8")
        self.assertEqual(lines[3], "None EINVAL EINVAL EFAULT None")
        self.assertEqual(lines[4], "6000")
        held, both = lines[5].split()
        self.assertEqual(both, "True")
        self.assertGreater(int(held), 3900)
        self.assertLessEqual(int(held), 4096)
        self.complete()


if __name__ == "__main__":
    main()
