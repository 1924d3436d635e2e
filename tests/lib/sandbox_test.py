"""What the tests that start machines share: a home of their own, git repositories, manifests, `firestop`.

The guest image and snapshot templates come from the cache of the caller (XDG_CACHE_HOME), which
`firestop image build` has filled; everything else lies in a temporary folder.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import record_schema

BUILT = pathlib.Path(__file__).resolve().parents[2] / "build/bin/firestop"
FIRESTOP = os.environ.get("FIRESTOP") or (str(BUILT) if BUILT.exists() else "firestop")
# A run that hangs is a failure, not a hung test. Emulation on a busy host is slow: generous.
LIMIT = int(os.environ.get("FIRESTOP_TEST_LIMIT", "240"))

GIT_ENV = {
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Tester", "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "Tester", "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}

MINIMAL = """
firestop: 1
name: test
image: agent-base
capabilities: [shell, filesystem]
limits: {memory: 256MiB, disk: 512MiB}
rating: 3m
"""


class SandboxTest(unittest.TestCase):
    limit = LIMIT

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="firestop-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.state = self.folder / "state"
        self.work = self.folder / "work"
        self.work.mkdir()
        self.addCleanup(self.check_records)
        self.env = dict(os.environ, XDG_STATE_HOME=str(self.state), XDG_CONFIG_HOME=str(self.folder / "config"),
                        NO_COLOR="1", **GIT_ENV)

    # ---- making things

    def manifest(self, text, folder=None, base=MINIMAL, name="firestop.yaml"):
        """Writes a manifest: `base`, then `text`, whose top-level keys replace those of `base`."""
        text = textwrap.dedent(text)
        replaced = set(re.findall(r"^(\w+):", text, re.M))
        kept = [line for line in base.strip().splitlines() if line.split(":")[0] not in replaced]
        path = (folder or self.work) / name
        path.write_text("\n".join(kept) + "\n" + text)
        return path

    def git(self, *args, cwd=None, **kwargs):
        done = subprocess.run(["git", *args], cwd=cwd or self.work, env=self.env, capture_output=True, check=False,
                              **kwargs)
        self.assertEqual(done.returncode, 0, f"git {args}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="surrogateescape").strip()

    def repository(self, files=None, folder=None, *init):
        """A repository with one commit on branch main, at self.work unless said otherwise."""
        folder = folder or self.work
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init, cwd=folder)
        for name, content in (files or {"README": "hello\n"}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "-A", cwd=folder)
        self.git("commit", "-q", "-m", "first", cwd=folder)
        return folder

    # ---- running

    def firestop(self, *args, status=0, cwd=None, **kwargs):
        """Runs firestop to its end; `status` None takes any."""
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        if "input" in kwargs:
            del kwargs["stdin"]
        done = subprocess.run([FIRESTOP, *map(os.fspath, args)], cwd=cwd or self.work, env=self.env, timeout=self.limit,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **kwargs)
        if status is not None and done.returncode != status:
            self.fail(f"firestop {' '.join(map(str, args))}: status {done.returncode}, wanted {status}\n"
                      f"stdout: {done.stdout[-2000:].decode(errors='replace')}\n"
                      f"stderr: {done.stderr[-4000:].decode(errors='replace')}")
        return done

    def run_in(self, script, *args, status=0, **kwargs):
        """`firestop run ARGS -- sh -c SCRIPT`; stdout as text."""
        done = self.firestop("run", *args, "--", "sh", "-c", script, status=status, **kwargs)
        return done.stdout.decode(errors="surrogateescape")

    def start(self, *args, cwd=None, **kwargs):
        process = subprocess.Popen([FIRESTOP, *map(os.fspath, args)], cwd=cwd or self.work, env=self.env, **kwargs)

        def stop():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

        self.addCleanup(stop)
        return process

    def ended(self, done):
        """The record that `run --json` ends with."""
        last = json.loads(done.stderr.decode().strip().splitlines()[-1])
        self.assertEqual(last["event"], "ended")
        return last

    def json_of(self, *args, status=0):
        return json.loads(self.firestop(*args, "--json", status=status).stdout)

    # ---- looking at what is left

    def record_events(self):
        """The newest run's."""
        newest = sorted((self.state / "firestop/runs").glob("2*"))[-1]
        return [json.loads(line) for line in (newest / "evidence/events.jsonl").read_text().splitlines()]

    def network_events(self):
        """What crossed the newest run's network: the data of its record's events, each with its kind."""
        return [{"kind": event["kind"].removeprefix("network."), **event["data"]} for event in self.record_events()
                if event["kind"].startswith("network.")]

    def check_records(self):
        """Every run that any test made has a record that is what firestop wrote, and fits the schema."""
        faults = []
        keys = self.folder / "signers.pem"
        keys.write_text("".join(path.read_text() for path in self.folder.glob("**/evidence-key.pub.pem")))
        for record in sorted(self.state.glob("firestop/runs/*/evidence")):
            done = subprocess.run([FIRESTOP, "log", "verify", f"{record}/", "--signers", keys, "--json"], env=self.env,
                                  check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
            # 3: firestop was killed in the middle; 242: before the record had a file.
            if done.returncode not in (0, 3) and not (done.returncode == 242 and b"evidence.not_found" in done.stdout):
                faults.append(f"{record}: {done.stdout.decode()}{done.stderr.decode()}")
            elif done.returncode != 242 and record_schema.jsonschema:
                self.schema = getattr(self, "schema", None) or record_schema.RecordSchema()
                faults += self.schema.faults(record)
        self.assertEqual(faults, [])

    # ---- looking at this machine

    def descendants_of(self, pid):
        """The processes that come from `pid`, now."""
        parents = {}
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            found = Process.of(int(proc.name))
            if found:
                parents.setdefault(found.parent, []).append(found)
        found, todo = [], [pid]
        while todo:
            for child in parents.get(todo.pop(), []):
                found.append(child)
                todo.append(child.pid)
        return found

    def children_of(self, pid, prefix):
        return [child.pid for child in self.descendants_of(pid) if child.name.startswith(prefix)]


class Process:
    """A process that is told from a later one with the same number by its start time."""

    def __init__(self, pid, name, parent, began):
        self.pid, self.name, self.parent, self.began = pid, name, parent, began

    @staticmethod
    def of(pid):
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        name, rest = stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2:].split()
        return None if rest[0] in "ZX" else Process(pid, name, int(rest[1]), rest[19])

    def alive(self):
        now = Process.of(self.pid)
        return now is not None and now.began == self.began


def main():
    program = unittest.main(verbosity=2, exit=False)
    # A name without tests is no success.
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun else 1)
