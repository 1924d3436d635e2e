"""Makes records by hand, as a run would have left them: chained lines and contents, without a key's signatures.

Times are milliseconds since the run began, on Sunday, 2026-11-29 20:00:00 UTC.
"""
import base64
import datetime
import hashlib
import json
import pathlib

START_US = 1795982400 * 1000000
ANSI, HTML, RTL = "\x1b[31mred\x1b[0m", "<script>alert('x')</script>\"'&", "exe.\u202egnp.evil"


def bytes_json(text):
    """As the record holds text of the guest's: a string, or its base64."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    try:
        plain = data.decode("utf-8")
    except UnicodeDecodeError:
        plain = None
    if plain is not None and not any((c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0" for c in plain):
        return plain
    return {"base64": base64.b64encode(data).decode()}


class Record:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.lines, self.previous, self.ms = [], "0" * 64, 0

    def at(self, ms):
        self.ms = ms
        return self

    def event(self, vantage, kind, **data):
        when = datetime.datetime.fromtimestamp((START_US // 1000 + self.ms) / 1000, datetime.timezone.utc)
        line = json.dumps({"data": data, "kind": kind, "mono_us": self.ms * 1000, "prev": self.previous,
                           "seq": len(self.lines), "time": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "vantage": vantage},
                          sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.previous = hashlib.sha256(line.encode()).hexdigest()
        self.lines.append(line)
        return self

    def host(self, kind, **data):
        return self.event("host", kind, **data)

    def guest(self, kind, **data):
        return self.event("guest", kind, **data)

    def now(self):
        return START_US + self.ms * 1000

    def fork(self, pid, parent):
        return self.guest("process.fork", pid=pid, parent=parent, at_us=self.now())

    def exec(self, pid, parent, *argv, **more):
        return self.guest("process.exec", **{
            "pid": pid, "parent": parent, "at_us": self.now(), "uid": 1000, "gid": 1000, "file": bytes_json(argv[0]),
            "image": True, "argv": [bytes_json(word) for word in argv], "argc": len(argv), "cut": False,
            "cwd": "/workspace", **more})

    def exit(self, pid, status=0, cpu_us=0):
        return self.guest("process.exit", pid=pid, at_us=self.now(), status=status, user_us=cpu_us,
                          system_us=cpu_us // 4, max_rss_kib=4096)

    def content(self, data):
        digest = hashlib.sha256(data).hexdigest()
        path = self.directory / "content" / digest[:2] / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return digest

    def code(self, pid, how, path, data, **more):
        known = {} if data is None else {"digest": self.content(data), "size": len(data), "kept": len(data)}
        return self.guest("code", **{"pid": pid, "at_us": self.now(), "how": how, "path": bytes_json(path),
                                     "interpreter": "", "writer": 0, "note": "", **known, **more})

    def change(self, pid, what, path, to=""):
        more = {"to": bytes_json(to)} if to else {}
        return self.guest("file." + what, pid=pid, at_us=self.now(), path=bytes_json(path), **more)

    def final(self, path, data):
        return self.guest("file.final", path=bytes_json(path), size=len(data), note="",
                          digest=hashlib.sha256(data).hexdigest())

    def network(self, kind, **data):
        return self.host("network." + kind, **{"started_us": self.now(), **data})

    def write(self):
        (self.directory / "events.jsonl").write_text("".join(line + "\n" for line in self.lines))
        return self.directory


def begin(record):
    record.host("record.begin", format=1, run="20261129-200000-abcdef", name="fix", manifest_digest="ab" * 32,
                key="cd" * 32, version="0.1.0")
    record.host("run.plan", signer="alice@example.org", signer_key="SHA256:key", command=["./agent.sh"],
                image="agent-base", image_digest="ef" * 32, accelerator="tcg",
                capabilities=["shell", "filesystem", "memory"],
                limits={"cpus": 1, "memory": 536870912, "processes": 256, "network": {"bytes": 209715200}},
                egress=[{"host": "api.example.com", "methods": ["GET", "POST"], "paths": ["/v1/**"], "ports": [443],
                         "protocol": "http", "credential": "model"},
                        {"host": "git.example.com", "ports": [443], "protocol": "http", "credential": "forge",
                         "git": {"repository": "acme/widget", "fetch": True, "push": ["refs/heads/agent/**"]}}],
                credentials=["forge", "model"])
    for name, limit, by in (("rating", "45m", ["timer"]), ("memory", "512MiB", ["qemu", "guest_cgroup"]),
                            ("processes", "256", ["guest_cgroup"]), ("network.bytes", "200MiB", ["link"])):
        record.host("run.cap", name=name, limit=limit, kept_by=by)
    record.host("file.in", path="repo", type="git_repo", commit="1" * 40)
    record.host("run.state", state="started", pid=4711)
    return record.guest("collectors", working=["processes", "costs", "files", "code", "stdin", "connections"],
                        missing=[])


def small(directory):
    """A run with some of everything: used and unused grants, something denied, unread scripts, a result."""
    record = begin(Record(directory))
    record.at(100).exec(2, 1, "/bin/sh", "./agent.sh").code(2, "script", "/workspace/agent.sh", b"#!/bin/sh\nthe agent\n",
                                                           interpreter="/bin/sh")
    record.at(200).fork(3, 2).at(210).exec(3, 2, "/usr/bin/curl", "https://api.example.com/v1/chat")
    record.at(220).network("name", verdict="allowed", scheme="dns", host="api.example.com", rule="egress[0]", pid=3)
    record.at(230).network("request", verdict="allowed", scheme="https", host="api.example.com", port=443, method="POST",
                           path="/v1/chat", status=200, rule="egress[0]", credential="model", bytes_out=512,
                           bytes_in=2048, pid=3, took_us=90000)
    record.at(400).exit(3, 0, 12000)
    record.at(500).fork(4, 2).at(510).exec(4, 2, "/usr/bin/python3", "/tmp/x.py")
    record.change(2, "write", "/tmp/x.py")
    record.at(512).code(4, "argument", "/tmp/x.py", b"print('hi')\n", interpreter="/usr/bin/python3", writer=2)
    record.at(520).network("request", verdict="denied", code="egress.no_rule", scheme="https", host="evil.example",
                           port=443, method="GET", path="/", status=403, pid=4)
    record.at(700).exit(4, 256, 80000).at(710).change(2, "delete", "/tmp/x.py")
    record.at(800).fork(5, 2).at(805).exec(5, 2, "/bin/sh", "-c", "sleep 1 & exit")
    record.code(5, "command", "", b"sleep 1 & exit", interpreter="/bin/sh")
    record.at(900).fork(6, 5).at(950).exit(5, 0).at(1900).exit(6, 9)
    record.at(1950).guest("denied", what="exec", path="/bin/su", count=2)
    record.at(2000).change(2, "write", "/workspace/repo/result.txt").at(2100).exit(2, 0, 40000)
    record.host("run.state", state="handing_over")
    record.final("repo/result.txt", b"42\n").final("agent.sh", b"#!/bin/sh\nthe agent\n").guest("collectors.done")
    record.at(2500).host("file.out", path="repo", repository="/srv/widget", ref="refs/heads/agent/fix", commit="2" * 40,
                         new_commits=1, uncommitted=True)
    record.host("file.out", path="report/summary.md", size=1234, digest="3" * 64)
    return record.host("record.end", status=0, reason="", message="", complete=True, lost=0, alarms=0, counts={})


def hostile(directory):
    """Every name that a guest may choose, chosen badly."""
    record = begin(Record(directory))
    names = [ANSI, HTML, RTL, "two\nlines\n# heading | cell `code`", "x" * 4096,
             "\udcff\udcfe not utf-8", "](javascript:1)"]
    for at, name in enumerate(names):
        pid = 10 + at
        record.at(100 + at).fork(pid, 9 + at).exec(pid, 9 + at, "/tmp/" + name, name, name, image=False)
        record.code(pid, "script", "/tmp/" + name, name.encode("utf-8", "surrogateescape"), interpreter=bytes_json("/bin/" + name[:999]),
                    writer=pid, note=name[:99].encode("utf-8", "replace").decode())
        record.change(pid, "delete", "/tmp/" + name)
        text = name[:900].encode("utf-8", "replace").decode()
        record.network("request", verdict="denied", code="egress.no_rule", scheme="https", host=text, port=443, method="GET",
                       path="/" + text, status=403, pid=pid, detail=text)
        record.guest("denied", what="exec", path=text, count=1)
        record.guest("lost", what=text[:40], count=3)
    record.at(500).host("alarm", credential="model", action="deny")
    record.network("alarm", verdict="denied", code="credential.elsewhere", scheme="https", host="evil.example", port=443,
                   method="POST", path="/", status=403, credential="model", pid=12)
    record.host("cap.hit", cap="processes", limit=256)
    record.host("file.out", path=bytes_json("report/" + ANSI + HTML), size=1, digest="3" * 64)
    return record.host("record.end", status=244, reason="credential.elsewhere", message=HTML, complete=False, lost=21,
                       alarms=1, counts={})


def large(directory, processes=5000):
    """A build: many processes, a few of them deep, crossings all along."""
    record = begin(Record(directory))
    record.at(10).exec(2, 1, "/usr/bin/make", "-j8")
    for at in range(processes):
        pid, ms = 10 + at, 20 + at * 20
        parent = pid - 1 if at % 100 and at < 1000 else 2
        record.at(ms).fork(pid, parent).exec(pid, parent, "/usr/bin/cc1", f"file{at}.c")
        if at % 50 == 0:
            record.code(pid, "script", f"/workspace/gen{at}.sh", b"echo %d\n" % at, interpreter="/bin/sh", writer=2)
        if at % 10 == 0:
            record.network("request", verdict="allowed" if at % 100 else "denied", scheme="https", host="api.example.com",
                           port=443, method="GET", path=f"/v1/{at}", status=200, rule="egress[0]", pid=pid, bytes_in=1000,
                           **({} if at % 100 else {"code": "egress.method"}))
        record.at(ms + 300 + at % 700).exit(pid, 0 if at % 97 else 256, 1000 * (at % 300))
    record.at(20 * processes + 2000).exit(2).guest("collectors.done")
    return record.host("record.end", status=0, reason="", message="", complete=True, lost=0, alarms=0, counts={})
