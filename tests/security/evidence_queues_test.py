"""The collectors' queues filled by force, and a host that does not read. The test knows how much it did: all of it is in
the record, or counted as lost, or the run ends with 245; none goes missing in silence."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import LIMIT, SandboxTest, main  # noqa: E402

HELPER_FAILED = 245
SCALE = os.environ.get("FIRESTOP_TEST_SCALE", "1")  # of the work
MANIFEST = "limits: {memory: 512MiB, disk: 1GiB, processes: 256, cpus: 2}\nrating: 10m\n"

# Work that fills queues: each part says on a line what it did, as JSON.
WORK = r"""
import json, os, subprocess, sys
def together(count, work):
    pids = []
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            work(n)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
def did(name, count):
    print(json.dumps([name, count]), flush=True)

SCALE = int(sys.argv[1])
FORKS, MOVES, SCRIPTS, RUNS, PIPED, PIPE = 100 * SCALE, 100 * SCALE, 50 * SCALE, 8 * SCALE, 4, 300_000 * SCALE
if "few" in sys.argv: FORKS, MOVES, RUNS = 100, 25, 5
def forks(n):
    for _ in range(FORKS):
        pid = os.fork()
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
def moves(n):
    os.mkdir(f"/tmp/m{n}"); os.chdir(f"/tmp/m{n}")
    for i in range(MOVES):
        os.mknod(f"{i}"); os.rename(f"{i}", f"{i}-moved"); os.unlink(f"{i}-moved")
def scripts(n):  # sourced, every one another
    loop = f"for i in $(seq {SCRIPTS}); do echo \"echo {n} $i >/dev/null\" > /tmp/s{n}; . /tmp/s{n}; done"
    subprocess.run(["bash", "-c", loop], check=True)
def runs(n):
    for i in range(RUNS): subprocess.run(["/bin/true", f"run-{n}-{i}"], check=True)
def piped(n):  # what is read at once is larger than what a ring takes at once
    text = b"while (sysread(STDIN, $b, 1 << 20)) {}\n__END__\n" + (b"%03d" % n) * (PIPE // 3)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        while text: text = text[os.write(writer, text):]
        os._exit(0)
    os.close(writer)
    subprocess.run(["perl"], stdin=reader, check=True)

if "forks" in sys.argv: together(4, forks); did("forks", 4 * FORKS)
if "moves" in sys.argv: together(4, moves); did("moves", 4 * MOVES)
if "scripts" in sys.argv: together(4, scripts); did("scripts", 4 * SCRIPTS)
if "runs" in sys.argv: together(4, runs); did("runs", 4 * RUNS)
if "piped" in sys.argv: together(PIPED, piped); did("piped", PIPED * (PIPE // 3 * 3))
"""


class Queues(SandboxTest):
    def setUp(self):
        super().setUp()
        self.manifest(MANIFEST)

    def read(self):
        [folder] = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1:]
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def lost(self, what):
        return sum(lost["count"] for lost in self.of("lost") if lost["what"] == what)

    def hold_against(self, did):
        """Each kind of what was done is there, but for what was counted."""
        forked = {fork["pid"] for fork in self.of("process.fork")}
        ended = {end["pid"] for end in self.of("process.exit")}
        scripts = {code["digest"] for code in self.of("code") if code["path"].startswith("/tmp/s") and "digest" in code}
        runs = {run["argv"][-1] for run in self.of("process.exec") if run["argv"][-1].startswith("run-")}
        moves = [c for c in self.of("file.rename", "file.delete") if c["path"].startswith("/tmp/m")]
        piped = sum(code["size"] for code in self.of("code") if code["how"] == "stdin" and code["interpreter"].endswith("perl"))
        lost = self.lost("processes")
        told = {"forks": len(self.of("process.fork")) + lost, "moves": len(moves) + 2 * lost, "scripts": len(scripts) + self.lost("code"),
                "runs": len(runs) + lost, "piped": piped + 4096 * self.lost("stdin")}
        needed = {"moves": 2}  # events of each
        for name, count in did.items():
            self.assertGreaterEqual(told[name], count * needed.get(name, 1), (name, self.of("lost")))
        self.assertLessEqual(len(forked - ended), lost, self.of("lost"))
        self.assertEqual(self.of("record.end")[0]["complete"], not self.of("lost"))


class Inv11QueuesByForce(Queues):  # 25 s
    def test_inv11_from_the_container(self):
        out = self.run_in(f"cat > work.py <<'END'\n{WORK}\nEND\npython3 work.py {SCALE} forks moves scripts runs piped")
        did = dict(json.loads(line) for line in out.splitlines())
        self.assertEqual(set(did), {"forks", "moves", "scripts", "runs", "piped"})
        self.read()
        self.hold_against(did)

    # Root makes the queues so small that they overflow.
    SHRINK = r"""
import ctypes, os, socket
libc = ctypes.CDLL(None)
collector = next(int(p) for p in os.listdir("/proc") if p.isdigit() and open(f"/proc/{p}/comm").read() == "collector\n")
pidfd = libc.syscall(434, collector, 0)
for name in os.listdir(f"/proc/{collector}/fd"):
    if not os.readlink(f"/proc/{collector}/fd/{name}").startswith("socket:"): continue
    theirs = socket.socket(fileno=libc.syscall(438, pidfd, int(name), 0))
    if theirs.family == socket.AF_NETLINK: theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
"""

    def test_inv11_from_root_with_queues_that_are_too_small(self):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        done = self.firestop("run", "--", "sh", "-c", f"cat > work.py <<'END'\n{WORK}\nEND\ncat > shrink.py <<'END'\n"
                             f"{self.SHRINK}\nEND\npython3 shrink.py && python3 work.py 1 few forks moves runs", status=None)
        self.read()
        if done.returncode == HELPER_FAILED:
            return self.assertFalse(self.of("record.end") and self.of("record.end")[0]["complete"])
        self.assertEqual(done.returncode, 0, done.stderr[-1000:])
        self.hold_against(dict(json.loads(line) for line in done.stdout.decode().splitlines()))


class Inv11HostThatDoesNotRead(Queues):  # 14 s
    def test_inv11_it_holds_up_the_agent_and_loses_nothing(self):
        # Much is told, little is done for it: a long file, of which the first words change and the rest is not run.
        # Until it sees that it was held up, or for so long that nobody did.
        head, tail = "echo {:06} >/dev/null; return\n", "#" * 500_000
        script = r"""
head -c 500000 /dev/zero | tr '\0' '#' > /tmp/tail; echo 'echo 000000 >/dev/null; return' | cat - /tmp/tail > /tmp/s
i=0; last=$(date +%s%3N); longest=0; end=$((last + 60000))
echo ready
while [ $longest -lt 2000 ] && [ $last -lt $end ]; do
  i=$((i + 1)); printf 'echo %06d' $i 1<> /tmp/s; . /tmp/s
  now=${EPOCHREALTIME/./}; now=${now%???}; gap=$((now - last)); last=$now; [ $gap -gt $longest ] && longest=$gap
done
echo $i $longest
"""
        run = self.start("run", "--", "bash", "-c", script, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"ready\n")
        os.kill(run.pid, signal.SIGSTOP)
        time.sleep(12)
        os.kill(run.pid, signal.SIGCONT)
        out = run.stdout.read().split()
        self.assertEqual(run.wait(LIMIT), 0)
        self.read()
        count, longest = map(int, out)
        self.assertGreaterEqual(longest, 2000, "the agent went on while nobody took the record")
        scripts = {code["digest"] for code in self.of("code") if code["path"] == "/tmp/s"}
        for number in range(1, count + 1):
            self.assertIn(hashlib.sha256((head.format(number) + tail).encode()).hexdigest(), scripts)
        self.assertEqual(self.of("lost"), [])
        self.assertTrue(self.of("record.end")[0]["complete"])


if __name__ == "__main__":
    main()
