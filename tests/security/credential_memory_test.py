"""The value of a credential, looked for wherever it must not be while it is used: in the memory of every other process of
the run, the guest's whole memory among it, in the files that they have open, and in what is left behind."""
import os
import pathlib
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from memory_search import Search  # noqa: E402
from sandbox_test import SandboxTest, main  # noqa: E402
from tls_server import Authority, Server  # noqa: E402

VALUE = "real-value-of-the-key-that-stays-outside-0123456789"
MANIFEST = """
egress:
  - {host: api.example.com, methods: [POST], paths: [/v1/**], credential: model}
credentials:
  model: {env: API_KEY, inject: bearer, prefix: sk-}
"""
# The answer repeats the value; what comes in is kept in variables, files and the page cache.
SCRIPT = r"""
echo "$API_KEY"
curl -sS --http1.1 -D head -d "hello" -H "Authorization: Bearer $API_KEY" https://api.example.com/v1/me > answer
KEPT=$(cat answer head); sync
echo done; read line; echo "${#KEPT}"
"""


@unittest.skipUnless(os.geteuid() == 0, "reads the memory of processes that keep everybody out")
class CredentialMemoryTest(SandboxTest):
    def setUp(self):
        super().setUp()
        self.arrived, self.go_on = threading.Event(), threading.Event()
        authority = Authority(self.folder / "ca")
        self.server = Server(authority.context_for("api.example.com"), self.answer)
        self.addCleanup(self.server.close)
        self.addCleanup(self.go_on.set)
        bindings = self.folder / "config/firestop/credentials.yaml"
        bindings.parent.mkdir(parents=True)
        bindings.write_text("model: {hosts: [api.example.com], env: REAL_KEY}\n")
        bindings.chmod(0o600)
        self.env["REAL_KEY"] = VALUE
        self.manifest(MANIFEST)
        self.options = ["--connect-to", f"api.example.com:443=127.0.0.1:{self.server.port}", "--upstream-ca",
                        str(authority.certificate)]
        self.search = Search(VALUE)

    def answer(self, request):
        self.arrived.set()
        self.go_on.wait(120)
        return f"you sent {request.headers['Authorization']}\n"

    @staticmethod
    def files_of(pid):
        """The disks among them; not what it can only read, which nothing of the run is in."""
        for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            flags = int(pathlib.Path(f"/proc/{pid}/fdinfo/{path.name}").read_text().split("flags:")[1].split()[0], 8)
            if os.path.isfile(path) and flags & os.O_ACCMODE != os.O_RDONLY:
                yield path

    def look_everywhere(self, top, when):
        """Which processes of the run have it; the two that may are left out of the rest."""
        have = set()
        for pid in [top] + [child.pid for child in self.descendants_of(top)]:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            what = next((word for word in words if word in ("__credentials", "__egress")), pathlib.Path(words[0]).name)
            found, seen = self.search.in_memory(pid)
            self.assertGreater(seen, 100_000, f"{what} was not read")
            if "qemu" in what:
                self.assertGreater(seen, 30 << 20, "the guest's memory was not read")
                has = Search(self.placeholder, only="plain").in_memory(pid)[0]
                self.assertEqual(has, {"plain"}, "what the guest does have is not found")
            if found:
                have.add(what)
            self.assertNotIn(VALUE, "\0".join(words), what)
            for path in self.files_of(pid):
                self.assertEqual(self.search.in_file(path), set(), f"{when}: {what} {os.readlink(path)}")
        self.assertIn("__credentials", have, f"{when}: the search finds nothing")
        self.assertEqual(have - {"__credentials", "__egress"}, set(), when)
        return have

    def test_inv08_no_other_process_and_no_file_has_the_value(self):
        process = self.start("run", *self.options, "--", "sh", "-c", SCRIPT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.placeholder = process.stdout.readline().decode().strip()
        self.assertTrue(self.placeholder.startswith("sk-"), self.placeholder)
        self.assertTrue(self.arrived.wait(60))
        self.assertEqual(self.server.requests[0][2]["Authorization"], f"Bearer {VALUE}")
        self.look_everywhere(process.pid, "while the request is on its way")
        self.go_on.set()
        self.assertEqual(process.stdout.readline(), b"done\n")
        self.look_everywhere(process.pid, "after it was answered")
        out, err = process.communicate(b"\n", timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertGreater(int(out), 100)
        # The disks of the run are gone; what is kept, told and logged has nothing.
        looked = 0
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.assertEqual(self.search.in_file(path), set(), path)
                looked += 1
        self.assertGreater(looked, 5)
        self.assertEqual(self.search.in_bytes([out + err]), set())


if __name__ == "__main__":
    main()
