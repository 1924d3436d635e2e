"""Every cap against a guest that tries to exhaust it, while a second sandbox beside it does its work.

Prints a table when all are through: what the guest did, what ended it, what the neighbour and the host felt.
docs/caps.md has it without the measured numbers. Nothing here goes by absolute time: the neighbour is compared with
itself, moments before, with nothing beside it.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import FIRESTOP, SandboxTest, main  # noqa: E402

MIB = 1 << 20
# The share of its undisturbed work that a neighbour must get done. Two cores, a guest that may use one and QEMU's own
# threads: half is usual. Less than this is a neighbour that stands still.
SHARE = 1 / 8
FLOOR_SECONDS = 1.5
# What QEMU takes beside the guest's memory, and all of firestop, in bytes.
QEMU_OVERHEAD = 320 * MIB
FIRESTOP_MOST = 128 * MIB

NEIGHBOUR = """
import hashlib, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
data = b"x" * 65536
while True:
    with open("/tmp/work", "wb") as file: file.write(data)
    if os.fork() == 0: os._exit(0)
    os.wait()
    print(hashlib.sha256(open("/tmp/work", "rb").read()).hexdigest()[:8], flush=True)
"""

NEIGHBOURS_MANIFEST = """
firestop: 1
name: neighbour
image: agent-base
capabilities: [shell, filesystem]
limits: {memory: 256MiB, disk: 64MiB, cpus: 1}
rating: 15m
"""

# In every hog: say(...) tells the test what happened, as JSON lines.
SAY = """
import ctypes, errno, json, os, signal, socket, subprocess, sys, time
def say(what, **more): print(json.dumps({"what": what, **more}), flush=True)
def fails(step):  # the error's name with which `step` fails in the end, and how often it went well
    count = 0
    while True:
        try: step(count)
        except OSError as error: return {"error": errno.errorcode[error.errno], "count": count}
        count += 1
"""

# As the container user: what has no end and fails in its time.
FILLERS = SAY + """
kept = []
say("open files", **fails(lambda n: kept.append(os.open("/dev/null", os.O_RDONLY))))
for fd in kept: os.close(fd)
def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    data = os.urandom(1 << 20)
    got = fails(lambda n: [os.write(fd, data[:size]) for size in (len(data) - 4096, 4096)])
    got["bytes"] = os.fstat(fd).st_size
    os.close(fd)
    return got
say("disk", **fill("/tmp/fill"))
say("disk, elsewhere", **fails(lambda n: os.close(os.open("/workspace/x%d" % n, os.O_CREAT | os.O_WRONLY)) or
                               open("/workspace/x%d" % n, "wb", 0).write(b"x" * 65536)))
os.unlink("/tmp/fill")
subprocess.run("rm -f /workspace/x*", shell=True)
# Links that lead nowhere: an inode each, and nothing that the record has to be told one by one.
say("inodes", **fails(lambda n: os.symlink("x", "/workspace/i%d" % n)))
for n in range(50): os.unlink("/workspace/i%d" % n)
say("tmpfs", **fill("/dev/shm/fill"))
os.unlink("/dev/shm/fill")
say("tmpfs inodes", **fails(lambda n: os.symlink("x", "/dev/shm/i%d" % n)))
for place in ("/run", "/dev", "/sys/fs/cgroup", "/proc"):
    say("no place", where=place, **fails(lambda n: os.close(os.open(place + "/x%d" % n, os.O_CREAT | os.O_WRONLY))))
with open("/workspace/out/after", "w") as file: file.write("still works")
"""

# Processes without end, each of which also computes: those that cannot be made leave their parents trying.
BOMB = SAY + """
def bomb():
    refused = 0
    while time.monotonic() < end:
        try:
            if os.fork() == 0: refused = 0
        except OSError as error:
            assert error.errno == errno.EAGAIN, error
            refused += 1
            for _ in range(10000): pass
    return refused
parent, end = os.getpid(), time.monotonic() + 6
say("began")
refused = bomb()
if os.getpid() == parent: say("refused", times=refused)
else:
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    while True: time.sleep(1)
"""

# All that is left when a process is not seen to hold it: files in memory, shared memory, buffers of sockets.
MEMORY = SAY + """
def hold():
    data, kept = b"x" * (1 << 20), []
    libc = ctypes.CDLL(None)
    while True:
        fd = os.memfd_create("hog"); os.write(fd, data); kept.append(fd)
        if len(kept) % 4 == 0:
            segment = libc.shmget(0, 1 << 20, 0o1600)
            libc.shmat.restype = ctypes.c_void_p
            at = libc.shmat(segment, None, 0)
            if at not in (None, ctypes.c_void_p(-1).value): ctypes.memset(at, 1, 1 << 20)
        kept.append(bytearray(1 << 20))
say("began")
hold()
"""

# As root in the machine: the processor, the disk, the console, the clock, and no signal heard, past the rating.
ROOT = SAY + """
subprocess.run("mount -t devtmpfs d /mnt", shell=True, check=True)
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
open("/sys/fs/cgroup/cgroup.procs", "w").write("0")  # out of the guest's own caps
say("began")
if os.fork() == 0:
    console = os.open("/mnt/ttyS0", os.O_WRONLY)
    while True: os.write(console, b"attack " * 500)
for _ in range(2):
    if os.fork() == 0:
        while True: pass
if os.fork() == 0:
    while True:
        for device in ("vda", "vdb"):
            subprocess.run("dd if=/mnt/%s of=/dev/null bs=256k count=64 iflag=direct 2>/dev/null || "
                           "dd if=/mnt/%s of=/dev/null bs=256k count=64 2>/dev/null" % (device, device), shell=True)
while True:
    for when in ("2001-01-01", "2040-01-01"): subprocess.run(["date", "-s", when], stdout=subprocess.DEVNULL)
    time.sleep(0.2)
"""


def status_of(pid, field):
    """A field of /proc/PID/status: a number, or bytes where the kernel says kB."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                words = line.split()
                return int(words[1]) * (1024 if words[-1] == "kB" else 1)
    except (OSError, IndexError):
        pass
    return 0


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_moved(pid):
    try:
        lines = pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))


class Neighbour:
    """A sandbox that works all the time and says so after each piece of work."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="firestop-neighbour-"))
        (self.folder / "firestop.yaml").write_text(NEIGHBOURS_MANIFEST)
        self.done = []
        self.process = subprocess.Popen(
            [FIRESTOP, "run", "--", "python3", "-c", NEIGHBOUR], cwd=self.folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, XDG_STATE_HOME=str(self.folder / "state")))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for _ in self.process.stdout:
            self.done.append(time.monotonic())

    def rate(self, begin, end):
        return sum(begin < at <= end for at in self.done) / (end - begin)

    def stop(self):
        self.process.stdin.close()
        status = self.process.wait(60)
        self.reader.join(10)
        self.process.stdout.close()
        errors = self.process.stderr.read()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return status, errors


class Watched:
    """One run, and the most that it took of the host."""

    def __init__(self, test, command, limit):
        self.memory = self.threads = self.disk = self.own = 0
        self.cpu, self.moved = [], []  # (when, how much) of QEMU
        self.begun = time.monotonic()
        # Into files: what a reader of ours would hold up or keep is not what is measured.
        out, err = (open(test.folder / name, "w+b") for name in ("out", "err"))
        process = test.start("run", "--json", "--", *command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        qemu = None
        while process.poll() is None:
            if time.monotonic() - self.begun > limit:
                test.fail(f"{command[0]} has not ended")
            if qemu is None or not pathlib.Path(f"/proc/{qemu}").exists():  # the first ones only tell their version
                qemu = next(iter(test.children_of(process.pid, "qemu")), None)
                if qemu:
                    self.cpu, self.moved = [], []
            self._look(process.pid, qemu, test.state)
            time.sleep(0.05)
        self.ended = time.monotonic()
        self.status = process.returncode
        for stream in (out, err):
            stream.seek(0)
        self.out_size = os.fstat(out.fileno()).st_size
        self.out = out.read(4 * MIB)
        self.end = json.loads(err.read().splitlines()[-1])
        out.close()
        err.close()

    def _look(self, pid, qemu, state):
        self.own = max(self.own, status_of(pid, "VmHWM"))
        try:  # what is there at the moment; it comes and goes
            self.disk = max(self.disk, 512 * sum(path.lstat().st_blocks for path in state.rglob("*")))
        except OSError:
            pass
        if qemu is None or not status_of(qemu, "Threads"):
            return
        self.memory = max(self.memory, status_of(qemu, "VmHWM"))
        self.threads = max(self.threads, status_of(qemu, "Threads"))
        for into, value in ((self.cpu, cpu_seconds(qemu)), (self.moved, bytes_moved(qemu))):
            if value is not None:
                into.append((time.monotonic(), value))

    def said(self):
        return [json.loads(line) for line in self.out.splitlines() if line.startswith(b"{")]

    def code(self):
        return (self.end.get("error") or {}).get("code", "")

    @staticmethod
    def rate(samples, skip):
        """A second, over all but the first `skip` seconds and the last."""
        samples = [s for s in samples if samples[0][0] + skip <= s[0] <= samples[-1][0] - 1]
        return (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0])


class Inv05Caps(SandboxTest):  # 120 s
    """A guest that exhausts a cap harms only itself."""

    rows = []

    @classmethod
    def setUpClass(cls):
        cls.neighbour = Neighbour()
        limit = time.monotonic() + 120
        while not cls.neighbour.done and cls.neighbour.process.poll() is None and time.monotonic() < limit:
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        status, errors = cls.neighbour.stop()
        heads = ("cap", "what the guest did", "what ended it", "neighbour", "host")
        widths = [max(len(row[i]) for row in [heads, *cls.rows]) for i in range(len(heads))]
        print()
        for row in (heads, *cls.rows):
            print("  " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if status != 0:
            raise AssertionError(f"the neighbour ended with {status}: {errors[-2000:]!r}")

    def setUp(self):
        super().setUp()
        self.assertTrue(self.neighbour.done, "the neighbour never worked")
        self.share = 0.0

    def attack(self, *command, status, limit=200):
        """Runs the hog; the neighbour must have gone on, and the next run must work."""
        begin = time.monotonic()
        time.sleep(FLOOR_SECONDS)
        floor = self.neighbour.rate(begin, time.monotonic())
        run = Watched(self, command, limit)
        self.assertIn(run.status, status if isinstance(status, tuple) else (status,), (run.end, run.out[-500:]))
        # What is measured is the hog at work, not the start of the next one.
        self.share = self.neighbour.rate(run.begun, run.ended) / floor if floor else 0
        self.assertGreaterEqual(self.share, SHARE, f"the neighbour stood still: {self.share:.2f} of {floor:.1f}/s")
        self.assertLess(run.own, FIRESTOP_MOST)
        self.assertLess(run.memory, 256 * MIB + QEMU_OVERHEAD)
        self.assertLessEqual(run.threads, 129)
        return run

    def next_run_works(self):
        self.env.pop("FIRESTOP_TEST_GUEST_ROOT", None)
        shutil.rmtree(self.work / "firestop-out", ignore_errors=True)
        self.manifest("limits: {memory: 256MiB, disk: 64MiB}\n")
        self.assertEqual(self.run_in("echo fine"), "fine\n")

    def row(self, cap, guest, ended, host):
        self.rows.append((cap, guest, ended, f"{self.share:.0%} of its work", host))

    def test_inv05_fillers_of_disk_inodes_tmpfs_and_descriptors(self):
        self.manifest("""
            rating: 5m
            workspace: {entries: {out: {type: dir, output: true}}}
            limits: {memory: 256MiB, disk: 64MiB, open_files: 64}
            """)
        run = self.attack("python3", "-c", FILLERS, status=0, limit=400)
        said = {s["what"]: s for s in run.said()}
        disk, memory = 64 * MIB, f"QEMU {run.memory / MIB:.0f} MiB"
        host = f"{run.disk / MIB:.0f} MiB of disk, {memory}"
        self.assertLess(run.disk, disk + 64 * MIB)  # with the archive of what came back, and the record of each file
        self.assertEqual((said["disk"]["error"], said["disk, elsewhere"]["error"]), ("ENOSPC", "ENOSPC"))
        self.assertLess(said["disk"]["bytes"], disk)
        self.assertGreater(said["disk"]["bytes"], disk // 2)
        self.row("disk", f"wrote {said['disk']['bytes'] / MIB:.0f} MiB", "ENOSPC", host)
        self.assertEqual(said["inodes"]["error"], "ENOSPC")
        self.row("disk (inodes)", f"made {said['inodes']['count']} links", "ENOSPC", host)
        self.assertEqual((said["open files"]["error"], said["open files"]["count"] < 64), ("EMFILE", True))
        self.row("open_files", f"opened {said['open files']['count']} more", "EMFILE", memory)
        self.assertEqual((said["tmpfs"]["error"], said["tmpfs inodes"]["error"]), ("ENOSPC", "ENOSPC"))
        self.assertLess(said["tmpfs"]["bytes"], 256 * MIB)
        self.row("memory (tmpfs)", f"{said['tmpfs']['bytes'] / MIB:.0f} MiB, {said['tmpfs inodes']['count']} files "
                 "in /dev/shm", "ENOSPC", memory)
        for place in (s for s in run.said() if s["what"] == "no place"):
            self.assertEqual((place["count"], place["error"] in ("EACCES", "EROFS", "EPERM", "ENOENT")), (0, True),
                             place)
        self.assertEqual([p.read_text() for p in self.work.glob("firestop-out/*/out/after")], ["still works"])
        self.next_run_works()

    def test_inv05_a_fork_bomb_on_half_a_processor(self):
        self.manifest("limits: {memory: 256MiB, disk: 64MiB, processes: 64, cpus: 0.5}\n")
        run = self.attack("python3", "-c", BOMB, status=0)
        self.assertEqual([s["what"] for s in run.said()], ["began", "refused"])
        self.assertTrue(any("outlived the command" in note for note in run.end["notes"]), run.end["notes"])
        threads = f"{run.threads} threads of QEMU"
        self.row("processes", "a fork bomb that ignores every signal", "EAGAIN; ended with the command", threads)
        cpu = Watched.rate(run.cpu, 1.5)
        self.assertLess(cpu, 0.5 * 1.4)
        self.row("cpus", "64 processes that compute", "nothing: they get half a processor", f"{cpu:.2f} processors")
        self.next_run_works()

    def test_inv05_memory_that_no_process_is_seen_to_hold(self):
        self.manifest("limits: {memory: 256MiB, disk: 64MiB}\n")
        run = self.attack("python3", "-c", MEMORY, status=244)
        self.assertEqual(run.code(), "cap.memory")
        self.row("memory", "files in memory, shared memory, heap", "244 cap.memory", f"QEMU {run.memory / MIB:.0f} MiB")
        self.next_run_works()

    def test_inv05_output_without_end(self):
        self.manifest("limits: {memory: 256MiB, disk: 64MiB, output: 3MiB}\n")
        run = self.attack("sh", "-c", "trap '' PIPE TERM INT; yes >&2 & yes", status=244)
        self.assertEqual(run.code(), "cap.output")
        self.assertLessEqual(run.out_size, 3 * MIB)
        self.row("output", "two endless streams", "244 cap.output",
                 f"{run.out_size} bytes of stdout, firestop {run.own / MIB:.0f} MiB")
        self.next_run_works()

    def test_inv05_results_without_end(self):
        limits = "limits: {memory: 256MiB, disk: 256MiB, result: 2MiB, result_files: 50}\n"
        entry = "workspace: {entries: {repo: {type: git_repo, repo: repo}, out: {type: dir, output: true%s}}}\n"
        cases = (
            ("result", "8 MiB in an output", "", "head -c 8M /dev/urandom > out/x", "result.export"),
            ("result (sparse)", "a file of 2 TB without content", "", "truncate -s 2T out/x", "result.export"),
            ("result_files", "200 files", "", "for i in $(seq 200); do : > out/$i; done", "import.too_large"),
            ("max of an output", "1.5 MiB in an output of 1 MiB", ", max: 1MiB", "head -c 1536K /dev/urandom > out/x",
             "result.export"),
            ("result (commits)", "a commit of 8 MiB", "", "cd repo; head -c 8M /dev/urandom > x; git add x; "
             "git -c user.name=x -c user.email=x@y commit -qm x", "result.too_large"),
        )
        self.repository(folder=self.work / "repo")
        for cap, guest, most, script, code in cases:
            with self.subTest(cap):
                self.manifest(entry % most + limits)
                run = self.attack("sh", "-c", script, status=246)
                self.assertEqual(run.code(), code, run.end)
                self.assertEqual(list(self.work.glob("firestop-out/*/out/*")), [])
                # The sandbox's own disk, and what was received of the result.
                self.assertLess(run.disk, 256 * MIB + 2 * MIB + 4 * MIB)
                received = run.end["run"]["outputs"]["bytes"]
                self.row(cap, guest, f"246 {run.code()}", f"{received} bytes came back")
        self.next_run_works()

    def test_inv05_inv06_root_past_the_rating_on_every_device(self):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        self.manifest("""
            rating: 20s
            limits: {memory: 256MiB, disk: 64MiB, cpus: 0.5, io: 8MiB/s}
            """)
        run = self.attack("python3", "-c", ROOT, status=243)
        self.assertEqual(run.code(), "rating.reached")
        self.assertEqual([s["what"] for s in run.said()], ["began"])
        self.assertGreater(run.ended - run.begun, 20)
        self.assertLess(run.ended - run.begun, 20 + 60 + 30)
        self.row("rating", "ignored signals, set the clock to 2001 and 2040", "243 rating.reached", "the host's timer")
        log = next(self.state.rglob("console.log")).read_bytes()
        self.assertIn(b"attack", log)
        self.assertLessEqual(len(log), 64 << 10)
        self.row("console", "wrote without end", "nothing: the last 64 KiB are kept", f"{len(log)} bytes")
        kept = {cap["cap"]: cap["by"] for cap in run.end["run"]["caps"]}
        cpu = Watched.rate(run.cpu, 1.5)
        # Root leaves the guest's control group: only the host's knows halves.
        whole = any(keeper.startswith("host_cgroup") for keeper in kept["cpus"])
        self.assertLess(cpu, 0.5 * 1.3 if whole else 1.7)
        self.row("cpus (root)", "three processes that compute", "nothing: less time", f"{cpu:.2f} processors")
        if run.moved:  # /proc/PID/io of a jailed QEMU is for root
            moved = Watched.rate(run.moved, 1.5)
            self.assertLess(moved, 8 * 1.6 * MIB)
            self.row("io", "read its disks directly", "nothing: slower", f"{moved / MIB:.2f} MiB/s")
        self.next_run_works()


if __name__ == "__main__":
    main()
