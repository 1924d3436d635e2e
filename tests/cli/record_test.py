"""The record on the command line: log, log path, log verify, attest verify; and the docs' commands for openssl."""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402
import record_schema  # noqa: E402

WRITER = os.environ.get("FIRESTOP_EVIDENCE_WRITER", "evidence_writer")
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
RUN = "20261129-201011-abcdef"


class RecordTest(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config" / "firestop"
        self.config.mkdir(parents=True)
        self.env["XDG_CONFIG_HOME"] = str(self.config.parent)

    def record(self, run=RUN, events=30, checkpoint=10, config=None, anchor=None, lossy=False):
        """A run with a record of `events` events and some more."""
        directory = self.make_run(run) / "evidence"
        command = [WRITER, directory, config or self.config, run, str(events), str(checkpoint)]
        subprocess.run(command + ([anchor] if anchor else []), check=True, stdout=subprocess.DEVNULL, timeout=60,
                       env={**os.environ, **({"EVIDENCE_WRITER_LOSES": "1"} if lossy else {})})
        return directory

    def events(self, directory):
        return (directory / "events.jsonl").read_text().splitlines()


class VerifyTest(RecordTest):
    def verify(self, *args, status):
        document = self.json_of("log", "verify", *args, status=status)
        return document, [finding["code"] for finding in document["findings"]]

    def test_intact_and_complete(self):
        directory = self.record()
        document, codes = self.verify("fix", status=0)
        self.assertEqual((document["integrity"], document["complete"], codes), ("intact", True, []))
        self.assertEqual(document["events"], len(self.events(directory)))
        self.assertEqual(document["trusted"]["count"], document["events"])
        self.assertEqual(document["run"], RUN)
        text = self.firestop("log", "verify", "fix").stdout
        self.assertTrue(text.startswith(f"intact: the record of run {RUN} is as its host wrote it"), text)
        self.assertIn("complete: all collectors worked", text)
        # A copy, as somebody else gets it, by its directory, or that of its run.
        for place in (directory, directory.parent):
            self.assertEqual(self.verify(f"{place}/", status=0)[0]["integrity"], "intact")

    def test_broken_is_named(self):
        directory = self.record()
        lines = self.events(directory)
        (directory / "events.jsonl").write_text("\n".join(lines[:14] + lines[15:]) + "\n")
        document, codes = self.verify("fix", status=1)
        self.assertEqual((document["integrity"], codes), ("broken", ["evidence.missing"]))
        self.assertEqual((document["findings"][0]["seq"], document["trusted"]["count"]), (14, 11))
        text = self.firestop("log", "verify", "fix", status=1).stdout
        self.assertIn("evidence.missing\n      record 14 is missing\n", text)
        self.assertIn("Up to checkpoint 1 (11 events, ", text)
        self.assertIn("Nothing after it can be trusted.", text)

    def test_a_prefix_is_not_called_intact(self):
        directory = self.record()
        (directory / "events.jsonl").write_text("\n".join(self.events(directory)[:25]) + "\n{")
        checkpoints = (directory / "checkpoints.jsonl").read_text().splitlines()
        (directory / "checkpoints.jsonl").write_text("\n".join(checkpoints[:3]) + "\n")
        document, codes = self.verify("fix", status=3)
        self.assertEqual((document["integrity"], document["complete"]), ("prefix", False))
        self.assertEqual(codes, ["evidence.cut", "evidence.uncovered", "evidence.not_ended"])
        self.hold(RUN)
        self.assertIn("so far; the run lives", self.firestop("log", "verify", "fix", status=3).stdout)

    def test_incomplete_is_another_answer(self):
        self.record(lossy=True)
        document, codes = self.verify("fix", status=0)
        self.assertEqual((document["integrity"], document["complete"], codes), ("intact", False, []))
        self.assertEqual(document["gaps"], ["at least 3 lost of: files"])
        self.assertIn("incomplete:\n  at least 3 lost of: files\n", self.firestop("log", "verify", "fix").stdout)
        self.verify("fix", "--complete", status=3)

    def test_signers(self):
        self.record(config=self.folder / "theirs")
        # This user has no key yet.
        self.assert_json_error(["log", "verify", "fix", "--json"], "usage.signers", 240)
        self.record("20261129-201012-abcdef")
        document, codes = self.verify(RUN, status=1)
        self.assertEqual(codes, ["evidence.unknown_key", "evidence.unsigned"])
        self.assertIsNone(document["trusted"])
        self.assertIn("Nothing of it can be trusted.", self.firestop("log", "verify", RUN, status=1).stdout)
        signers = self.folder / "signers.pem"
        signers.write_text("the witness:\n" + (self.config / "evidence-key.pub.pem").read_text() +
                           "their host:\n" + (self.folder / "theirs" / "evidence-key.pub.pem").read_text())
        self.verify(RUN, "--signers", signers, status=0)
        signers.write_text("nothing")
        self.assert_json_error(["log", "verify", RUN, "--signers", signers, "--json"], "evidence.bad_key", 242)

    def test_the_anchor_tells_a_record_that_was_cut_back(self):
        anchor = self.folder / "anchor"
        directory = self.record(anchor=str(anchor))
        document, _ = self.verify("fix", "--anchor", anchor, status=0)
        self.assertEqual(document["anchored"], document["checkpoints"])
        lines = self.events(directory)
        checkpoints = (directory / "checkpoints.jsonl").read_text().splitlines()
        (directory / "events.jsonl").write_text("\n".join(lines[:21]) + "\n")
        (directory / "checkpoints.jsonl").write_text("\n".join(checkpoints[:3]) + "\n")
        self.assertEqual(self.verify("fix", status=3)[1], ["evidence.not_ended"])
        self.assertIn("evidence.cut_back", self.verify("fix", "--anchor", anchor, status=1)[1])
        self.assert_json_error(["log", "verify", "fix", "--anchor", "command:cat", "--json"], "evidence.anchor", 242)

    def test_no_record(self):
        self.make_run(RUN)
        (self.config / "evidence-key.pub.pem").write_text("")
        self.assertEqual(self.firestop("log", "path", "fix", status=242).stdout, "")
        self.assert_json_error(["log", "fix", "--json"], "evidence.not_found", 242)
        self.assert_json_error(["log", "verify", "nobody", "--json"], "run.not_found", 240)


class LogTest(RecordTest):
    def test_path(self):
        directory = self.record()
        self.assertEqual(self.firestop("log", "path", "fix").stdout, f"{directory}\n")
        self.assertEqual(self.json_of("log", "path", "fix"), {"directory": str(directory)})

    def test_json_is_the_record(self):
        directory = self.record()
        self.assertEqual(self.firestop("log", "fix", "--json").stdout, (directory / "events.jsonl").read_text())

    def test_filters(self):
        self.record()

        def kinds(*args):
            return [json.loads(line)["kind"] for line in self.firestop("log", "fix", "--json", *args).stdout.splitlines()]

        self.assertEqual(kinds("--kind", "code"), ["code", "code"])
        self.assertEqual(set(kinds("--kind", "process")), {"process.fork"})
        self.assertEqual(kinds("--kind", "record", "--kind", "collectors"),
                         ["record.begin", "collectors", "collectors.done", "record.end"])
        self.assertEqual(kinds("--kind", "proc"), [])
        self.assertEqual(kinds("--pid", "16"), ["process.fork", "code"])
        self.assert_json_error(["log", "fix", "--pid", "x", "--json"], "usage.pid", 240)

    def test_text(self):
        self.record()
        lines = self.firestop("log", "fix").stdout.splitlines()
        self.assertRegex(lines[0], r"^\d\d:\d\d:\d\d\.\d{3}  host   record.begin +.*run=" + RUN)
        self.assertTrue(any("guest  code " in line and "path=/tmp/x16.sh" in line for line in lines))

    def test_follow_ends_with_the_record(self):
        directory = self.make_run(RUN) / "evidence"
        self.hold(RUN)
        whole = self.record("20261129-201012-abcdef", events=3)
        lines = (whole / "events.jsonl").read_text()
        directory.mkdir()
        events = directory / "events.jsonl"
        events.write_text(lines[:300])
        follower = subprocess.Popen([os.environ.get("FIRESTOP", "firestop"), "log", RUN, "--follow", "--json"],
                                    cwd=self.work, env=self.env, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        self.assertIsNone(follower.poll())
        with events.open("a") as out:
            out.write(lines[300:])
        out, _ = follower.communicate(timeout=30)
        self.assertEqual((follower.returncode, out), (0, lines))

    def test_follow_ends_with_the_run(self):
        directory = self.make_run(RUN) / "evidence"
        lock = self.hold(RUN)
        directory.mkdir()
        (directory / "events.jsonl").write_text("")
        follower = subprocess.Popen([os.environ.get("FIRESTOP", "firestop"), "log", RUN, "--follow", "--json"],
                                    cwd=self.work, env=self.env, stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        self.assertIsNone(follower.poll())
        lock.close()
        self.assertEqual(follower.communicate(timeout=30)[0], "")
        self.assertEqual(follower.returncode, 0)

    def test_a_run_may_be_called_verify(self):
        self.record()
        done = self.firestop("log", "--json", "--", "verify", status=240)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "run.not_found")


class AttestTest(RecordTest):
    def test_true_of_its_record(self):
        directory = self.record()
        document = self.json_of("attest", "verify", "fix")
        self.assertTrue(document["record_checked"])
        subjects = document["statement"]["subject"]
        self.assertEqual(subjects[0]["digest"]["sha256"],
                         hashlib.sha256((directory / "events.jsonl").read_bytes()).hexdigest())
        text = self.firestop("attest", "verify", "fix").stdout
        self.assertIn("The record beside it is intact and says the same.", text)

        alone = self.work / "attestation.json"
        alone.write_bytes((directory / "attestation.json").read_bytes())
        self.assertFalse(self.json_of("attest", "verify", "attestation.json")["record_checked"])
        self.assertIn("The record is not beside it", self.firestop("attest", "verify", "./attestation.json").stdout)

    def test_not_true(self):
        directory = self.record()
        other = self.record("20261129-201012-abcdef", events=4)
        attestation = (directory / "attestation.json").read_text()
        (directory / "attestation.json").write_bytes((other / "attestation.json").read_bytes())
        self.assert_json_error(["attest", "verify", RUN, "--json"], "evidence.other_run", 1)
        envelope = json.loads(attestation)
        payload = base64.b64decode(envelope["payload"]).replace(b'"status":0', b'"status":1')
        envelope["payload"] = base64.b64encode(payload).decode()
        (directory / "attestation.json").write_text(json.dumps(envelope))
        self.assert_json_error(["attest", "verify", RUN, "--json"], "evidence.bad_signature", 1)
        (directory / "attestation.json").write_text(attestation)
        with (directory / "events.jsonl").open("a") as out:
            out.write("{}\n")
        self.assert_json_error(["attest", "verify", RUN, "--json"], "evidence.not_intact", 1)
        (directory / "attestation.json").unlink()
        self.assert_json_error(["attest", "verify", RUN, "--json"], "file.open", 242)


@unittest.skipUnless(record_schema.jsonschema, "needs python3-jsonschema")
class SchemaTest(RecordTest):
    def test_records_fit(self):
        schema = record_schema.RecordSchema()
        self.assertEqual(schema.faults(self.record(lossy=True)), [])

    def test_the_schema_refuses(self):
        schema = record_schema.RecordSchema()
        good = [json.loads(line) for line in self.events(self.record())]
        self.assertEqual([error.message for event in good for error in schema.event.iter_errors(event)], [])
        by_kind = {event["kind"]: event for event in good}
        for kind, change in (
                ("code", {"vantage": "host"}), ("code", {"kind": "codes"}), ("code", {"extra": 1}),
                ("code", {"time": "2026-11-29 20:10:11"}), ("code", {"prev": "00"}), ("code", {"seq": -1}),
                ("code", {"data": {}}), ("collectors.done", {"data": {"more": 1}}),
                ("process.fork", {"data": {"pid": "7", "parent": 1, "at_us": 0}}),
                ("record.begin", {"data": {**by_kind["record.begin"]["data"], "format": 2}}),
                ("code", {"data": {**by_kind["code"]["data"], "path": {"base64": "eA==", "more": 1}}}),
                ("code", {"data": {**by_kind["code"]["data"], "how": "magic"}})):
            with self.subTest(kind=kind, change=change):
                self.assertFalse(schema.event.is_valid({**by_kind[kind], **change}))


class ByHandTest(RecordTest):
    """What docs/evidence.md tells people to type, as it stands there."""

    def blocks(self):
        text = (SOURCE / "docs" / "evidence.md").read_text()
        found = re.findall(r"^```sh by-hand\n(.*?)^```", text, re.M | re.S)
        self.assertEqual(len(found), 2)
        return "\n".join(found)

    def by_hand(self):
        firestop = pathlib.Path(os.environ.get("FIRESTOP", "firestop")).resolve()
        path = f"{firestop.parent}:{self.env['PATH']}"
        return subprocess.run(["sh", "-e", "-c", self.blocks()], cwd=self.work, env={**self.env, "PATH": path},
                              capture_output=True, text=True, check=False, timeout=60)

    def test_openssl_checks_checkpoint_and_attestation(self):
        directory = self.record()
        done = self.by_hand()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        first, head, digest, key, second = done.stdout.splitlines()
        self.assertEqual((first, second), ("Signature Verified Successfully",) * 2)
        self.assertEqual(head, digest)
        self.assertEqual(key, json.loads(self.events(directory)[0])["data"]["key"])

    def test_openssl_sees_what_was_changed(self):
        directory = self.record()
        checkpoints = (directory / "checkpoints.jsonl").read_text().splitlines()
        last = json.loads(checkpoints[-1])
        last["payload"] = json.loads(checkpoints[-2])["payload"]
        with (directory / "checkpoints.jsonl").open("a") as out:
            out.write(json.dumps(last, separators=(",", ":")) + "\n")
        done = self.by_hand()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Signature Verification Failure", done.stdout + done.stderr)


if __name__ == "__main__":
    main()
