"""Real clients in the sandbox against real servers, each without flags: what they ask for arrives, what they get is
right, and what no rule has does not leave."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "lib"))
from egress_servers import Files, GitServer, GrpcServer  # noqa: E402
from egress_test import EgressTest, main  # noqa: E402
from npm import Registry, npm_folder  # noqa: E402
from sandbox_test import LIMIT  # noqa: E402

API = """
image: egress-clients
limits: {memory: 768MiB, disk: 1GiB}
rating: 4m
egress:
  - {host: api.example.com, methods: [GET, POST, PUT], paths: [/**]}
  - {host: files.example.com, methods: [GET]}
"""
LARGE = 3 << 20  # bytes


class CurlClientTest(EgressTest):  # 45 s
    MANIFEST = API

    def test_both_versions_of_http_whatever_the_origin_speaks(self):
        api = self.api()
        root = self.folder / "www"
        root.mkdir()
        (root / "hello.txt").write_text("hello\n")
        files = self.serve(Files(self.folder / "nginx", self.authority, ["files.example.com"], root), "files.example.com")
        out = self.sandbox("""
            for host in api.example.com/echo files.example.com/hello.txt; do for version in --http1.1 --http2; do
              curl -sS -o /dev/null -w '%{http_version} %{http_code} %{ssl_verify_result}\\n' $version https://$host
            done; done
            curl -sS https://files.example.com/hello.txt https://files.example.com/hello.txt
            """).splitlines()
        self.assertEqual(out, ["1.1 200 0", "2 200 0", "1.1 200 0", "2 200 0", "hello", "hello"])
        self.assertEqual([(r.method, r.target, r.server_name, r.get("host")) for r in api.requests],
                         [("GET", "/echo", "api.example.com", "api.example.com")] * 2)
        self.assertEqual({r["protocol"] for r in files.seen()}, {"HTTP/2.0"})
        self.assertTrue(all(c["verdict"] == "allowed" for c in self.crossings(kind="request")))

    def test_what_no_rule_has_does_not_leave_and_says_what_to_do(self):
        api = self.api()
        out = self.sandbox("""
            curl -sS https://other.example.com/ 2>&1 || echo "status $?"
            for version in --http1.1 --http2; do
              curl -sS $version -X DELETE -w '\\n%{http_code}\\n' https://api.example.com/echo
            done
            """)
        self.assertIn("Could not resolve host: other.example.com", out)
        self.assertIn("status 6", out)
        self.assertEqual(out.count("\n403\n"), 2, out)
        self.assertEqual(out.count("egress.method"), 2, out)
        self.assertEqual(api.requests, [])
        self.assertEqual({c["code"] for c in self.crossings(kind="request")}, {"egress.method"})

    def test_large_bodies_both_ways_events_and_many_cookies(self):
        self.api()
        out = self.sandbox(f"""
            head -c {LARGE} /dev/zero | tr '\\0' x > large
            for version in --http1.1 --http2; do
              curl -sS $version --data-binary @large https://api.example.com/digest
              curl -sS $version -H 'Transfer-Encoding: chunked' -T large https://api.example.com/digest
              curl -sS $version https://api.example.com/bytes?{LARGE} | sha256sum
              curl -sS $version -D - -o /dev/null https://api.example.com/cookies | grep -i ^set-cookie | tr -d '\\r'
            done
            """).splitlines()
        digest = f"{hashlib.sha256(b'x' * LARGE).hexdigest()} {LARGE}"
        answer = f"{hashlib.sha256(bytes(range(256)) * (LARGE // 256)).hexdigest()}  -"
        one = [digest, digest, answer, "set-cookie: a=1; path=/", "set-cookie: b=2; path=/"]
        self.assertEqual([line.lower() if "ookie" in line else line for line in out], one * 2)


class PythonClientTest(EgressTest):
    MANIFEST = API

    def test_urllib_and_requests(self):
        api = self.api()
        out = self.python(f"""
import hashlib, requests, urllib.request, urllib.error
base = "https://api.example.com"
print(json.dumps(json.load(urllib.request.urlopen(base + "/echo?x=1"))["target"]))
print(json.dumps(json.load(urllib.request.urlopen(base + "/echo", data=b"hello"))["body"]))
try:
    urllib.request.urlopen(urllib.request.Request(base + "/echo", method="DELETE"))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, "egress.method" in error.read().decode()]))
with requests.Session() as session:
    print(json.dumps(session.post(base + "/echo", json={{"a": "\\u00fc"}}).json()["body"]))
    print(json.dumps(session.post(base + "/digest", data=bytes({LARGE})).text))
    print(json.dumps(len(session.get(base + "/bytes?{LARGE}").content)))
    print(json.dumps(session.get(base + "/echo.gz").json()["target"]))
    print(json.dumps(session.get(base + "/echo.chunks").json()["target"]))
    print(json.dumps(session.get(base + "/redirect?/echo").json()["target"]))
    print(json.dumps(session.get(base + "/status?204").status_code))
try:
    requests.get("https://other.example.com/")
except requests.ConnectionError as error:
    print(json.dumps("Name or service not known" in str(error)))
""")
        self.assertEqual(out, ["/echo?x=1", "hello", [403, True], '{"a": "\\u00fc"}',
                               f"{hashlib.sha256(bytes(LARGE)).hexdigest()} {LARGE}\n", LARGE, "/echo.gz",
                               "/echo.chunks", "/echo", 204, True])
        self.assertEqual(len(api.seen("/echo")), 4)


class EventsClientTest(EgressTest):
    MANIFEST = API

    def test_server_sent_events_come_one_by_one(self):
        self.api()
        out = self.python("""
import requests, time
answer = requests.get("https://api.example.com/events?5", stream=True)
begun = time.monotonic()
for line in answer.iter_lines():
    if line:
        print(json.dumps([line.decode().split()[1], time.monotonic() - begun]))
""")
        self.assertEqual([number for number, _ in out], ["0", "1", "2", "3", "4"])
        # A fifth of a second lies between two at the origin; a proxy that waits for the end has none between them.
        times = [when for _, when in out]
        self.assertGreater(times[4] - times[0], 0.4, times)
        self.assertGreater(times[2] - times[0], 0.1, times)


class WebSocketClientTest(EgressTest):
    MANIFEST = API.replace("paths: [/**]}", "paths: [/**], websocket: true}")

    SCRIPT = """
import asyncio, websockets
async def talk():
    async with websockets.connect("wss://api.example.com/ws") as socket:
        print(json.dumps(await socket.recv()))
        for size in (0, 1, 125, 126, 70000):
            await socket.send("x" * size)
            print(json.dumps(len(await socket.recv())))
        await socket.send(bytes(range(256)))
        print(json.dumps(list(await socket.recv()) == list(range(256))))
try:
    asyncio.run(talk())
except websockets.InvalidStatusCode as error:
    print(json.dumps(error.status_code))
"""

    def test_messages_of_all_sizes_and_the_one_behind_the_head(self):
        self.api()
        self.assertEqual(self.python(self.SCRIPT), ["welcome", 0, 1, 125, 126, 70000, True])

    def test_without_the_word_there_is_no_websocket(self):
        api = self.api()
        self.assertEqual(self.python(self.SCRIPT, API), [403])
        self.assertEqual(api.requests, [])


class GrpcClientTest(EgressTest):
    def test_calls_of_all_kinds(self):
        server = self.serve(GrpcServer(self.folder, self.authority, "grpc.example.com"), "grpc.example.com")
        out = self.python("""
import grpc
channel = grpc.secure_channel("grpc.example.com:443", grpc.ssl_channel_credentials())
print(json.dumps(channel.unary_unary("/test.Echo/Unary")(b"hi", timeout=60, metadata=[("x-tag", "a")]).decode()))
print(json.dumps([m.decode() for m in channel.unary_stream("/test.Echo/Down")(b"abc", timeout=60)]))
print(json.dumps([m.decode() for m in channel.stream_stream("/test.Echo/Both")(iter([b"x", b"y"]), timeout=60)]))
print(json.dumps(len(channel.unary_unary("/test.Echo/Unary")(bytes(1 << 20), timeout=60))))
try:
    channel.unary_unary("/test.Other/Unary")(b"hi", timeout=60)
except grpc.RpcError as error:
    print(json.dumps(error.code().name))
""", """
image: egress-clients
limits: {memory: 768MiB, disk: 1GiB}
egress: [{host: grpc.example.com, methods: [POST], paths: [/test.Echo/*]}]
""")
        self.assertEqual(out, ["hi", ["a", "b", "c"], ["x", "y"], 1 << 20, "PERMISSION_DENIED"])
        self.assertEqual([call.get("x-tag") for call in server.calls()], ["a", None, None, None])


class NodeClientTest(EgressTest):
    MANIFEST = API

    def test_fetch_and_https(self):
        api = self.api()
        out = self.sandbox("""
            cat > client.mjs <<'END'
import https from "node:https";
const base = "https://api.example.com";
console.log((await (await fetch(base + "/echo", {method: "POST", body: "hello"})).json()).body);
console.log((await (await fetch(base + "/redirect?/echo.gz")).json()).target);
console.log((await fetch(base + "/echo", {method: "DELETE"})).status);
try { await fetch("https://other.example.com/"); } catch (error) { console.log(error.cause.code); }
https.get(base + "/echo.chunks", answer => {
  let text = "";
  answer.on("data", piece => text += piece).on("end", () => console.log(JSON.parse(text).target));
});
END
            node client.mjs""").splitlines()
        self.assertEqual(out, ["hello", "/echo.gz", "403", "ENOTFOUND", "/echo.chunks"])
        self.assertEqual(len(api.requests), 4)


class NpmClientTest(EgressTest):  # 48 s
    limit = 2 * LIMIT  # npm is ten seconds of computing before it does anything
    MANIFEST = """
image: egress-clients
limits: {memory: 768MiB, disk: 1GiB}
rating: 8m
workspace: {entries: {npm: {type: mount, source: {bind: npm}}}}
egress: [{preset: npm}]
"""

    @unittest.skipUnless(npm_folder(), "needs npm in a folder of its own, or the registry to fetch it from")
    def test_install_real_packages_with_what_they_depend_on(self):
        registry = self.serve(Registry(self.folder, self.authority, "minimatch", "@npmcli/fs"), "registry.npmjs.org")
        self.options += ["--bind", f"npm={npm_folder()}"]
        out = self.sandbox("""
            mkdir app && cd app && echo '{}' > package.json
            node ../npm/bin/npm-cli.js install minimatch @npmcli/fs >&2 || exit
            ls node_modules node_modules/@npmcli
            cat > use.js <<'END'
console.log(require("minimatch").minimatch("src/a/b.js", "src/**/*.{js,ts}"));
console.log(Object.values(require("./package-lock.json").packages).filter(p => p.integrity).length);
END
            node use.js""").split()
        self.assertEqual(out[-2], "true", out)
        self.assertLess({"minimatch", "@npmcli", "fs", "brace-expansion", "balanced-match", "semver"}, set(out))
        fetched = sorted(r["uri"] for r in registry.seen() if r["uri"].startswith("/files/"))
        self.assertEqual(len(fetched), int(out[-1]))
        self.assertLess(set(fetched), {uri for packed in registry.packed.values() for uri in packed} | {"another"})
        self.assertEqual({r["status"] for r in registry.seen()}, {"200"})
        # It may send a list of what it installed to be audited, which the preset does not allow.
        self.assertLessEqual({c["method"] for c in self.crossings(kind="request", verdict="denied")}, {"POST"})


class GoClientTest(EgressTest):
    MANIFEST = API

    SOURCE = """
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func say(answer *http.Response, err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	body, err := io.ReadAll(answer.Body)
	fmt.Println(answer.StatusCode, answer.Proto, len(body), strings.Contains(string(body), "hello"), err)
}

func main() {
	say(http.Post("https://api.example.com/echo?go", "text/plain", strings.NewReader("hello")))
	say(http.Get("https://api.example.com/bytes?3145728"))
	_, err := http.Get("https://other.example.com/")
	fmt.Println(strings.HasSuffix(err.Error(), "no such host"))
}
"""

    @unittest.skipUnless(shutil.which("go"), "needs go")
    def test_a_static_program_with_a_resolver_and_tls_of_its_own(self):
        api = self.api()
        folder = self.work / "go"
        folder.mkdir()
        (folder / "client.go").write_text(self.SOURCE)
        subprocess.run(["go", "build", "-o", "client", "client.go"], cwd=folder, check=True, capture_output=True,
                       env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOFLAGS": ""})
        out = self.sandbox("go/client", API + "workspace: {entries: {go: {type: local_dir, src: go}}}\n").splitlines()
        self.assertEqual(out[0].split()[:2] + out[0].split()[3:], ["200", "HTTP/2.0", "true", "<nil>"])
        self.assertEqual(out[1:], ["200 HTTP/2.0 3145728 false <nil>", "true"])
        self.assertEqual([r.method for r in api.requests], ["POST", "GET"])


class JavaClientTest(EgressTest):  # 30 s
    MANIFEST = API

    SOURCE = """
import java.io.*;
import java.net.*;
import java.net.http.*;

public class Client {
  public static void main(String[] arguments) throws Exception {
    URI echo = URI.create("https://api.example.com/echo?java");
    HttpResponse<String> answer = HttpClient.newHttpClient().send(
        HttpRequest.newBuilder(echo).POST(HttpRequest.BodyPublishers.ofString("hello")).build(),
        HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + " " + answer.version() + " " + answer.body().contains("hello"));
    HttpURLConnection old = (HttpURLConnection) echo.toURL().openConnection();
    System.out.println(old.getResponseCode() + " " + new String(old.getInputStream().readAllBytes()).contains("java"));
  }
}
"""

    @unittest.skipUnless(shutil.which("javac"), "needs javac")
    def test_a_runtime_with_a_trust_store_of_its_own(self):
        api = self.api()
        folder = self.work / "java"
        folder.mkdir()
        (folder / "Client.java").write_text(self.SOURCE)
        subprocess.run(["javac", "--release", "17", "Client.java"], cwd=folder, check=True)
        out = self.sandbox("java -Xshare:auto -XX:TieredStopAtLevel=1 -cp java Client",
                           API + "workspace: {entries: {java: {type: local_dir, src: java}}}\n")
        self.assertEqual(out, "200 HTTP_2 true\n200 true\n")
        self.assertEqual([r.method for r in api.requests], ["POST", "GET"])


class GitClientTest(EgressTest):  # 32 s
    MANIFEST = """
image: egress-clients
limits: {memory: 512MiB, disk: 1GiB}
egress:
  - host: git.example.com
    git: {repository: acme/widget, fetch: true, push: ["refs/heads/agent/**"]}
    credential: forge
credentials:
  forge: {env: GIT_TOKEN, inject: basic, user: x-access-token}
"""

    def test_inv08_inv09_clone_and_push_with_a_credential_that_never_enters(self):
        server = self.serve(GitServer(self.folder / "git", self.authority, ["git.example.com"]), "git.example.com")
        server.repository("acme/widget")
        server.repository("acme/other")
        config = self.folder / "config/firestop"
        config.mkdir(parents=True)
        (config / "credentials.yaml").write_text("forge: {hosts: [git.example.com], env: REAL_GIT_TOKEN}\n")
        (config / "credentials.yaml").chmod(0o600)
        self.env["REAL_GIT_TOKEN"] = "real-git-token"
        out = self.sandbox("""
            exec 2>&1
            git clone -q https://git.example.com/acme/widget.git && cd widget && cat README
            echo more >> README && git -c user.name=A -c user.email=a@example.org commit -qam more
            git push -q origin HEAD:agent/more && echo pushed
            git push -q origin HEAD:main
            git push -q origin HEAD:agent/more :main
            git clone -q https://git.example.com/acme/other.git
            head -c 3000000 /dev/urandom > noise && git add noise
            git -c user.name=A -c user.email=a@example.org commit -qm noise
            git push -q origin HEAD:stable
            git push -q origin HEAD:agent/noise && echo pushed all
            env | grep -c real-git-token; grep -rs real-git-token ~ . | wc -l
            """)
        self.assertTrue(out.startswith("hello\npushed\n"), out)
        self.assertIn("remote: Firestop: this push is refused as a whole, nothing of it has left the sandbox.", out)
        self.assertIn("! [remote rejected] HEAD -> main (firestop: only refs/heads/agent/** may be pushed)", out)
        self.assertIn("! [remote rejected] main (firestop: only refs/heads/agent/** may be pushed)", out)
        self.assertIn("fatal: remote error: Firestop: ", out)
        # A pack that is refused while it is still being sent, and one that goes in chunks.
        self.assertIn("! [remote rejected] HEAD -> stable (firestop: only refs/heads/agent/** may be pushed)", out)
        self.assertTrue(out.endswith("\npushed all\n0\n0\n"), out)
        refs = server.refs("acme/widget")
        self.assertEqual(sorted(refs), ["refs/heads/agent/more", "refs/heads/agent/noise", "refs/heads/main"])
        self.assertNotEqual(refs["refs/heads/agent/more"], refs["refs/heads/main"])
        self.assertNotIn("other", json.dumps(server.seen()))
        pushed = [c for c in self.crossings(kind="request", verdict="allowed", credential="forge")
                  if c.get("detail", "").startswith("push: refs/heads/agent/more created to ")]
        self.assertEqual(len(pushed), 1)
        refused = self.crossings(kind="request", code="egress.git_ref")
        self.assertEqual([c["verdict"] for c in refused], ["denied"] * 3)
        self.assertIn("refs/heads/main may not be updated", refused[0]["detail"])


class AptClientTest(EgressTest):
    MANIFEST = """
image: egress-clients
limits: {memory: 512MiB, disk: 1GiB}
egress: [{host: mirror.example.com, methods: [GET], paths: ["/debian/**"]}]
"""

    def package(self, root, name, version):
        """A small Debian package in a repository below `root`."""
        tree = self.folder / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "opt").mkdir()
        (tree / "opt" / name).write_text(f"{name} {version}\n")
        control = (f"Package: {name}\nVersion: {version}\nArchitecture: all\n"
                   "Maintainer: Test <test@example.org>\nDescription: a test\n")
        (tree / "DEBIAN/control").write_text(control)
        deb, index = root / f"pool/{name}_{version}_all.deb", root / "dists/stable/main/binary-amd64/Packages"
        deb.parent.mkdir(parents=True)
        index.parent.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree, deb], check=True, capture_output=True)
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        index.write_text(f"{control}Filename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n")

    def test_update_and_install(self):
        root = self.folder / "www"
        self.package(root / "debian", "firestop-hello", "1.0")
        self.serve(Files(self.folder / "nginx", self.authority, ["mirror.example.com"], root), "mirror.example.com")
        self.env["FIRESTOP_TEST_GUEST_ROOT"] = "1"
        out = self.sandbox("""
            exec 2>&1
            rm -rf /etc/apt/sources.list /etc/apt/sources.list.d
            echo "deb [trusted=yes] https://mirror.example.com/debian stable main" > /etc/apt/sources.list
            apt-get update && apt-get install -y firestop-hello && cat /opt/firestop-hello
            """)
        self.assertTrue(out.endswith("\nfirestop-hello 1.0\n"), out)


if __name__ == "__main__":
    main()
