"""Crossings have the guest's process that made them, whichever way it made them, and storms are told or counted."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from egress_test import EgressTest, main  # noqa: E402

MANIFEST = """
egress:
  - {host: api.example.com, methods: [GET], paths: [/v1/**]}
limits: {memory: 384MiB, disk: 512MiB}
"""

# Each a process of its own, told from the others by a file that it writes.
CLIENT = r"""
import errno, os, select, socket, struct, sys, threading, urllib.request
ADDRESS = {"threads": "10.9.8.7", "waits": "10.9.8.8", "child": "10.9.8.9", "refused": "10.9.8.10"}

def knock(address, family=socket.AF_INET, port=4444):
    s = socket.socket(family)
    s.settimeout(10)
    try:
        s.connect((address, port))
        s.send(b"hello\r\n\r\n")
        s.recv(1)
    except OSError:
        pass

def question(name, server):
    q = b"\x12\x34\x01\x00\x00\x01" + bytes(6)
    q += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1"
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)  # as Java and Go do
    s.settimeout(10)
    s.sendto(q, ("::ffff:" + server, 53))
    s.recv(4096)

def urllib_():
    urllib.request.urlopen("https://api.example.com/v1/urllib").read()
def six():
    address = socket.gethostbyname("api.example.com")
    s = socket.create_connection(("::ffff:" + address, 80))
    s.send(b"GET /v1/six HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n")
    while s.recv(4096): pass
def threads():
    t = threading.Thread(target=knock, args=(ADDRESS["threads"],)); t.start(); t.join()
def waits():
    s = socket.socket(); s.setblocking(False)
    assert s.connect_ex((ADDRESS["waits"], 4444)) == errno.EINPROGRESS
    select.select([], [s], [], 10); s.send(b"hello\r\n\r\n"); select.select([s], [], [], 10)
def child():
    if os.fork() == 0:
        knock(ADDRESS["child"]); os._exit(0)
    os.wait()
def refused():  # beyond the rule, and no name
    knock(ADDRESS["refused"], port=25)
def asks():
    question("asked.by.asks", "9.9.9.9")
def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(3): s.sendto(b"x", ("1.2.3.4", 5555))
    s.connect(("1.2.3.5", 5555)); s.send(b"x")
def inside():
    listener = socket.create_server(("127.0.0.1", 0))
    knock("127.0.0.1", port=1)
    socket.create_connection(listener.getsockname())
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
    knock("192.0.0.2", port=1)
    knock("0.0.0.0", port=1)
def end():
    pass
for name in sys.argv[1:]:
    if os.fork() == 0:
        open("/workspace/by-" + name, "w").close()
        globals()[name]()
        os._exit(0)
    if os.wait()[1] != 0: print("failed:", name)
"""

STORM = r"""
import socket, threading
def run(first):
    for i in range(5000):
        s = socket.socket(); s.setblocking(False)
        s.connect_ex(("10.7.%d.%d" % (first, i % 250 + 1), 1000 + i)); s.close()
threads = [threading.Thread(target=run, args=(n,)) for n in (1, 2)]
[t.start() for t in threads]; [t.join() for t in threads]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(1000): s.sendto(b"x", ("10.8.1.1", 1000 + i))
print("done")
"""


class ConnectionsTest(EgressTest):  # 38 s
    def record(self):
        [folder] = sorted((self.state / "firestop/runs").glob("2*/evidence"))[-1:]
        self.events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        return folder.parent.name

    def of(self, *kinds):
        return [event["data"] for event in self.events if event["kind"] in kinds]

    def process(self, name):
        """The one that wrote the file of this name, or was executed with it as its last word."""
        found = {e["pid"] for e in self.of("file.write") if e["path"] == f"/workspace/by-{name}"}
        [pid] = found | {e["pid"] for e in self.of("process.exec") if e["argv"][-1] == name}
        return pid

    def made_by(self, pid, kind, **members):
        """Crossings of this description exist, and this process made each."""
        found = [c for c in self.of(f"network.{kind}") if all(c.get(name) == value for name, value in members.items())]
        self.assertTrue(found, (kind, members, self.of(f"network.{kind}")))
        for crossing in found:
            self.assertEqual(crossing.get("pid"), pid, (crossing, self.of("socket")))

    def test_inv11_every_crossing_has_its_process(self):
        self.api()
        self.manifest(MANIFEST)
        names = "urllib_ six threads waits child refused asks datagrams inside end"
        out = self.run_in(f"cat > client.py <<'END'\n{CLIENT}\nEND\n"
                          "curl -sS https://api.example.com/v1/curl >/dev/null\ncurl -sS http://denied.example.com/\n"
                          f"python3 client.py {names}", *self.options)
        self.assertEqual(out, "")
        run = self.record()
        self.assertIn("connections", self.of("collectors")[0]["working"])
        curl = self.process("https://api.example.com/v1/curl")
        self.made_by(curl, "request", path="/v1/curl", verdict="allowed")
        self.made_by(self.process("http://denied.example.com/"), "name", host="denied.example.com", verdict="denied")
        self.made_by(self.process("urllib_"), "request", path="/v1/urllib")
        self.made_by(self.process("six"), "request", path="/v1/six")
        self.made_by(self.process("threads"), "connection", host="10.9.8.7", verdict="denied")
        self.made_by(self.process("waits"), "connection", host="10.9.8.8", verdict="denied")
        [child] = [f["pid"] for f in self.of("process.fork") if f["parent"] == self.process("child")]
        self.made_by(child, "connection", host="10.9.8.9", verdict="denied")
        self.made_by(self.process("refused"), "connection", host="10.9.8.10", port=25, verdict="denied")
        self.made_by(self.process("asks"), "name", host="asked.by.asks")
        self.made_by(self.process("datagrams"), "datagram", host="1.2.3.4", port=5555)
        self.made_by(self.process("datagrams"), "datagram", host="1.2.3.5", port=5555)
        askers = {c["pid"] for c in self.of("network.name") if c["host"] == "api.example.com"}
        self.assertEqual(askers, {curl, self.process("urllib_"), self.process("six")})
        for crossing in self.of("network.request", "network.connection", "network.datagram", "network.name"):
            self.assertIn("pid", crossing)
        sockets = self.of("socket")
        self.assertEqual([s for s in sockets if s["pid"] == self.process("inside")], [], "loopback is no crossing")
        [told] = [s for s in sockets if s["address"] == "1.2.3.4"]
        self.assertEqual((told["protocol"], told["port"]), ("udp", 5555), "three datagrams, one socket")
        self.assertEqual(self.of("lost"), [])
        self.assertTrue(self.of("record.end")[0]["complete"])
        listed = self.firestop("network", run).stdout.decode()
        self.assertIn(f"curl ({curl})", listed)
        kinds = {json.loads(line)["kind"] for line in
                 self.firestop("log", run, "--pid", str(curl), "--json").stdout.decode().splitlines()}
        self.assertLessEqual({"socket", "network.request", "process.exec"}, kinds)

    def test_inv11_storms_of_connections_are_told_or_counted(self):
        self.manifest(MANIFEST.replace("512MiB}", "512MiB, cpus: 2}"))
        out = self.run_in(f"cat > storm.py <<'END'\n{STORM}\nEND\npython3 storm.py", *self.options)
        self.assertEqual(out, "done\n")
        self.record()
        sockets = [s for s in self.of("socket") if s["address"].startswith("10.7.") or s["address"] == "10.8.1.1"]
        lost = sum(e["count"] for e in self.of("lost") if e["what"] == "connections")
        self.assertGreaterEqual(len(sockets) + lost, 11000)
        self.assertEqual(self.of("record.end")[0]["complete"], not self.of("lost"))


if __name__ == "__main__":
    main()
