"""What the tests of whole sandboxes with a network share: an authority, servers behind names, what was recorded."""
import json
import pathlib

from egress_servers import Api
from sandbox_test import SandboxTest, main  # noqa: F401  pylint: disable=unused-import
from tls_server import Authority

IMAGES = pathlib.Path(__file__).resolve().parent.parent / "images"


class EgressTest(SandboxTest):
    MANIFEST = ""  # of those that a test doesn't give

    def setUp(self):
        super().setUp()
        self.env["FIRESTOP_IMAGES"] = str(IMAGES)
        self.authority = Authority(self.folder / "ca")
        self.options = ["--upstream-ca", str(self.authority.certificate)]

    def serve(self, server, *names):
        self.addCleanup(server.close)
        for name in names:
            self.options += server.reach(name)
        return server

    def api(self):
        return self.serve(Api(self.authority.context_for("api.example.com")), "api.example.com")

    def sandbox(self, script, manifest="", **kwargs):
        self.manifest(manifest or self.MANIFEST)
        return self.run_in(script, *self.options, **kwargs)

    def python(self, script, manifest=""):
        """What a Python script prints in the sandbox, as a list of JSON values, one a line."""
        out = self.sandbox(f"cat > client.py <<'END'\nimport json\n{script}\nEND\npython3 client.py", manifest)
        return [json.loads(line) for line in out.splitlines()]

    def crossings(self, **members):
        """What the newest run's record has of its network."""
        return [c for c in self.network_events() if all(c.get(name) == value for name, value in members.items())]
