"""`firestop proxy` as people use it: curl, Python and nginx on both sides of it, on loopback."""
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, FIRESTOP, LIMIT  # noqa: E402

SECRET = "sk-real-value-that-stays-outside-0123456789"
POLICY = """\
firestop: 1
name: through-the-proxy
rating: 5m
image: agent-base
command: [sh, -c, "true"]
egress:
  - host: api.example.com
    methods: [GET, PUT]
    paths: [/v1/**]
    credential: model
  - host: files.example.com
    port: 80
credentials:
  model: {env: API_KEY, inject: bearer, prefix: sk-}
"""


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent; keeps every request's head."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        text = body or json.dumps({"path": self.path, "authorization": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "application/octet-stream" if body else "application/json")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = answer

    def log_message(self, *_):
        pass


class ProxyTest(CliTest):
    def setUp(self):
        super().setUp()
        self.env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        (self.folder / "config" / "firestop").mkdir(parents=True)
        self.manifest(POLICY)
        self.make_certificate()

    def make_certificate(self, names="DNS:api.example.com,DNS:login.example.com"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=api.example.com", "-addext", f"subjectAltName={names}",
                        "-keyout", self.work / "key.pem", "-out", self.work / "cert.pem"],
                       check=True, capture_output=True, timeout=LIMIT)

    def origin(self, tls=True):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        server.seen = []
        server.handle_error = lambda *_: None  # of requests that the proxy breaks off
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.work / "cert.pem", self.work / "key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def bind(self, text="model: {hosts: [api.example.com], env: REAL_KEY}\n"):
        path = self.folder / "config" / "firestop" / "credentials.yaml"
        path.write_text(text)
        path.chmod(0o600)

    def proxy(self, *args, port=None, plain_port=None, env=None):
        """Starts it, with api.example.com at `port`; what it says first is in self.ready."""
        if not (self.folder / "config" / "firestop" / "credentials.yaml").exists():
            self.bind()
        words = [FIRESTOP, "proxy", "--policy", "firestop.yaml", "--listen", "127.0.0.1", "--json",
                 "--upstream-ca", "cert.pem", *args]
        if port:
            words += ["--connect-to", f"api.example.com:443=127.0.0.1:{port}"]
        if plain_port:
            words += ["--connect-to", f"files.example.com:80=127.0.0.1:{plain_port}"]
        process = subprocess.Popen(words, cwd=self.work, env={**self.env, "REAL_KEY": SECRET, **(env or {})}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        line = process.stdout.readline()
        self.assertTrue(line, process.stderr.read() if not line else "")
        self.ready = json.loads(line)
        self.assertEqual(self.ready["type"], "ready")
        self.variables = dict(one.split("=", 1) for one in
                              pathlib.Path(self.ready["environment"]).read_text().splitlines())
        self.variables = {name: value.strip("'") for name, value in self.variables.items()}
        self.process = process
        return process

    def crossings(self):
        """Ends it, and gives all that it told."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=LIMIT)
        self.assertEqual((self.process.returncode, err), (0, ""))
        self.assertNotIn(SECRET, out)
        return [json.loads(line) for line in out.splitlines()]

    def curl(self, *args, status=0):
        done = subprocess.run(["curl", "-sS", "--max-time", "20", *map(os.fspath, args)], cwd=self.work,
                              env={**self.env, **self.variables}, capture_output=True, timeout=LIMIT, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def key(self):
        return self.variables["API_KEY"]

    def test_a_credential_goes_in_and_its_value_does_not_come_back(self):
        origin = self.origin()
        self.proxy(port=origin.server_port)
        self.assertTrue(self.key().startswith("sk-"))
        self.assertNotEqual(self.key(), SECRET)
        answer = self.curl("https://api.example.com/v1/models?x=1", "-H", f"Authorization: Bearer {self.key()}")
        self.assertEqual(origin.seen[0][2]["authorization"], f"Bearer {SECRET}")
        self.assertEqual(json.loads(answer)["authorization"], f"Bearer {self.key()}", "an origin that echoes")
        crossing = self.crossings()[-1]
        self.assertEqual({name: crossing.get(name) for name in
                          ("kind", "verdict", "rule", "scheme", "host", "method", "path", "status", "credential")},
                         {"kind": "request", "verdict": "allowed", "rule": "egress[0]", "scheme": "https",
                          "host": "api.example.com", "method": "GET", "path": "/v1/models", "status": 200,
                          "credential": "model"})

    def test_what_is_not_allowed_reaches_nobody(self):
        origin = self.origin()
        self.proxy(port=origin.server_port)
        for url, code in (("https://api.example.com/secret", "egress.path"),
                          ("https://api.example.com/v1/../secret", "egress.path"),
                          ("https://api.example.com/v1/%2e%2e/secret", "egress.path")):
            answer = self.curl(url, "--path-as-is", "-H", "Accept: application/json")
            self.assertEqual(json.loads(answer)["firestop"]["code"], code, url)
        answer = self.curl("-X", "DELETE", "https://api.example.com/v1/x", "-H", "Accept: application/json")
        self.assertEqual(json.loads(answer)["firestop"]["code"], "egress.method")
        self.curl("https://elsewhere.example.com/", status=56)  # CONNECT was refused
        self.assertEqual(origin.seen, [])
        self.assertEqual([crossing["verdict"] for crossing in self.crossings()], ["denied"] * 5)

    def test_inv08_a_placeholder_elsewhere_is_an_alarm_and_stays(self):
        origin = self.origin()
        plain = self.origin(tls=False)
        self.proxy(port=origin.server_port, plain_port=plain.server_port)
        self.curl("https://api.example.com/v1/x", "-H", f"X-Request-Id: {self.key()}")
        self.curl(f"https://api.example.com/v1/{self.key()}")
        self.curl("http://files.example.com/x", "-H", f"Authorization: Bearer {self.key()}")
        self.curl("-X", "PUT", "-d", f"a={self.key()}", "http://files.example.com/x")
        self.assertEqual([seen for seen in plain.seen + origin.seen if self.key().encode() in repr(seen).encode()], [])
        alarms = [crossing for crossing in self.crossings() if crossing["kind"] == "alarm"]
        self.assertEqual([alarm["credential"] for alarm in alarms], ["model"] * 4)

    def test_large_bodies_byte_for_byte(self):
        origin = self.origin()
        self.proxy(port=origin.server_port)
        body = os.urandom(5 << 20)
        (self.work / "body").write_bytes(body)
        answer = self.curl("-T", "body", "https://api.example.com/v1/upload", "-H", "Content-Type: image/png")
        self.assertEqual(origin.seen[0][3], body)
        self.assertEqual(answer, body)

    def test_inv07_unclear_requests_are_answered_with_400(self):
        plain = self.origin(tls=False)
        self.proxy(plain_port=plain.server_port)
        address, port = self.ready["proxy"].removeprefix("http://").split(":")
        start = b"POST http://files.example.com/x HTTP/1.1\r\nHost: files.example.com\r\n"
        for bad in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", b"Transfer-Encoding: xchunked\r\n\r\n",
                    b"X: a\r\n b\r\n\r\n", b"X : a\r\n\r\n", b"Host: other.example.com\r\n\r\n"):
            with socket.create_connection((address, int(port)), timeout=20) as client:
                client.sendall(start + bad)
                self.assertTrue(client.makefile("rb").readline().startswith(b"HTTP/1.1 400 "), bad)
        self.assertEqual(plain.seen, [])

    @unittest.skipUnless(shutil.which("nginx", path="/usr/sbin:/usr/bin"), "nginx is missing")
    def test_http_2_on_both_sides(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (self.work / "nginx.conf").write_text(f"""
daemon off; pid {self.work}/nginx.pid; error_log {self.work}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {self.work}/t1; proxy_temp_path {self.work}/t2;
  fastcgi_temp_path {self.work}/t3; uwsgi_temp_path {self.work}/t4; scgi_temp_path {self.work}/t5;
  server {{ listen 127.0.0.1:{port} ssl http2; server_name api.example.com;
    ssl_certificate {self.work}/cert.pem; ssl_certificate_key {self.work}/key.pem;
    location / {{ return 200 "$server_protocol $request_uri\\n"; }} }} }}
""")
        server = subprocess.Popen([shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-c", self.work / "nginx.conf"],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        self.proxy(port=port)
        for flag, version in (("--http2", "2"), ("--http1.1", "1.1")):
            answer = self.curl(flag, "-w", "%{http_version}", "https://api.example.com/v1/x", "https://api.example.com/v1/y")
            self.assertEqual(answer.decode(), f"HTTP/2.0 /v1/x\n{version}HTTP/2.0 /v1/y\n{version}")

    def code(self, *args):
        """The code of a denial, or None."""
        answer = self.curl(*args, "-H", "Accept: application/json")
        return json.loads(answer).get("firestop", {}).get("code") if answer.startswith(b"{") else None

    def test_inv05_bytes_are_capped(self):
        self.manifest(POLICY + "limits: {network: {bytes: 100KiB}}\n")
        plain = self.origin(tls=False)
        self.proxy(plain_port=plain.server_port)
        self.assertIsNone(self.code("http://files.example.com/x"))
        (self.work / "body").write_bytes(os.urandom(200 << 10))
        self.assertEqual(self.code("-T", "body", "http://files.example.com/x", "-H", "Expect:"), "limit.bytes")
        self.assertEqual(self.code("http://files.example.com/x"), "limit.bytes")
        self.assertEqual(len(plain.seen), 1, "of what is denied nothing is whole at an origin")
        self.assertEqual([crossing["verdict"] for crossing in self.crossings()], ["allowed", "denied", "denied"])

    def test_the_hosts_configuration_says_where_names_lead(self):
        origin = self.origin()
        config = self.folder / "config" / "firestop" / "config.yaml"
        config.write_text(f"connect_to: [\"api.example.com:443=127.0.0.1:{origin.server_port}\"]\n"
                          f"upstream_ca: {self.work}/cert.pem\n")
        self.bind()
        process = subprocess.Popen([FIRESTOP, "proxy", "--policy", "firestop.yaml", "--listen", "127.0.0.1", "--json"],
                                   cwd=self.work, env={**self.env, "REAL_KEY": SECRET}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        ready = json.loads(process.stdout.readline())
        self.variables = {"HTTPS_PROXY": ready["proxy"], "CURL_CA_BUNDLE": ready["authority"]}
        self.assertIn(b'"path"', self.curl("https://api.example.com/v1/x"))
        self.assertEqual(len(origin.seen), 1)
        config.write_text("connect_to: [api.example.com:443]\n")
        done = self.firestop("proxy", "--policy", "firestop.yaml", "--json", status=None, env={"REAL_KEY": SECRET})
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "config.bad")

    def host_proxy(self, port):
        """What HTTPS_PROXY names: takes each CONNECT to 127.0.0.1:`port`, whatever it asks for."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        heads = []

        def pump(source, sink):
            try:
                while piece := source.recv(65536):
                    sink.sendall(piece)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                head = b""
                while not head.endswith(b"\r\n\r\n") and (byte := client.recv(1)):
                    head += byte
                heads.append(head.decode())
                origin = socket.create_connection(("127.0.0.1", port))
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                for ends in ((client, origin), (origin, client)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1], heads

    def test_oauth_tokens_come_over_tls_and_through_the_hosts_proxy(self):
        class Tokens(Echo):
            def do_POST(self):
                self.server.seen.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                text = b'{"access_token": "access-token-0123456789", "token_type": "Bearer", "expires_in": 3600}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        origin, tokens = self.origin(), self.origin()
        tokens.RequestHandlerClass = Tokens
        port, heads = self.host_proxy(tokens.server_port)
        self.manifest(POLICY.replace("inject: bearer, prefix: sk-", "inject: oauth"))
        binding = """\
model:
  hosts: [api.example.com]
  oauth: {token_url: "https://login.example.com/token", client_id: me, refresh_token: {env: REAL_KEY}, ca: %s}
"""
        self.bind(binding % (self.work / "cert.pem"))
        env = {"HTTPS_PROXY": f"http://user:pass@127.0.0.1:{port}"}
        self.proxy(port=origin.server_port, env=env)
        self.curl("https://api.example.com/v1/x", "-H", f"Authorization: Bearer {self.key()}")
        self.assertEqual(origin.seen[0][2]["authorization"], "Bearer access-token-0123456789")
        self.assertEqual(tokens.seen, [("/token", f"grant_type=refresh_token&refresh_token={SECRET}&client_id=me".encode())])
        self.assertEqual(len(heads), 1, "what --connect-to maps is dialled itself")
        self.assertTrue(heads[0].startswith("CONNECT login.example.com:443 HTTP/1.1\r\n"), heads)
        self.assertIn("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n", heads[0])
        self.assertNotIn(SECRET, heads[0])
        self.crossings()
        # A certificate that nobody trusts, and one of another name: the token is not asked for.
        for trusted, names in (("other.pem", "DNS:login.example.com"), ("cert.pem", "DNS:other.example.com")):
            if trusted == "other.pem":
                shutil.copy(self.work / "cert.pem", self.work / "other.pem")
            self.make_certificate(names)
            renewed = self.origin()
            renewed.RequestHandlerClass = Tokens
            port, heads = self.host_proxy(renewed.server_port)
            self.bind(binding % (self.work / trusted))
            self.proxy(port=origin.server_port, env={"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
            self.assertEqual(self.code("https://api.example.com/v1/x", "-H", f"Authorization: Bearer {self.key()}"),
                             "credential.unavailable", names)
            self.assertEqual((len(heads), renewed.seen), (1, []), names)
            self.crossings()

    def test_help_names_its_exits(self):
        done = self.firestop("proxy", "--help")
        self.assertRegex(done.stdout.decode() if isinstance(done.stdout, bytes) else done.stdout, r"\n +241 ")

    def test_it_ends_when_it_cannot_tell(self):
        origin = self.origin()
        process = self.proxy(port=origin.server_port)
        process.stdout.close()
        self.curl("https://api.example.com/v1/x", "-o", "/dev/null", status=None)
        self.assertIsNotNone(process.wait(LIMIT))
        process.stdout = None

    def test_mistakes(self):
        self.bind()
        for args, code in ((("--listen", "nowhere"), "usage.listen"), (("--connect-to", "a=b"), "usage.connect_to"),
                           (("--upstream-ca", "missing.pem"), "usage.upstream_ca"),
                           (("--connect-to", "other.example.com:443=127.0.0.1:1"), "usage.connect_to")):
            done = self.firestop("proxy", "--policy", "firestop.yaml", *args, "--json", status=None,
                                 env={"REAL_KEY": SECRET})
            self.assertEqual(json.loads(done.stdout)["error"]["code"], code, done.stdout)
            self.assertNotEqual(done.returncode, 0)
        done = self.firestop("proxy", "--json", status=240)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "usage.policy")
        (self.folder / "config" / "firestop" / "credentials.yaml").unlink()
        done = self.firestop("proxy", "--policy", "firestop.yaml", "--json", status=242)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "credentials.unbound")


if __name__ == "__main__":
    unittest.main()
