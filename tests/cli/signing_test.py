"""lock, sign, verify, and what `run` refuses before anything is started. With the real ssh-keygen."""
import hashlib
import json
import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import GOOD_MANIFEST, CliTest, main  # noqa: E402

# An image of a registry is pinned in the manifest itself, so that locking builds none.
WITH_REPOSITORY = f"""\
firestop: 1
name: tidy
image: oci:debian@sha256:{"a" * 64}
workspace:
  entries:
    repo: {{type: git_repo, repo: ".", ref: main}}
command: [sh, -c, "true"]
capabilities: [shell, filesystem]
"""


class SigningTest(CliTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "config"
        self.env["XDG_CONFIG_HOME"] = str(self.config)
        self.env.update({"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
                         "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"})
        self.key = self.make_key("alice")
        self.signers = self.allow(f"alice@example.com {self.public('alice')}\n")

    def tool(self, *args, **kwargs):
        done = subprocess.run([*map(os.fspath, args)], cwd=self.work, env=self.env, capture_output=True, timeout=60,
                              check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def make_key(self, name):
        path = self.folder / name
        self.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path)
        return path

    def public(self, name):
        return " ".join((self.folder / f"{name}.pub").read_text().split()[:2])

    def allow(self, text, name="signers"):
        path = self.folder / name
        path.write_text(text)
        return path

    def commit(self):
        self.tool("git", "commit", "-q", "--allow-empty", "-m", "x")

    def repository(self):
        self.tool("git", "init", "-q", "-b", "main", ".")
        self.commit()
        return self.manifest(WITH_REPOSITORY)

    def digest(self):
        return hashlib.sha256(self.firestop("explain", "--format", "canonical").stdout.encode()).hexdigest()

    def refused(self, code, *args):
        """verify and run say the same, with 241; run has made nothing."""
        command = ("--allowed-signers", self.signers, *args)
        self.assert_json_error(("verify", *command, "--json"), code, 241)
        done = self.firestop("run", *command, "--json", status=241)
        self.assertEqual(done.stdout, "")
        ended = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((ended["event"], ended["error"]["code"]), ("ended", code))
        self.assertNotIn("run", ended)
        self.assertEqual(self.json_of("runs"), [])


class SignTest(SigningTest):
    def test_sign_and_verify(self):
        self.manifest()
        done = self.firestop("sign", "--key", self.key)
        self.assertEqual(done.stdout, f"firestop.yaml.sig: signed sha256:{self.digest()}\n")
        self.assertIn("without a lock", done.stderr)
        self.assertEqual((self.work / "firestop.yaml.sig").stat().st_mode & 0o777, 0o644)
        said = self.firestop("verify", "--allowed-signers", self.signers).stdout
        self.assertIn("signed by alice@example.com (ssh-ed25519 SHA256:", said)
        self.assertIn(self.digest(), said)
        as_json = self.json_of("verify", "--allowed-signers", self.signers)
        self.assertEqual((as_json["principal"], as_json["locked"], as_json["manifest_sha256"]),
                         ("alice@example.com", False, self.digest()))

    def test_by_hand_both_ways(self):
        self.manifest()
        self.firestop("sign", "--key", self.key)
        canonical = self.firestop("explain", "--format", "canonical").stdout.encode()
        good = self.tool("ssh-keygen", "-Y", "verify", "-n", "firestop-manifest", "-f", self.signers, "-I",
                         "alice@example.com", "-s", "firestop.yaml.sig", input=canonical)
        self.assertIn(b"Good", good)
        theirs = self.tool("ssh-keygen", "-Y", "sign", "-n", "firestop-manifest", "-f", self.key, input=canonical)
        (self.work / "theirs.sig").write_bytes(theirs)
        self.firestop("verify", "--allowed-signers", self.signers, "--signature", "theirs.sig")

    def test_layout_may_change_and_what_matters_may_not(self):
        path = self.manifest()
        self.firestop("sign", "--key", self.key)
        path.write_text("# a comment\n" + GOOD_MANIFEST.replace("rating: 5m", "rating: 300s"))
        self.firestop("verify", "--allowed-signers", self.signers)
        path.write_text(GOOD_MANIFEST.replace("rating: 5m", "rating: 6m"))
        self.refused("signature.changed")

    def test_an_unsigned_one(self):
        self.manifest()
        self.refused("signature.missing")

    def test_signed_by_somebody_else(self):
        self.manifest()
        self.firestop("sign", "--key", self.make_key("mallory"))
        self.refused("signature.unknown_signer")

    def test_out_of_date(self):
        self.manifest()
        self.firestop("sign", "--key", self.key)
        self.signers.write_text(f'alice valid-before="20200101" {self.public("alice")}\n')
        self.refused("signature.expired")
        self.signers.write_text(f'alice valid-after="20990101" {self.public("alice")}\n')
        self.refused("signature.not_yet_valid")

    def test_identity(self):
        self.manifest()
        self.firestop("sign", "--key", self.key)
        self.firestop("verify", "--allowed-signers", self.signers, "--identity", "alice@example.com")
        done = self.firestop("verify", "--allowed-signers", self.signers, "--identity", "bob", status=None)
        self.assert_error(done, "does not allow", 241)

    def test_bad_words(self):
        self.manifest()
        self.assert_error(self.firestop("sign", status=None), "--key KEY", 240)
        self.assert_error(self.firestop("verify", status=None), "--allowed-signers FILE", 240)
        self.assert_error(self.firestop("verify", "--allowed-signers", "", status=None), "names no file", 240)
        self.assert_error(self.firestop("run", "--allowed-signers", "", status=None), "names no file", 240)
        self.assert_error(self.firestop("sign", "--key", "nokey", status=None), "no key nokey", 242)
        self.assertFalse((self.work / "firestop.yaml.sig").exists())

    def test_a_bad_manifest_is_not_signed(self):
        self.manifest("firestop: 1\n")
        self.firestop("sign", "--key", self.key, status=240)
        self.assert_json_error(("sign", "--key", self.key, "--json"), "manifest.invalid", 240)
        self.assertFalse((self.work / "firestop.yaml.sig").exists())

    def test_a_passphrase_is_asked_for_on_the_terminal(self):
        self.manifest()
        path = self.folder / "locked"
        self.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "open sesame", "-f", path)
        self.assertEqual(self.sign_on_a_terminal(path, b"open sesame\n"), 0)
        self.signers.write_text(f"alice {self.public('locked')}\n")
        self.firestop("verify", "--allowed-signers", self.signers)

    def sign_on_a_terminal(self, key, answer):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            program = os.environ.get("FIRESTOP", "firestop")
            os.execvpe(program, [program, "sign", "--key", str(key)], self.env)
        seen = b""
        while b"passphrase" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, answer)
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:  # how a terminal without writers ends
            pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class LockTest(SigningTest):
    def test_what_is_locked(self):
        self.repository()
        said = self.firestop("lock").stdout
        lock = json.loads((self.work / "firestop.lock").read_text())
        commit = self.tool("git", "rev-parse", "main").decode().strip()
        self.assertEqual(lock, {"firestop_lock": 1, "image": None, "repositories": {
            "repo": {"ref": "main", "commit": commit, "object_format": "sha1"}}})
        self.assertIn(commit, said)
        self.assertIn(self.digest(), said)
        self.firestop("lock", "--check")

    def test_check(self):
        self.repository()
        self.assert_error(self.firestop("lock", "--check", status=None), "there is no firestop.lock", 242)
        self.firestop("lock")
        before = (self.work / "firestop.lock").read_text()
        self.commit()
        done = self.firestop("lock", "--check", status=242)
        self.assertIn("repo: ", done.stderr)
        self.assertEqual((self.work / "firestop.lock").read_text(), before)

    def test_refs_that_are_not_there(self):
        path = self.repository()
        path.write_text(WITH_REPOSITORY.replace("ref: main", "ref: nowhere"))
        self.assert_error(self.firestop("lock", status=None), "nowhere", 242)
        self.assertFalse((self.work / "firestop.lock").exists())

    def test_the_lock_is_signed_with_the_manifest(self):
        self.repository()
        self.firestop("lock")
        done = self.firestop("sign", "--key", self.key)
        self.assertIn("with firestop.lock", done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertTrue(self.json_of("verify", "--allowed-signers", self.signers)["locked"])
        lock = self.work / "firestop.lock"
        text = lock.read_text()
        lock.write_text(text.replace('"ref": "main"', '"ref": "trunk"'))
        self.firestop("verify", "--allowed-signers", self.signers, status=241)
        lock.write_text("{}")
        done = self.firestop("run", "--allowed-signers", self.signers, status=241)
        self.assertIn("firestop.lock", done.stderr)
        lock.unlink()
        self.refused("signature.changed")
        lock.write_text(text.replace("\n", "\n ") + "\n")  # layout
        self.firestop("verify", "--allowed-signers", self.signers)

    def test_a_lock_of_another_manifest(self):
        path = self.repository()
        self.firestop("lock")
        path.write_text(WITH_REPOSITORY.replace("ref: main", "ref: trunk"))
        self.assert_error(self.firestop("sign", "--key", self.key, status=None), "the lock 'main'", 242)
        done = self.firestop("run", status=242)
        self.assertIn("the lock 'main'", done.stderr)
        self.assertEqual(self.json_of("runs"), [])


class HostTest(SigningTest):
    def configure(self, text):
        path = self.config / "firestop" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_host_that_requires_signatures(self):
        self.manifest()
        self.configure(f"require_signature: true\nallowed_signers: {self.signers}\n")
        done = self.firestop("run", status=241)
        self.assertIn("is not signed", done.stderr)
        self.firestop("sign", "--key", self.key)
        self.assertIn("alice", self.firestop("verify").stdout)
        self.signers.write_text("")
        self.firestop("run", status=241)

    def test_a_host_that_does_not_say_whose(self):
        self.manifest()
        self.configure("require_signature: true\n")
        self.assertIn("names no allowed_signers", self.firestop("run", status=241).stderr)

    def test_a_configuration_that_is_wrong_is_not_passed_over(self):
        self.manifest()
        self.configure("require_signatures: true\n")
        self.assertRegex(self.firestop("run", status=242).stderr, r"config\.yaml:1:1: require_signatures: ")


if __name__ == "__main__":
    main()
