"""Real servers for tests of what crosses, all on loopback and behind any name: an HTTPS server that remembers every
request, nginx (HTTP/2, files), git-http-backend behind nginx, gRPC.

Each has `port` and `close()`, and `reach(name)`: the options of `firestop run` and `firestop proxy` that lead the name
there. Certificates are those of tls_server.Authority.
"""
import base64
import gzip
import hashlib
import json
import os
import pathlib
import signal
import socket
import socketserver
import subprocess
import threading
import time
import urllib.parse

GIT_BACKEND = "/usr/lib/git-core/git-http-backend"
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


class Reachable:
    port = 0

    def reach(self, name, port=443):
        return ["--connect-to", f"{name}:{port}=127.0.0.1:{self.port}"]


class Request:
    """What arrived: `headers` in order and as they were written."""

    def __init__(self, method, target, headers, body, server_name):
        self.method, self.target, self.headers, self.body, self.server_name = method, target, headers, body, server_name

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name):
        """The header's only value, or None; several are a fault."""
        values = self.all(name)
        if len(values) > 1:
            raise AssertionError(f"{name} came {len(values)} times: {values}")
        return values[0] if values else None

    def head_text(self):
        head = "".join(f"{key}: {value}\n" for key, value in self.headers)
        return f"{self.method} {self.target}\n{head}\n"

    def text(self):
        """Everything of it, to search for what must not be there."""
        return self.head_text() + self.body.decode("latin-1")


class Api(Reachable):
    """HTTP/1.1, with TLS if a context is given. `/echo` and its brothers answer with the request itself; see `route`.

    `script(path, function)` adds an answer: function(request, connection) sends it.
    """

    def __init__(self, context=None):
        self.requests, self.scripts = [], {}
        self.names = {}  # of a socket: the server name that the client asked for
        if context:
            context.sni_callback = lambda sock, name, _: self.names.__setitem__(id(sock), name)
        api = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self):
                try:
                    with context.wrap_socket(self.request, server_side=True) if context else self.request as sock:
                        Exchange(api, sock).run()
                except (OSError, EOFError, ValueError):
                    pass  # who broke off, or what was no HTTP

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = allow_reuse_address = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Connection)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def script(self, path, function):
        self.scripts[path] = function

    def seen(self, path):
        """The requests whose path it is, without query."""
        return [r for r in self.requests if r.target.split("?")[0] == path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Exchange:
    """One connection to an Api: requests one after the other."""

    def __init__(self, api, sock):
        self.api, self.sock = api, sock
        self.file = sock.makefile("rb")

    def run(self):
        while True:
            request = self.read()
            if request is None:
                return
            self.api.requests.append(request)
            if self.route(request) is False or (request.get("connection") or "").lower() == "close":
                return

    def read(self):
        line = self.file.readline(65536)
        if not line:
            return None
        method, target, _ = line.decode("latin-1").split(" ")
        headers = []
        while (line := self.file.readline(65536)) not in (b"\r\n", b""):
            name, value = line.decode("latin-1").rstrip("\r\n").split(":", 1)
            headers.append((name, value.strip()))
        request = Request(method, target, headers, b"", self.api.names.get(id(self.sock)))
        if (request.get("expect") or "").lower() == "100-continue":
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if (request.get("transfer-encoding") or "") == "chunked":
            while size := int(self.file.readline().split(b";")[0], 16):
                request.body += self.file.read(size)
                self.file.readline()
            while self.file.readline() not in (b"\r\n", b""):
                pass
        elif length := request.get("content-length"):
            request.body = self.file.read(int(length))
        return request

    def send(self, body=b"", status=200, headers=(), kind="text/plain"):
        body = body.encode() if isinstance(body, str) else body
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        length = "" if status in (204, 304) else f"Content-Length: {len(body)}\r\n"
        self.sock.sendall(f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\n{length}{head}\r\n".encode("latin-1") + body)

    def send_chunks(self, pieces, headers=(), kind="text/plain", trailers=()):
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.sock.sendall(f"HTTP/1.1 200 x\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n{head}\r\n".encode())
        for piece in pieces:
            if piece:
                self.sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.sock.sendall(b"0\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in trailers) + b"\r\n")

    def route(self, request):
        """False ends the connection.

        /echo             the request as JSON: method, target, headers, body (also /echo/..., any method)
        /echo.gz          the same with gzip
        /echo.chunks      the same in chunks of seven bytes
        /digest           SHA-256 and length of the body
        /bytes?N          N bytes that any program can make again
        /events?N         server-sent events, a fifth of a second between them
        /status?N         that status
        /redirect?URL     302
        /cookies          two Set-Cookie headers
        /trailers         chunks and a trailer
        /ws               WebSocket: what comes goes back
        """
        path, _, query = request.target.partition("?")
        if path in self.api.scripts:
            return self.api.scripts[path](request, self)
        echo = json.dumps({"method": request.method, "target": request.target, "headers": request.headers,
                           "body": request.body.decode("latin-1")}).encode()
        if path == "/echo.gz":
            self.send(gzip.compress(echo), headers=[("Content-Encoding", "gzip")], kind="application/json")
        elif path == "/echo.chunks":
            self.send_chunks([echo[at:at + 7] for at in range(0, len(echo), 7)], kind="application/json")
        elif path == "/digest":
            self.send(f"{hashlib.sha256(request.body).hexdigest()} {len(request.body)}\n")
        elif path == "/bytes":
            self.send(bytes(range(256)) * (int(query) // 256) + bytes(int(query) % 256), kind="application/octet-stream")
        elif path == "/events":
            self.send_chunks(self.events(int(query)), kind="text/event-stream")
        elif path == "/status":
            self.send("" if query in ("204", "304") else f"status {query}\n", status=int(query))
        elif path == "/redirect":
            self.send(status=302, headers=[("Location", urllib.parse.unquote(query))])
        elif path == "/cookies":
            self.send("ok\n", headers=[("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/")])
        elif path == "/trailers":
            self.send_chunks([b"hello\n"], headers=[("Trailer", "X-Sum")], trailers=[("X-Sum", "5")])
        elif path == "/ws":
            return self.websocket(request)
        elif request.method == "HEAD":
            self.sock.sendall(b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n\r\n" % len(echo))
        else:
            self.send(echo, kind="application/json")
        return True

    @staticmethod
    def events(count):
        for number in range(count):
            yield f"data: {number} {time.monotonic()}\n\n".encode()
            time.sleep(0.2)

    def upgrade(self, request, first=b""):
        """Answers an upgrade to WebSocket; `first` goes in the same write."""
        key = request.get("sec-websocket-key") or ""
        accept = base64.b64encode(hashlib.sha1((key + WEBSOCKET).encode()).digest()).decode()
        self.sock.sendall((f"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode() + first)

    def read_frame(self):
        """(first byte, data) of a client's WebSocket frame."""
        first, second = self.file.read(2)
        length = second & 127
        if length >= 126:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        mask, data = self.file.read(4), self.file.read(length)
        return first, bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))

    def send_frame(self, first, data):
        size = (bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
                if len(data) < 65536 else b"\x7f" + len(data).to_bytes(8, "big"))
        self.sock.sendall(bytes([first]) + size + data)

    def websocket(self, request):
        # A frame in the same write: clients and proxies must not lose what follows the head.
        self.upgrade(request, b"\x81\x07welcome")
        while True:
            first, data = self.read_frame()
            self.send_frame(first, data)
            if first & 15 == 8:
                return False


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for_port(port, process):
    for _ in range(300):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}; exit status {process.poll()}")


class Nginx(Reachable):
    """nginx with one server of the names' certificate, TLS and HTTP/2; `locations` are lines of its configuration.

    `seen()` has what arrived: method, uri, protocol, authorization, agent, status.
    """

    def __init__(self, folder, authority, names, locations, port=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        authority.context_for(*names)
        self.port = port or free_port()
        self.log = self.folder / "seen.log"
        members = {"method": "request_method", "uri": "request_uri", "protocol": "server_protocol",
                   "authorization": "http_authorization", "agent": "http_user_agent", "status": "status",
                   "host": "http_host", "server_name": "ssl_server_name"}
        line = "{" + ",".join(f'"{name}":"${variable}"' for name, variable in members.items()) + "}"
        config = self.folder / "nginx.conf"
        config.write_text(f"""
            {"user root;" if os.getuid() == 0 else ""}
            daemon off; master_process off; worker_processes 1; pid {self.folder}/pid;
            error_log {self.folder}/error.log warn;
            events {{ worker_connections 4096; }}
            http {{
              log_format seen escape=json '{line}';
              access_log {self.log} seen;
              types {{ text/plain txt; application/json json; application/gzip gz tgz; }}
              default_type application/octet-stream;
              {"".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                       ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))}
              client_max_body_size 0;
              server {{
                listen 127.0.0.1:{self.port} ssl http2;
                server_name {" ".join(names)};
                ssl_certificate {authority.folder}/{names[0]}.pem;
                ssl_certificate_key {authority.folder}/{names[0]}.key;
                {locations}
              }}
            }}
            """)
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-p", self.folder, "-c", config],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)

    def seen(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def close(self):
        self.process.kill()
        self.process.wait()


class Files(Nginx):
    """A folder behind a name."""

    def __init__(self, folder, authority, names, root):
        super().__init__(folder, authority, names, f"root {root};")


class GitServer(Nginx):
    """git-http-backend behind nginx, as forges are: Basic authentication by one user. Repositories lie in `root`."""

    def __init__(self, folder, authority, names, user="x-access-token", password="real-git-token"):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.root = folder / "repositories"
        self.root.mkdir()
        (folder / "users").write_text(f"{user}:{{PLAIN}}{password}\n")
        gateway = folder / "fcgi"
        self.gateway = subprocess.Popen(["/usr/sbin/fcgiwrap", "-c", "2", "-s", f"unix:{gateway}"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null",
                                             "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(folder)})
        params = {"SCRIPT_FILENAME": GIT_BACKEND, "GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1",
                  "PATH_INFO": "$uri", "QUERY_STRING": "$query_string", "REQUEST_METHOD": "$request_method",
                  "CONTENT_TYPE": "$content_type", "CONTENT_LENGTH": "$content_length", "REMOTE_USER": "$remote_user",
                  "REMOTE_ADDR": "$remote_addr", "GIT_PROTOCOL": "$http_git_protocol"}
        lines = "".join(f"fastcgi_param {name} {value};" for name, value in params.items())
        super().__init__(folder, authority, names, f"""
            location / {{
              auth_basic git; auth_basic_user_file {folder}/users;
              {lines}
              fastcgi_buffering off; fastcgi_request_buffering off;
              fastcgi_pass unix:{gateway};
            }}""")

    def repository(self, name, **config):
        """A bare repository with one commit on main; returns its path."""
        path = self.root / (name + ".git")
        env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_AUTHOR_NAME="Forge",
                   GIT_AUTHOR_EMAIL="forge@example.org", GIT_COMMITTER_NAME="Forge",
                   GIT_COMMITTER_EMAIL="forge@example.org")

        def git(*args, data=b""):
            return subprocess.run(["git", *map(str, args)], check=True, capture_output=True, env=env,
                                  input=data).stdout.decode().strip()

        git("init", "-q", "--bare", "-b", "main", path)
        for key, value in config.items():
            git("-C", path, "config", key.replace("__", "."), value)
        blob = git("-C", path, "hash-object", "-w", "--stdin", data=b"hello\n")
        tree = git("-C", path, "mktree", data=f"100644 blob {blob}\tREADME\n".encode())
        git("-C", path, "update-ref", "refs/heads/main", git("-C", path, "commit-tree", "-m", "first", tree))
        return path

    def refs(self, name):
        """Names and commits."""
        out = subprocess.run(["git", "-C", self.root / (name + ".git"), "for-each-ref",
                              "--format=%(refname) %(objectname)"], check=True, capture_output=True).stdout.decode()
        return dict(line.split() for line in out.splitlines())

    def close(self):
        super().close()
        os.killpg(self.gateway.pid, signal.SIGKILL)  # it has children
        self.gateway.wait()


class GrpcServer(Reachable):
    """gRPC with TLS: see grpc_echo.py. It runs in Debian's Python, which has grpc; `calls()` has what came."""

    def __init__(self, folder, authority, *names):
        authority.context_for(*names)
        self.log = pathlib.Path(folder) / "grpc.log"
        path = authority.folder / names[0]
        script = pathlib.Path(__file__).with_name("grpc_echo.py")
        self.process = subprocess.Popen(["/usr/bin/python3", script, f"{path}.key", f"{path}.pem", self.log],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the gRPC server did not start")
        self.port = int(line)

    def calls(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
