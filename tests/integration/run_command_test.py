"""The command of a run: what it sees, how its streams and its end come back."""
import datetime
import hashlib
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402


class CommandTest(SandboxTest):  # 44 s
    def test_another_kernel_an_ordinary_account_and_nothing_of_the_host(self):
        self.manifest("workspace: {environment: {GREETING: 'h i'}}\n")
        (self.work / "secret").write_text("of the host")
        out = self.run_in("""
            uname -r; id -u; id -un; pwd; hostname
            echo "$GREETING|$HOME|$USER|$TERM|$PATH"
            env | cut -d= -f1 | sort | tr '\\n' ' '; echo
            ls /sys/class/net 2>/dev/null || sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '
            grep -E '^(CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t ' ' '
            find / -xdev -uid 0 -perm -4000 2>/dev/null | head -1 | wc -l
            ps -e -o uid= | sort -u | tr -d ' '
            find / -xdev -name secret -type f 2>/dev/null | wc -l
            """).splitlines()
        self.assertNotEqual(out[0], os.uname().release)
        self.assertIn("cloud", out[0])
        self.assertEqual(out[1:4], ["1000", "agent", "/workspace"])
        self.assertTrue(out[4].startswith("test-"))
        self.assertEqual(out[5], "h i|/home/agent|agent|dumb|/usr/local/bin:/usr/bin:/bin")
        # PWD and the like are made by the shell itself.
        self.assertEqual(set(out[6].split()) - {"PWD", "OLDPWD", "SHLVL", "_"}, {"GREETING", "HOME", "PATH", "TERM", "USER"})
        self.assertEqual(out[7], "lo")
        flags = dict(line.split(": ") for line in out[8:13])
        self.assertEqual(flags, {"CapEff": "0" * 16, "CapBnd": "0" * 16, "CapAmb": "0" * 16, "NoNewPrivs": "1",
                                 "Seccomp": "2"})
        self.assertEqual(out[14], "1000", "a process of another account is visible")
        self.assertEqual(out[15], "0")

    def test_the_clock_is_the_hosts_also_in_a_machine_that_took_long_to_come_up(self):
        # Without templates: a snapshot is made first, and processors that are busy make that slow.
        self.manifest("")
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "firestop"
        own = self.folder / "cache/firestop"
        own.mkdir(parents=True)
        for name in ("images", "accelerator.json"):
            (own / name).symlink_to(cache / name)
        self.env["XDG_CACHE_HOME"] = str(own.parent)
        for _ in range(2):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(lambda process=process: (process.kill(), process.wait()))
        behind, took = [], []
        for _ in range(2):
            begun = time.monotonic()
            now, source = self.run_in(
                "date +%s.%N; cat /sys/devices/system/clocksource/clocksource0/current_clocksource").split()
            took.append(time.monotonic() - begun)
            self.assertIn(source, ("tsc", "kvm-clock"), "a clock of timer interrupts, of which a busy host loses some")
            started = next(event for event in self.record_events() if event["data"].get("state") == "started")
            behind.append(datetime.datetime.fromisoformat(started["time"]).timestamp() - float(now))
        # The second one had its snapshot. What the first one took more is not what its clock is late.
        self.assertLess(behind[0] - behind[1], (took[0] - took[1]) / 2, (behind, took))

    def test_status_and_signals_are_the_commands(self):
        self.manifest("command: [sh, -c, 'exit 7']\n")
        self.firestop("run", status=7)
        self.run_in("kill -TERM $$", status=128 + 15)
        self.run_in("kill -SEGV $$", status=128 + 11)

    def test_a_command_that_is_not_there(self):
        self.manifest("")
        done = self.firestop("run", "--", "no-such-thing", status=242)
        self.assertIn(b"no-such-thing", done.stderr)

    def test_stdin_is_carried_byte_for_byte_and_ends(self):
        self.manifest("")
        data = os.urandom(3 << 20)
        done = self.firestop("run", "--", "sha256sum", input=data)
        self.assertEqual(done.stdout.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_output_of_many_sizes_is_complete(self):
        self.manifest("limits: {memory: 256MiB, disk: 512MiB, output: 200MiB}\n")
        for size in (0, 1, 1 << 20, 100 << 20):
            done = self.firestop("run", "--", "head", "-c", str(size), "/dev/zero")
            self.assertEqual(len(done.stdout), size)
            self.assertEqual(done.stdout.count(0), size)
        binary = self.firestop("run", "--", "python3", "-c",
                               "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000); sys.stderr.write('e')")
        self.assertEqual(binary.stdout, bytes(range(256)) * 1000)
        self.assertTrue(binary.stderr.endswith(b"e"), binary.stderr)

    def test_what_firestop_says_begins_a_line_of_its_own(self):
        self.manifest("")
        done = self.firestop("run", "--json", "--", "sh", "-c", "printf half >&2; exit 3", status=3)
        self.assertIn(b"half\n{", done.stderr)
        self.assertEqual(self.ended(done)["status"], 3)

    def test_a_slow_reader_gets_everything(self):
        self.manifest("")
        process = self.start("run", "--", "head", "-c", str(4 << 20), "/dev/zero", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        got = 0
        while block := process.stdout.read(256 << 10):
            got += len(block)
            time.sleep(0.05)
        self.assertEqual(process.wait(), 0)
        self.assertEqual(got, 4 << 20)

    def test_a_reader_that_goes_away_ends_the_command(self):
        self.manifest("")
        process = self.start("run", "--", "yes", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
        self.assertEqual(process.stdout.read(2), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=120), 128 + signal.SIGPIPE)

    def test_a_grandchild_that_keeps_stdout_does_not_keep_the_run(self):
        self.manifest("")
        done = self.firestop("run", "--json", "--", "sh", "-c", "(sleep 1000; echo late) & echo first")
        self.assertEqual(done.stdout, b"first\n")
        self.assertTrue(any("outlived" in note for note in self.ended(done)["notes"]))

    def test_a_double_forked_orphan_is_reaped(self):
        self.manifest("")
        out = self.run_in("(true & ) ; (sh -c 'true &' ) ; sleep 0.5; ps -e -o stat= | grep -c Z || true")
        self.assertEqual(out.strip(), "0")

    def test_a_terminal(self):
        self.manifest("")
        leader, follower = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        self.env["TERM"] = "xterm-256color"
        process = self.start("run", "--tty", "--", "sh", "-c",
                             "trap 'echo got int; : >/tmp/got' INT; stty size; echo $TERM; tty;"
                             "while [ ! -e /tmp/got ]; do sleep 0.1; done; read a; echo after:$a; read b; stty size",
                             stdin=follower, stdout=follower, stderr=subprocess.DEVNULL, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(follower)
        seen = b""

        def until(text):
            nonlocal seen
            end = time.monotonic() + 120
            while text not in seen and time.monotonic() < end:
                try:
                    seen += os.read(leader, 4096)
                except OSError:
                    break
            self.assertIn(text, seen)

        until(b"/dev/pts/")
        self.assertIn(b"33 101", seen)
        self.assertIn(b"xterm-256color", seen)
        os.write(leader, b"\x03")  # Ctrl-C is the guest terminal's to make a signal of
        until(b"got int")
        os.write(leader, b"line\n")
        until(b"after:line")
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 77, 0, 0))
        os.kill(process.pid, signal.SIGWINCH)
        time.sleep(0.5)
        os.write(leader, b"x\n")
        until(b"44 77")
        self.assertEqual(process.wait(timeout=60), 0)
        os.close(leader)

    def test_a_terminal_that_is_closed_ends_the_run(self):
        import fcntl
        import termios
        self.manifest("")
        for options in (["--tty"], []):
            leader, follower = pty.openpty()
            process = self.start("run", *options, "--", "sh", "-c", "echo up; sleep 1000", stdin=follower, stdout=follower,
                                 stderr=subprocess.DEVNULL, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(follower)
            seen = b""
            while b"up" not in seen:
                seen += os.read(leader, 4096)
            children = self.descendants_of(process.pid)
            self.assertTrue(children)
            os.close(leader)
            self.assertIn(process.wait(timeout=120), (128 + signal.SIGHUP, 128 + signal.SIGKILL), options)
            self.assertEqual([child.name for child in children if child.alive()], [])
        self.assertNotIn(b"running", self.firestop("runs").stdout)

    def test_ctrl_c_once_asks_and_twice_ends(self):
        self.manifest("")
        for script, presses, status in (("trap 'exit 9' INT; echo up; while :; do sleep 0.1; done", 1, 9),
                                        ("trap '' INT; echo up; while :; do sleep 0.1; done", 2, 130)):
            process = self.start("run", "--", "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 stdin=subprocess.DEVNULL)
            self.assertEqual(process.stdout.readline(), b"up\n")
            for _ in range(presses):
                process.send_signal(signal.SIGINT)
                time.sleep(0.5)
            self.assertEqual(process.wait(timeout=120), status)


if __name__ == "__main__":
    main()
