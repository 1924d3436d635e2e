"""What can be done to a run's record: each is named. And a record that cannot be kept ends the run."""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import FIRESTOP, LIMIT, SandboxTest, main  # noqa: E402

SCRIPT = "cat > /tmp/x.sh <<'END'\necho from a script\nEND\nsh /tmp/x.sh; rm /tmp/x.sh\n" + "/bin/true;" * 12


class Record:
    """A copy of a record, to be changed."""

    def __init__(self, directory):
        self.directory = directory
        self.events = (directory / "events.jsonl").read_text().splitlines()
        self.checkpoints = (directory / "checkpoints.jsonl").read_text().splitlines()

    def store(self):
        (self.directory / "events.jsonl").write_text("".join(f"{line}\n" for line in self.events))
        (self.directory / "checkpoints.jsonl").write_text("".join(f"{line}\n" for line in self.checkpoints))

    def change(self, index, **members):
        event = json.loads(self.events[index])
        event.update(members)
        self.events[index] = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def chain(self, first):
        """The hashes made right again, by somebody who has no key."""
        for index in range(first, len(self.events)):
            prev = hashlib.sha256(self.events[index - 1].encode()).hexdigest() if index else "0" * 64
            self.change(index, seq=index, prev=prev)


class Inv11Tampering(SandboxTest):
    def contents(self, record):
        return [path for path in (record.directory / "content").glob("*/*") if path.is_file()]

    def cases(self, other):
        """Each with the code that names it and its exit status."""
        def cut(count):
            return lambda r: r.events.__delitem__(slice(count, None))

        def swap(lines, i, j):
            lines[i], lines[j] = lines[j], lines[i]

        def half(record):
            record.store()
            text = (record.directory / "events.jsonl").read_bytes()
            (record.directory / "events.jsonl").write_bytes(text[:-10])
            return False

        def content(record):
            path = self.contents(record)[0]
            path.chmod(0o600)
            path.write_text("echo harmless\n")

        def rewritten(record):
            record.change(3, time="2026-01-01T00:00:00.000000Z")
            record.chain(4)

        def foreign_key(record):
            shutil.copytree(other, record.directory, dirs_exist_ok=True)
            return False

        def forged(record):
            envelope = json.loads(record.checkpoints[-1])
            payload = json.loads(base64.b64decode(envelope["payload"]))
            payload["count"] -= 1
            payload["head"] = hashlib.sha256(record.events[-2].encode()).hexdigest()
            text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
            envelope["payload"] = base64.b64encode(text.encode()).decode()
            record.checkpoints[-1] = json.dumps(envelope, separators=(",", ":"))
            del record.events[-1]

        return (
            ("untouched", lambda r: None, None, 0),
            ("the last three removed", cut(-3), "evidence.truncated", 1),
            ("the first removed", lambda r: r.events.pop(0), "evidence.missing", 1),
            ("one in the middle removed", lambda r: r.events.pop(7), "evidence.missing", 1),
            ("two swapped", lambda r: swap(r.events, 5, 9), "evidence.out_of_order", 1),
            ("one twice", lambda r: r.events.insert(5, r.events[4]), "evidence.duplicate", 1),
            ("one changed", lambda r: r.change(6, mono_us=1), "evidence.changed", 1),
            ("a gap in the numbers", lambda r: r.change(6, seq=7), "evidence.changed", 1),
            ("cut within the last", half, "evidence.truncated", 1),
            ("another line between", lambda r: r.events.insert(5, "{}"), "evidence.bad_event", 1),
            ("chained anew", rewritten, "evidence.rewritten", 1),
            ("the last checkpoint an older one", lambda r: r.checkpoints.__setitem__(-1, r.checkpoints[0]),
             "evidence.checkpoint_order", 1),
            ("the first checkpoint removed", lambda r: r.checkpoints.pop(0), "evidence.checkpoint_missing", 1),
            ("all checkpoints removed", lambda r: r.checkpoints.clear(), "evidence.unsigned", 1),
            ("the last checkpoint removed", lambda r: r.checkpoints.pop(), "evidence.uncovered", 3),
            ("a forged checkpoint", forged, "evidence.bad_signature", 1),
            ("another run's checkpoints", lambda r: r.checkpoints.__setitem__(
                slice(None), (self.second / "checkpoints.jsonl").read_text().splitlines()), "evidence.other_run", 1),
            ("another key's record", foreign_key, "evidence.unknown_key", 1),
            ("a content changed", content, "evidence.content_changed", 1),
            ("contents removed", lambda r: shutil.rmtree(r.directory / "content"), "evidence.content_missing", 1),
        )

    def evidence(self, name):
        return pathlib.Path(self.firestop("log", "path", name).stdout.decode().strip())

    def test_inv11_each_is_named(self):
        self.manifest("")
        self.run_in(SCRIPT, "--name", "first")
        self.run_in("true", "--name", "second")
        self.second = self.evidence("second")
        ours = self.env["XDG_CONFIG_HOME"]
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "their-config")
        self.run_in("true", "--name", "third")
        self.env["XDG_CONFIG_HOME"] = ours
        first, third = self.evidence("first"), self.evidence("third")

        document = self.json_of("log", "verify", "first")
        self.assertEqual((document["integrity"], document["findings"]), ("intact", []))
        self.assertTrue(list((first / "content").glob("*/*")), "the script is not in the record")
        self.assertTrue(self.json_of("attest", "verify", "first")["record_checked"])
        # Its own user reads it, and nobody else.
        self.assertEqual(first.stat().st_mode & 0o777, 0o700)

        for name, change, code, status in self.cases(third):
            with self.subTest(name):
                copy = self.folder / "copy" / "record"
                shutil.rmtree(copy.parent, ignore_errors=True)
                shutil.copytree(first, copy)
                record = Record(copy)
                if change(record) is not False:
                    record.store()
                document = self.json_of("log", "verify", f"{copy}/", status=status)
                codes = [finding["code"] for finding in document["findings"]]
                if code:
                    self.assertIn(code, codes)
                else:
                    self.assertEqual(codes, [])
                if status and name != "the last checkpoint removed":
                    refused = self.firestop("attest", "verify", copy / "attestation.json", status=1)
                    self.assertEqual(refused.stdout, b"")


class Inv11RecordCannotBeKept(SandboxTest):
    def test_inv11_an_anchor_that_refuses_ends_the_run(self):
        self.manifest("")
        anchor = f"command:test ! -e {self.folder}/told && touch {self.folder}/told"
        begun = time.monotonic()
        done = self.firestop("run", "--json", "--name", "run", "--anchor", anchor, "--", "sleep", "100", status=247)
        self.assertLess(time.monotonic() - begun, 90)
        self.assertEqual(self.ended(done)["error"]["code"], "evidence.anchor")
        document = self.json_of("log", "verify", "run", status=None)
        self.assertIn(document["integrity"], ("intact", "prefix"))
        self.assertFalse(document["complete"])

    def test_inv11_an_anchor_that_is_not_there_starts_nothing(self):
        self.manifest("")
        marker = self.folder / "ran"
        done = self.firestop("run", "--anchor", "/nowhere/at/all", "--", "touch", marker, status=None)
        self.assertIn(done.returncode, (242, 247))
        self.assertIn(b"cannot open the anchor", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, to mount a small disk")
    def test_inv11_a_full_disk_ends_the_run_and_the_prefix_verifies(self):
        self.manifest("limits: {memory: 256MiB, disk: 64MiB, result: 16MiB}")
        self.run_in("true")  # caches are warm, and the key is made
        disk, kept, pid = self.folder / "disk", self.folder / "kept", self.folder / "pid"
        disk.mkdir()
        # A state directory on a disk of its own, which is filled from outside while the run is on.
        script = (f"mount -t tmpfs -o size=120m none {disk} && echo $$ > {pid} && export XDG_STATE_HOME={disk}; "
                  f"{FIRESTOP} run --json --name run -- sh -c 'while :; do /bin/true; done' 2> {kept}.err; "
                  f"status=$?; cp -r {disk}/firestop/runs/*/evidence {kept}; exit $status")
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], cwd=self.work, env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        inside = None
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and process.poll() is None:
            if pid.exists() and pid.read_text().strip():
                inside = pathlib.Path(f"/proc/{pid.read_text().strip()}/root{disk}")
                found = list(inside.glob("firestop/runs/*/evidence/events.jsonl"))
                if found and b"process.exec" in found[0].read_bytes():
                    break
            time.sleep(0.2)
        self.assertIsNone(process.poll(), "the run ended before its disk was full: " +
                          (pathlib.Path(f"{kept}.err").read_text() if process.poll() is not None else ""))
        with (inside / "filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(1 << 16))
            except OSError:
                pass
        self.assertEqual(process.wait(LIMIT), 247, pathlib.Path(f"{kept}.err").read_text())
        last = json.loads(pathlib.Path(f"{kept}.err").read_text().strip().splitlines()[-1])
        self.assertEqual(last["error"]["code"], "evidence.write")
        # Its end fits where a larger event did not, or nothing does: both verify, and neither is complete.
        document = self.json_of("log", "verify", f"{kept}/", status=None)
        self.assertIn(document["integrity"], ("intact", "prefix"), document)
        self.assertFalse(document["complete"], document)
        self.assertGreater(document["trusted"]["count"], 0)


if __name__ == "__main__":
    main()
