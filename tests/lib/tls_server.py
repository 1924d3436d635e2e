"""Servers of the tests' own: a certificate authority, and HTTPS on loopback behind any name."""
import http.server
import pathlib
import ssl
import subprocess
import threading


def openssl(*args, **kwargs):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, **kwargs)


class Authority:
    """Makes certificates for names; `certificate` is the path to give to --upstream-ca."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self.key = self.folder / "authority.pem", self.folder / "authority.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", "/CN=Test authority", "-keyout", self.key, "-out", self.certificate)

    def context_for(self, *names):
        """A server's TLS context with a certificate for `names`."""
        path = self.folder / names[0]
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={names[0]}",
                "-keyout", f"{path}.key", "-out", f"{path}.csr")
        pathlib.Path(f"{path}.ext").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names))
        openssl("x509", "-req", "-in", f"{path}.csr", "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-days", "30", "-extfile", f"{path}.ext", "-out", f"{path}.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{path}.pem", f"{path}.key")
        return context


class Server:
    """Answers every request with a text that says what came, and remembers the requests. `answer`, if it is set, is
    asked for another text, and may take its time."""

    def __init__(self, context=None, answer=None):
        self.requests = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.requests.append((self.command, self.path, dict(self.headers.items()), body))
                text = (answer(self) if answer else
                        f"{self.command} {self.path} of {self.headers['Host']}, {len(body)} bytes\n").encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = answer

            def log_message(self, *args):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
