"""What can be done from inside against the collectors: each ends in "recorded", "counted as lost" or 245, none in silence."""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from guest_take_over import TAKE_OVER  # noqa: E402
from sandbox_test import SandboxTest, main  # noqa: E402

HELPER_FAILED = 245
MANIFEST = "limits: {memory: 384MiB, disk: 512MiB, processes: 256}\n"


class Attacked(SandboxTest):
    def setUp(self):
        super().setUp()
        self.manifest(MANIFEST)

    def attack(self, script, *, root=False, status=0):
        if root:
            self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        done = self.firestop("run", "--json", "--", "bash", "-c", script, status=None)
        self.env.pop("FIRESTOP_TEST_GUEST_ROOT", None)
        if status is not None:
            self.assertEqual(done.returncode, status, (done.stdout[-500:], done.stderr[-1500:]))
        folder = sorted((self.state / "firestop" / "runs").glob("*/evidence"))[-1]
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        return done

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def code(self, text):
        digest = hashlib.sha256(text.encode()).hexdigest()
        return [code for code in self.of("code") if code.get("digest") == digest]

    def complete(self):
        ends = self.of("record.end")  # none: the record breaks off, which `log verify` tells
        return bool(ends) and ends[0]["complete"]


class Inv11FromTheContainer(Attacked):
    """An account without privileges cannot blind, fool or reach the collectors."""

    def test_inv11_lies_and_storms_are_recorded(self):
        self.attack(r"""
# Names that are somebody else's: comm, argv[0], and the argv area itself.
printf 'echo lie1\n' > /tmp/lie1
bash -c 'exec -a "/usr/bin/ls" bash /tmp/lie1'
printf 'open(F, "/proc/$$/comm"); $0 = "x" x 300; do "/tmp/lie2.pl";' > /tmp/outer.pl
printf 'print "lie2\\n";' > /tmp/lie2.pl
perl /tmp/outer.pl
# A copy of an interpreter under another name.
cp /usr/bin/python3 /tmp/harmless; printf 'print("lie3")\n' > /tmp/lie3.py; /tmp/harmless /tmp/lie3.py
# Another root of names, a link to a link, a directory renamed under a running script.
mkdir -p /tmp/d/e; printf 'mv /tmp/d /tmp/f; . /tmp/f/e/inner\n' > /tmp/d/e/outer; printf 'echo lie4\n' > /tmp/d/e/inner
sh /tmp/d/e/outer
# The port and the collectors are not to be seen from here.
ls /dev/vport* /sys/class/virtio-ports 2>/dev/null
for p in /proc/[0-9]*; do read -r name < $p/comm 2>/dev/null; test "$name" = collector && echo seen; done
kill -9 1 2>/dev/null
wait
# Mounts and namespaces are not to be had.
unshare -rm true 2>/dev/null && echo unshared
# A storm of forks, and one of scripts of which every one is another.
for i in $(seq 300); do (:) & done; wait
for i in $(seq 200); do printf 'echo %s >/dev/null\n' $i > /tmp/s; . /tmp/s; done
echo end
""")
        for text in ("echo lie1\n", 'print "lie2\\n";', 'print("lie3")\n', "echo lie4\n"):
            self.assertTrue(self.code(text), text)
        for number in range(1, 201):
            self.assertTrue(self.code(f"echo {number} >/dev/null\n"), number)
        forks = {fork["pid"] for fork in self.of("process.fork")}
        ends = {end["pid"] for end in self.of("process.exit")}
        self.assertGreater(len(self.of("process.fork")), 300)
        self.assertEqual(forks - ends, set())
        self.assertEqual(self.of("lost"), [])
        self.assertTrue(self.complete())


class Inv11FromGuestRoot(Attacked):  # 70 s
    """Root in the guest can silence the collectors, but not in silence; and takes nothing back."""

    BEFORE = "printf 'echo before\\n' > /tmp/before; sh /tmp/before\n"
    FIND = 'for p in /proc/[0-9]*; do read -r n < $p/comm; test "$n" = collector && pid=${p#/proc/}; done\n'

    def test_inv11_killed_collectors_end_the_run_and_what_they_said_stays(self):
        self.attack(self.BEFORE + self.FIND + "kill -9 $pid; sleep 30; echo unseen", root=True,
                    status=HELPER_FAILED)
        self.assertTrue(self.code("echo before\n"))
        self.assertFalse(self.complete())

    def test_inv11_stopped_collectors_end_the_run(self):
        done = self.attack(self.BEFORE + self.FIND +
                           "kill -STOP $pid; while :; do read -t 1 x < /dev/zero; done", root=True, status=HELPER_FAILED)
        self.assertTrue(self.code("echo before\n"), done.stderr[-500:])
        self.assertFalse(self.complete())

    def test_inv11_forged_frames_end_the_run(self):
        self.attack(self.BEFORE + self.FIND + r"""
python3 - $pid <<'EOF'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
collector = int(sys.argv[1])
pidfd = libc.syscall(434, collector, 0)
port = next(int(f) for f in os.listdir(f"/proc/{collector}/fd") if "vport" in os.readlink(f"/proc/{collector}/fd/{f}"))
fd = libc.syscall(438, pidfd, port, 0)
word = b'{"type":"done"}'
os.write(fd, struct.pack("<IBBH", len(word), 1, 0, 0) + word)
import time; time.sleep(60)
EOF
""", root=True, status=HELPER_FAILED)  # what comes after a forged "done" is out of order
        self.assertTrue(self.code("echo before\n"))
        self.assertFalse(self.complete())

    def test_inv11_audit_is_not_to_be_switched_off_nor_its_rules_taken(self):
        done = self.attack(self.BEFORE + r"""
cat > /tmp/audit.py <<'EOF'
import os, socket, struct
def ask(kind, payload):
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)  # NETLINK_AUDIT
    link.settimeout(10)
    link.send(struct.pack("=IHHII", 16 + len(payload), kind, 5, 1, 0) + payload)
    while True:
        answer = link.recv(65536)
        if struct.unpack_from("=H", answer, 4)[0] == 2:  # NLMSG_ERROR
            return os.strerror(-struct.unpack_from("=i", answer, 16)[0])
status = lambda mask, enabled, pid: struct.pack("=10I", mask, enabled, 0, pid, 0, 0, 0, 0, 0, 0)
print("off:", ask(1001, status(1, 0, 0)))
print("mine:", ask(1001, status(4, 0, os.getpid())))
print("nobody's:", ask(1001, status(4, 0, 0)))
calls = [59, 82, 84, 87, 133, 259, 263, 264, 316, 322]  # execve, rename, rmdir, unlink, mknod, and their ...at
words = [0] * 64
for call in calls: words[call // 32] |= 1 << call % 32
fields, values = [11, 104] + [0] * 62, [0xc000003e, 1] + [0] * 62  # AUDIT_ARCH, AUDIT_SUCCESS
rule = struct.pack("=3I64I64I64I64II", 4, 2, 2, *words, *fields, *values, *([0x40000000] * 2 + [0] * 62), 0)
print("rule:", ask(1012, rule))
EOF
python3 /tmp/audit.py
: > /tmp/one; mv /tmp/one /tmp/two; rm /tmp/two
""", root=True)
        said = dict(line.split(": ") for line in done.stdout.decode().splitlines() if ": " in line)
        refused = "Operation not permitted"
        self.assertEqual((said["off"], said["rule"]), (refused, refused), said)
        self.assertNotIn("Success", (said["mine"], said["nobody's"]), said)
        self.assertIn("/tmp/two", [change.get("to") for change in self.of("file.rename")])
        self.assertIn("/tmp/two", [change["path"] for change in self.of("file.delete")])
        self.assertTrue(self.complete() or self.of("lost"))

    def test_inv11_a_result_without_an_end_of_the_collectors_is_none(self):
        (self.work / "take_over.py").write_text(TAKE_OVER.replace("DONE = True", "DONE = False"))
        self.manifest(MANIFEST + "workspace: {entries: {take_over.py: {type: local_file, src: take_over.py}}}\n")
        self.attack(self.BEFORE + ": > /tmp/archive; exec python3 take_over.py", root=True, status=HELPER_FAILED)
        self.assertTrue(self.code("echo before\n"))
        self.assertFalse(self.complete())

    def test_inv11_a_file_system_that_root_mounts_hides_nothing_in_silence(self):
        self.attack(self.BEFORE + r"""
mkdir -p /tmp/m; mount -t tmpfs none /tmp/m
cp /usr/bin/true /tmp/m/prog; printf mounted >> /tmp/m/prog; /tmp/m/prog
printf 'echo hidden\n' > /tmp/m/s; sh /tmp/m/s
""", root=True, status=None)
        programs = [code for code in self.of("code") if code["path"].endswith("/m/prog")]
        self.assertTrue(programs or self.of("lost"), self.of("code"))
        hidden = self.code("echo hidden\n")
        self.assertTrue(hidden or self.of("lost") or not self.complete())


if __name__ == "__main__":
    main()
