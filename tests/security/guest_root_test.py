"""What root in the guest can do to the host: it owns PID 1's channel, the devices and the clock."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

# Takes PID 1's end of the channel away from it and writes what the arguments say, as hex.
FORGE = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
pidfd = libc.syscall(434, 1, 0)
fds = [int(f) for f in os.listdir("/proc/1/fd") if "vport" in os.readlink("/proc/1/fd/" + f)]
assert pidfd >= 0 and fds, (pidfd, fds)
port = libc.syscall(438, pidfd, fds[0], 0)
assert port >= 0, ctypes.get_errno()
os.set_blocking(port, True)
data = bytes.fromhex(sys.argv[1])
for _ in range(int(sys.argv[2])):
    view = memoryview(data)
    while view: view = view[os.write(port, view):]
import time; time.sleep(100)
"""


def frame(kind, stream, payload=b"", length=None, zero=0):
    size = len(payload) if length is None else length
    return size.to_bytes(4, "little") + bytes([kind, zero]) + stream.to_bytes(2, "little") + payload


def control(text):
    return frame(1, 0, text.encode() if isinstance(text, str) else text)


def message(**members):
    return control(json.dumps(members))


class GuestRoot:
    """Mixed in: runs as root in the machine, without the container."""

    def become_root(self):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"

    def forge(self, data, times=1, status=245):
        done = self.firestop("run", "--json", "--", "python3", "-c", FORGE, data.hex(), str(times), status=None)
        end = self.ended(done)
        self.assertEqual(done.returncode, status, (data[:40], end))
        return end


# A frame, a message or a flood, and the code with which the run must end.
FORGED = [
    ("a length of 4 GiB", frame(2, 2, length=0xFFFFFFFF), 1, "channel.bad_frame"),
    ("a length one above the most", frame(2, 2, length=65537), 1, "channel.bad_frame"),
    ("a frame of no known type", frame(9, 2, b"x"), 1, "channel.bad_frame"),
    ("a byte that must be zero", frame(2, 2, b"x", zero=1), 1, "channel.bad_frame"),
    ("control on a stream", frame(1, 5, b"{}"), 1, "channel.bad_frame"),
    ("data of no bytes", frame(2, 2), 1, "channel.bad_frame"),
    ("data on a stream that nobody opened", frame(2, 77, b"x"), 1, "channel.bad_stream"),
    ("data on the result's stream before it was asked for", frame(2, 8, b"x"), 1, "channel.bad_stream"),
    ("the end of a stream that nobody opened", frame(3, 77), 1, "channel.bad_stream"),
    ("more data than was granted", frame(2, 2, b"x" * 16384), 100, ("channel.over_credit", "guest.gone")),
    ("more credit than a window", frame(4, 1, (0xFFFFFFFF).to_bytes(4, "little")), 1, "channel.bad_credit"),
    ("text that is no JSON", control("hello"), 1, "channel.bad_message"),
    ("bytes that are no UTF-8", control(b'{"type":"\xff"}'), 1, "channel.bad_message"),
    ("depth", control("[" * 1000), 1, "channel.bad_message"),
    ("a key twice", control('{"type":"ready","type":"failed"}'), 1, "channel.bad_message"),
    ("a member that nobody knows", message(type="ready", version=1, kernel="x", more=1), 1, "channel.bad_message"),
    ("a number out of range", message(type="exited", id=-1, status=0, out_of_memory=False, oom_kills=0,
                                      left_behind=0, cannot_start=""), 1, "channel.bad_message"),
    ("ready again", message(type="ready", version=1, kernel="x"), 1, "guest.protocol"),
    ("started again", message(type="started", steps=[]), 1, "guest.protocol"),
    ("the end of a command that was never asked for",
     message(type="exited", id=7, status=0, out_of_memory=False, oom_kills=0, left_behind=0, cannot_start=""), 1,
     "guest.protocol"),
    ("a result that was not asked for",
     message(type="exported", repositories=[], output_files=0, outputs_error="", memory_error="", notes=[]), 1, "guest.protocol"),
    ("a message of the host's", message(type="shutdown"), 1, "channel.bad_message"),
    ("a failure with a terminal's commands in it", message(type="failed", step="\x1b]0;x\x07", message="\x1b[2J"), 1,
     "guest.failed"),
]


class Inv04ForgedFrames(SandboxTest):  # 77 s
    """Fail closed: whatever comes on the channel, the run ends with 245 and the next one works."""

    def test_inv04_every_forged_frame_ends_the_run(self):
        GuestRoot.become_root(self)
        self.manifest("")
        for what, data, times, code in FORGED:
            with self.subTest(what):
                end = GuestRoot.forge(self, data, times)
                # With a reader as fast as ours the credit comes back in time, and PID 1 falls over what it never sent.
                self.assertIn(end["error"]["code"], code if isinstance(code, tuple) else (code,))
                self.assertNotIn("\x1b", json.dumps(end))
        del self.env["FIRESTOP_TEST_GUEST_ROOT"]
        self.assertEqual(self.run_in("echo fine"), "fine\n")


class Inv05Floods(SandboxTest):  # 34 s
    """Every resource is capped, whoever fills it."""

    def peak_kib(self, pid):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1])
        return 0

    def run_and_watch(self, *command, seconds=None):
        """Runs; the highest memory of firestop and of QEMU, in KiB, and the end."""
        process = self.start("run", "--json", "--", *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
        peaks = {"firestop": 0, "qemu": 0}
        begun = time.monotonic()
        while process.poll() is None:
            try:
                peaks["firestop"] = max(peaks["firestop"], self.peak_kib(process.pid))
                for pid in self.children_of(process.pid, "qemu"):
                    peaks["qemu"] = max(peaks["qemu"], self.peak_kib(pid))
            except (OSError, ProcessLookupError):
                pass
            if seconds and time.monotonic() - begun > seconds:
                process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        return peaks, json.loads(process.stderr.read().splitlines()[-1])

    def test_inv05_messages_without_end(self):
        GuestRoot.become_root(self)
        self.manifest("")
        # A message that is in order at any time but for its turn, a hundred thousand times.
        end = GuestRoot.forge(self, message(type="started", steps=[]) * 100, 1000)
        self.assertIn(end["error"]["code"], ("guest.protocol", "channel.control_flood"))

    def test_inv05_a_console_that_never_stops(self):
        GuestRoot.become_root(self)
        self.manifest("rating: 12s\n")
        peaks, end = self.run_and_watch("sh", "-c", "mount -t devtmpfs d /mnt; yes attack > /mnt/ttyS0 & sleep 100")
        self.assertEqual(end["status"], 243)
        self.assertLess(peaks["firestop"], 200 << 10)
        log = list(self.state.rglob("console.log"))
        self.assertEqual(len(log), 1)
        self.assertIn(b"attack", log[0].read_bytes())
        self.assertLessEqual(log[0].stat().st_size, 64 << 10)

    def test_inv05_all_memory_as_root(self):
        GuestRoot.become_root(self)
        self.manifest("limits: {memory: 256MiB, disk: 512MiB}\nrating: 25s\n")
        peaks, end = self.run_and_watch("python3", "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))")
        self.assertLess(peaks["qemu"], (256 << 10) + (256 << 10))
        self.assertIn(end["status"], (137, 243, 244, 245))
        del self.env["FIRESTOP_TEST_GUEST_ROOT"]
        self.assertEqual(self.run_in("echo fine"), "fine\n")

    def test_inv05_the_disk_below_its_file_system(self):
        GuestRoot.become_root(self)
        self.manifest("limits: {memory: 256MiB, disk: 64MiB}\n")
        self.repository()
        out = self.run_in("""mount -t devtmpfs d /mnt; for d in /sys/block/vd*; do n=${d##*/}
              if [ $(cat $d/ro) = 1 ]; then echo kept; blockdev --setrw /mnt/$n
                dd if=/dev/zero of=/mnt/$n bs=512 count=1 conv=fsync 2>/dev/null && echo WROTE $n
              else dd if=/dev/zero of=/mnt/$n bs=1M seek=60 2>&1 | grep -o 'No space left'; fi; done; true""",
                          "--keep", status=None)
        self.assertIn("kept", out)
        self.assertNotIn("WROTE", out)
        self.assertIn("No space left", out)
        scratch = list(self.state.rglob("scratch.img"))
        self.assertEqual([path.stat().st_size for path in scratch], [64 << 20])


class Inv03Devices(SandboxTest):
    """No host file system: nothing to mount, no device but the declared ones."""

    def test_inv03_what_root_finds(self):
        GuestRoot.become_root(self)
        self.manifest("")
        out = self.run_in("""ls /sys/bus/pci/devices 2>/dev/null | wc -l
            ls /sys/class/net | tr '\\n' ' '; echo
            cat /proc/filesystems | grep -cE '9p|virtiofs|fuse|nfs|cifs' || true
            for t in 9p virtiofs; do mount -t $t x /mnt 2>/dev/null && echo MOUNTED; done
            for d in /sys/bus/virtio/devices/*; do basename $(readlink $d/driver); done | sort | uniq -c | tr -s ' '
            ls /sys/class/virtio-ports | wc -l""").splitlines()
        self.assertEqual(out[0], "0")
        self.assertEqual(out[1].strip(), "lo")
        self.assertEqual(out[2], "0")
        self.assertNotIn("MOUNTED", out)
        kinds = {line.split()[1] for line in out[3:-1]}
        self.assertLessEqual(kinds, {"virtio_blk", "virtio_console", "virtio_rng"})
        self.assertEqual(out[-1], "2")  # the channel, and the collectors' port


class Inv06Deadline(SandboxTest):  # 75 s
    """The deadline is the host's: it holds against whoever owns the guest's clock, signals and PID 1."""

    def test_inv06_clock_games_and_ignored_signals(self):
        GuestRoot.become_root(self)
        self.manifest("rating: 6s\n")
        begun = time.monotonic()
        done = self.firestop("run", "--json", "--", "sh", "-c",
                             "trap '' INT TERM HUP; echo begun; date -s 2001-01-01 >/dev/null; date -s 2040-01-01 >/dev/null;"
                             "while :; do sleep 1; done", status=243)
        self.assertEqual(done.stdout, b"begun\n")
        self.assertGreater(time.monotonic() - begun, 6)
        self.assertEqual(self.ended(done)["error"]["code"], "rating.reached")

    def test_inv06_pid_1_is_stopped(self):
        GuestRoot.become_root(self)
        self.manifest("rating: 4s\n")
        attach = ("import ctypes, time; libc = ctypes.CDLL(None); assert libc.ptrace(16, 1, 0, 0) == 0;"
                  "print('stopped', flush=True); time.sleep(1000)")
        begun = time.monotonic()
        done = self.firestop("run", "--json", "--", "python3", "-c", attach, status=243)
        # The machine got its minute to hand over, and not more.
        self.assertLess(time.monotonic() - begun, 4 + 60 + 60)
        self.assertEqual(self.ended(done)["error"]["code"], "rating.reached")


if __name__ == "__main__":
    main()
