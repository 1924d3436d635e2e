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

COUNT = 60  # of each kind

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


class Inv11OverInAMoment(SandboxTest):  # 40 s
    def haste(self, processors):
        self.manifest(f"limits: {{memory: 512MiB, cpus: {processors}}}\nrating: 8m\n")
        self.run_in(f"cat > work.py <<'END'\n{PROGRAM}{WORK}\nEND\npython3 work.py {COUNT}")
        [folder] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        def of(kind):
            return [event["data"] for event in events if event["kind"] == kind]
        codes = {(code["how"], code.get("digest")) for code in of("code")}
        kept = [{"programs": ("program", sha(scope["program"](number))),
                 "scripts": ("argument", sha(b"exit 0 # %d" % number)),
                 "changed": ("argument", sha(b"exit 0 # changed %d" % number))} for number in range(COUNT)]
        missing = [f"{kind} {number}" for number, three in enumerate(kept) for kind, key in three.items() if key not in codes]
        removed = [change["path"] for change in of("file.delete")]
        missing += [f"removal {number}" for number in range(COUNT) if f"/tmp/d/{number}" not in removed and f"?/{number}" not in removed]
        ran = [run for run in of("process.exec") if run["file"].endswith("/env")]
        self.assertEqual(len(ran), COUNT)
        self.assertTrue(all(run["image"] for run in ran))
        lost = sum(one["count"] for one in of("lost"))
        [end] = of("record.end")
        self.assertEqual(end["complete"], lost == 0)
        return missing, lost

    def test_inv11_on_one_processor_all_are_kept(self):
        self.assertEqual(self.haste(1), ([], 0))

    def test_inv11_on_two_processors_they_are_kept_or_counted(self):
        missing, lost = self.haste(2)
        self.assertLessEqual(len(missing), lost, missing)


if __name__ == "__main__":
    main()
