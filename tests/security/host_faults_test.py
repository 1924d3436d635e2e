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

    def with_qemu(self, body):
        """Puts a program before QEMU in PATH, a real one, since the jail takes no script; `body` is C."""
        tools = self.folder / "tools"
        self.folder.chmod(0o755)  # the jail of root is another account
        tools.mkdir()
        source = tools / "qemu.c"
        source.write_text("#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
                          "int main(int argc, char **argv) {\n"
                          '  if (argc > 1 && strstr(argv[1], "version")) return puts("QEMU emulator version 7.2.99") < 0;\n'
                          f"  {body}\n}}\n")
        subprocess.run(["gcc", "-o", tools / "qemu-system-x86_64", source], check=True)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"
        self.env["FIRESTOP_ACCEL"] = "tcg"  # else the try of KVM takes its time, too

    def test_inv01_a_machine_that_dies_at_once(self):
        self.manifest("")
        self.with_qemu('fputs("broken\\n", stderr); return 3;')
        marker = self.folder / "ran"
        done = self.firestop("run", "--", "touch", marker, status=242)
        self.assertIn(b"broken", done.stderr)
        self.assertFalse(marker.exists())

    def test_inv01_a_machine_that_never_answers(self):
        self.manifest("")
        self.env["FIRESTOP_BOOT_LIMIT_MS"] = "3000"
        self.with_qemu("for (;;) pause();")
        marker = self.folder / "ran"
        begun = time.monotonic()
        process = self.start("run", "--", "touch", marker, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
        seen = []
        while process.poll() is None:
            seen += [child for child in self.descendants_of(process.pid) if child.name.startswith("qemu")]
            time.sleep(0.05)
        self.assertEqual(process.returncode, 242)
        self.assertGreater(time.monotonic() - begun, 2.9)
        self.assertFalse(marker.exists())
        self.assertTrue(seen)
        self.assertEqual([child.name for child in seen if child.alive()], [])


class Inv15SuddenDeath(SandboxTest):  # 26 s
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
            if path.is_file() and "evidence" not in path.parts and not path.name.startswith("."):
                self.assertIn(path.name, kept, f"seed {seed}: {path}")
        # What was imported before the kill is whole; nothing else of the repository changed.
        self.git("fsck", "--strict")
        after = [line for line in self.git("for-each-ref").splitlines() if "/agent/victim-" not in line and
                 "/firestop/" not in line]
        self.assertEqual("\n".join(after), before)
        self.assertEqual(self.run_in("echo fine"), "fine\n")


if __name__ == "__main__":
    main()
