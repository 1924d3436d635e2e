"""What the tests of the command line share: a home of their own, runs made by hand, `firestop` as a user types it.

Nothing here starts a machine or needs the network.
"""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build/bin/firestop"
FIRESTOP = os.environ.get("FIRESTOP") or (str(BUILT) if BUILT.exists() else "firestop")
LIMIT = 60

GOOD_MANIFEST = """\
firestop: 1
name: tidy
rating: 5m
image: agent-base
workspace:
  entries:
    notes.md: {type: file, content: "hello"}
command: [sh, -c, "true"]
capabilities: [shell, filesystem]
"""


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="firestop-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.state, self.cache, self.work = (self.folder / name for name in ("state", "cache", "work"))
        self.work.mkdir()
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder),
                    "XDG_STATE_HOME": str(self.state), "XDG_CACHE_HOME": str(self.cache), "TERM": "xterm",
                    "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def firestop(self, *args, status=0, env=None, stdout=subprocess.PIPE):
        """Runs firestop to its end, with text streams; `status` None takes any."""
        done = subprocess.run([FIRESTOP, *map(os.fspath, args)], cwd=self.work, env={**self.env, **(env or {})},
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=LIMIT,
                              check=False, text=True)
        if status is not None:
            self.assertEqual(done.returncode, status, f"firestop {args}\nstdout: {done.stdout}\nstderr: {done.stderr}")
        return done

    def json_of(self, *args, status=0):
        done = self.firestop(*args, "--json", status=status)
        return json.loads(done.stdout)

    def on_a_terminal(self, *args, env=None, columns="80"):
        """Runs firestop with a terminal for stdout and stderr; returns what it printed there."""
        controller, terminal = pty.openpty()
        process = subprocess.Popen([FIRESTOP, *args], cwd=self.work, stdin=subprocess.DEVNULL, stdout=terminal,
                                   stderr=terminal, env={**self.env, "COLUMNS": columns, **(env or {})})
        os.close(terminal)
        seen = b""
        while True:
            try:
                data = os.read(controller, 65536)
            except OSError:  # how a terminal without writers ends
                break
            if not data:
                break
            seen += data
        os.close(controller)
        process.wait(LIMIT)
        return seen.decode().replace("\r\n", "\n")

    def manifest(self, text=GOOD_MANIFEST, name="firestop.yaml"):
        path = self.work / name
        path.write_text(text)
        return path

    def run_directory(self, run_id):
        return self.state / "firestop" / "runs" / run_id

    def make_run(self, run_id, state="ended", **more):
        """A run as `firestop run` would have left it."""
        record = {
            "version": 1, "id": run_id, "name": "fix", "state": state, "exit_status": 0 if state == "ended" else None,
            "manifest": {"file": "firestop.yaml", "name": "tidy", "sha256": "ab" * 32},
            "image": {"name": "agent-base", "digest": "cd" * 32}, "accelerator": "tcg", "command": ["make", "test all"],
            "created_ms": 1795959000000, "started_ms": 1795959001000, "ended_ms": 1795959012500, "reason": "",
            "message": "", "branches": [], "outputs": {"directory": "", "files": 0, "bytes": 0},
            "steps": [{"step": "resolve", "us": 1500}, {"step": "boot", "us": 300000}],
        }
        record.update(more)
        directory = self.run_directory(run_id)
        directory.mkdir(parents=True)
        (directory / "run.json").write_text(json.dumps(record))
        return directory

    def hold(self, run_id):
        """Makes this process the owner of a run, as far as firestop can see. Close the result to let go."""
        lock = open(self.run_directory(run_id) / "lock", "w")  # pylint: disable=consider-using-with
        self.addCleanup(lock.close)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        return lock

    def assert_error(self, done, code_or_text, status):
        """A failure for people: what happened, below it a hint, nothing on stdout."""
        self.assertEqual(done.returncode, status)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("firestop: "), done.stderr)
        self.assertIn(code_or_text, done.stderr)

    def assert_json_error(self, args, code, status):
        done = self.firestop(*args, status=status)
        document = json.loads(done.stdout)
        self.assertEqual(set(document), {"error"})
        self.assertEqual(set(document["error"]), {"code", "message", "hint", "status"})
        self.assertEqual(document["error"]["code"], code)
        self.assertEqual(document["error"]["status"], status)


def main():
    program = unittest.main(verbosity=2, exit=False)
    # A name without tests is no success.
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun else 1)
