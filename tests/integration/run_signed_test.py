"""Runs that are held to a lock and a signature, in real machines."""
import hashlib
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402


class SignedTest(SandboxTest):
    def setUp(self):
        super().setUp()
        self.repository()
        self.manifest("""
            workspace: {entries: {repo: {type: git_repo, repo: ".", ref: main}}}
            command: [sh, -c, "git -C repo rev-parse HEAD; git -C repo symbolic-ref HEAD"]
            """)
        self.key, self.signers = self.folder / "key", self.folder / "signers"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.key], check=True)
        self.signers.write_text("alice " + (self.folder / "key.pub").read_text())
        self.firestop("lock")
        self.firestop("sign", "--key", self.key)

    def test_the_locked_commit_runs_and_the_record_names_digest_and_signer(self):
        locked = self.git("rev-parse", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "later")
        done = self.firestop("run", "--name", "one", "--allowed-signers", self.signers)
        self.assertEqual(done.stdout.decode().split(), [locked, "refs/heads/main"])
        record = self.json_of("show", "one")
        canonical = self.firestop("explain", "--format", "canonical").stdout
        self.assertEqual(record["manifest"]["sha256"], hashlib.sha256(canonical).hexdigest())
        self.assertEqual(record["signer"]["principal"], "alice")
        self.assertTrue(record["signer"]["key"].startswith("SHA256:"))
        self.assertEqual((pathlib.Path(record["directory"]) / "manifest.canonical").read_bytes(), canonical)
        shown = self.firestop("show", "one").stdout.decode()
        self.assertIn("signed by", shown)
        self.assertIn("alice", shown)

    def test_another_image_than_the_locked_one_does_not_start(self):
        path = self.work / "firestop.lock"
        lock = json.loads(path.read_text())
        lock["image"]["digest"] = "sha256:" + "0" * 64
        path.write_text(json.dumps(lock))
        done = self.firestop("run", "--allowed-signers", self.signers, "--json", status=241)
        self.assertEqual(self.ended(done)["error"]["code"], "signature.changed")
        done = self.firestop("run", "--json", status=242)
        self.assertEqual(self.ended(done)["error"]["code"], "lock.image_changed")
        self.firestop("sign", "--key", self.key)
        done = self.firestop("run", "--allowed-signers", self.signers, "--json", status=241)
        ended = self.ended(done)
        self.assertEqual(ended["error"]["code"], "signature.lock")
        self.assertEqual(ended["run"]["started_ms"], 0)
        self.assertIn("the image agent-base is", ended["error"]["message"])


if __name__ == "__main__":
    main()
