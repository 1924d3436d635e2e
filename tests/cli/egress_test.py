"""egress test: what the rules say of one request, without a network."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402

MANIFEST = """\
firestop: 1
name: calls
egress:
  - {host: api.example.com, methods: [GET, POST], paths: [/v1/**], credential: model}
  - {host: "*.example.org", websocket: true}
  - {host: pass.example.net, protocol: tls}
  - {host: db.example.net, protocol: tcp, port: 5432}
  - {cidr: 93.184.216.0/24, port: 22}
  - {host: git.example.com, git: {repository: acme/widget, fetch: true}}
credentials:
  model: {env: API_KEY, inject: bearer}
"""


class EgressTest(CliTest):
    def ask(self, method, url, status):
        return self.json_of("egress", "test", "firestop.yaml", method, url, status=status)

    def test_each_answer(self):
        self.manifest(MANIFEST)
        for method, url, code, rule, credential in (
                ("GET", "https://api.example.com/v1/models", None, "egress[0]", "model"),
                ("HEAD", "https://API.example.com./v1/models?x=1#y", None, "egress[0]", "model"),
                ("GET", "http://api.example.com/v1/models", None, "egress[0]", None),
                ("GET", "http://api.example.com:443/v1/models", "egress.plain_text", "egress[0]", None),
                ("DELETE", "https://api.example.com/v1/models", "egress.method", "egress[0]", None),
                ("GET", "https://api.example.com/v1/../v2", "egress.path", "egress[0]", None),
                ("GET", "https://api.example.com:8443/v1/", "egress.no_rule", "egress[0]", None),
                ("GET", "https://example.com", "egress.no_rule", None, None),
                ("GET", "wss://chat.example.org/", None, "egress[1]", None),
                ("GET", "wss://api.example.com/v1/ws", "egress.protocol", "egress[0]", None),
                ("GET", "https://pass.example.net/any", None, "egress[2]", None),
                ("GET", "http://pass.example.net:443/any", "egress.protocol", "egress[2]", None),
                ("-", "tls://pass.example.net", None, "egress[2]", None),
                ("-", "tcp://db.example.net:5432", None, "egress[3]", None),
                ("-", "tcp://93.184.216.34:22", None, "egress[4]", None),
                ("-", "tcp://127.0.0.1:22", "egress.no_rule", None, None),
                ("GET", "https://git.example.com/acme/widget.git/info/refs?service=git-upload-pack", None,
                 "egress[5]", None),
                ("GET", "https://git.example.com/acme/other/info/refs", "egress.git_repository", "egress[5]", None)):
            with self.subTest(method=method, url=url):
                said = self.ask(method, url, 0 if code is None else 1)
                self.assertEqual((said["allowed"], said["code"], said["rule"], said["credential"]),
                                 (code is None, code, rule, credential), said)
                self.assertEqual(said["message"] is None, code is None)

    def test_for_people(self):
        self.manifest(MANIFEST)
        done = self.firestop("egress", "test", "firestop.yaml", "POST", "https://api.example.com/v1/chat")
        self.assertEqual(done.stdout, """\
allowed  POST https://api.example.com/v1/chat
  rule        egress[0]: api.example.com:443,80, GET POST on /v1/**
  credential  model, in place of the placeholder in $API_KEY
""")
        done = self.firestop("egress", "test", "firestop.yaml", "DELETE", "https://api.example.com/v1/chat", status=1)
        self.assertEqual(done.stdout, """\
denied   DELETE https://api.example.com/v1/chat
  code        egress.method
  nearest     egress[0]: api.example.com:443,80, GET POST on /v1/**
  why         DELETE is not allowed for /v1/chat on api.example.com:443; egress[0] has GET POST
  what to do  If it is needed, ask whoever wrote the manifest for the method in egress[0]
""")

    def test_what_is_wrong_is_said(self):
        self.manifest(MANIFEST)
        for url in ("api.example.com", "ftp://api.example.com/", "https://", "https://a b/", "tcp://db.example.net",
                    "https://user@api.example.com/"):
            done = self.firestop("egress", "test", "firestop.yaml", "GET", url, status=240)
            self.assertIn("is no URL" if "://" not in url or url.startswith("ftp") else "has no host", done.stderr)
        self.assertIn("cannot read", self.firestop("egress", "test", "none.yaml", "GET", "https://a.example/",
                                                   status=240).stderr)
        self.manifest("firestop: 1\nname: x\ncolour: red\n", name="bad.yaml")
        self.assertIn("bad.yaml:3:1: colour", self.firestop("egress", "test", "bad.yaml", "GET", "https://a.example/",
                                                            status=240).stderr)


if __name__ == "__main__":
    main()
