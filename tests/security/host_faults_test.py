"""Machines that never come up, and the death of firestop at any moment."""
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

# How often to kill, in one run of the test.
KILLS = int(os.environ.get("FIRESTOP_KILLS", "12"))


class Inv01NoFallback(SandboxTest):
    """Own kernel: when the machine does not come up, nothing runs."""

    def with_qemu(self, script):
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        qemu = tools / "qemu-system-x86_64"
        real = "/usr/bin/qemu-system-x86_64"
        qemu.write_text(f"#!/bin/sh\ncase \"$*\" in *--version*|*-version*) exec {real} \"$@\";; esac\n{script}\n")
        qemu.chmod(0o755)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"

    def test_inv01_a_machine_that_dies_at_once(self):
        self.manifest("")
        self.with_qemu("echo broken >&2; exit 3")
        marker = self.folder / "ran"
        self.firestop("run", "--", "touch", marker, status=242)
        self.assertFalse(marker.exists())

    def test_inv01_a_machine_that_never_answers(self):
        self.manifest("")
        self.env["FIRESTOP_BOOT_LIMIT_MS"] = "3000"
        self.with_qemu("exec sleep 600")
        marker = self.folder / "ran"
        process = self.start("run", "--", "touch", marker, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
        self.assertEqual(process.wait(timeout=120), 242)
        self.assertFalse(marker.exists())
        self.assertEqual(self.descendants_of(process.pid), [])


class Inv15SuddenDeath(SandboxTest):
    """kill -9 of firestop at random moments: nothing of it is left after the next command."""

    def test_inv15_nothing_is_left(self):
        self.repository({f"f{i}": f"{i}\n" for i in range(50)})
        self.manifest("""
            workspace:
              entries:
                repo: {type: git_repo, repo: "."}
                out: {type: dir, output: true, max: 1MiB}
            """)
        self.run_in("true")  # caches are warm
        before = self.git("for-each-ref")
        seed = int(os.environ.get("FIRESTOP_SEED", time.time_ns() % 100000))
        dice = random.Random(seed)
        for turn in range(KILLS):
            process = self.start("run", "--name", f"victim-{turn}", "--", "sh", "-c",
                                 "echo x > repo/x; echo y > out/y; sleep 0.2; head -c 100000 /dev/zero",
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(dice.random() * 2.5)
            children = self.descendants_of(process.pid)
            process.kill()
            process.wait()
            end = time.monotonic() + 20
            while any(child.alive() for child in children) and time.monotonic() < end:
                time.sleep(0.02)
            left = [child.name for child in children if child.alive()]
            self.assertEqual(left, [], f"seed {seed}, turn {turn}")
        runs = json.loads(self.firestop("runs", "--all", "--json").stdout)
        runs = runs["runs"] if isinstance(runs, dict) else runs
        self.assertTrue(all(run["state"] in ("died", "ended") for run in runs), f"seed {seed}: {runs}")
        kept = {"run.json", "manifest.yaml", "manifest.canonical", "console.log"}
        for path in (self.state / "firestop/runs").rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                self.assertIn(path.name, kept, f"seed {seed}: {path}")
        # What was imported before the kill is whole; nothing else of the repository changed.
        self.git("fsck", "--strict")
        after = [line for line in self.git("for-each-ref").splitlines() if "/agent/victim-" not in line and
                 "/firestop/" not in line]
        self.assertEqual("\n".join(after), before)
        self.assertEqual(self.run_in("echo fine"), "fine\n")


if __name__ == "__main__":
    main()
