"""npm for tests: the client as a folder, and a registry of real packages, with what they depend on.

Debian's package of npm has 350 others behind it; npm itself is distributed as one folder of plain JavaScript.
"""
import base64
import functools
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import urllib.request

from egress_servers import Files

NPM = "npm-10.9.4.tgz"  # runs with Node 18, which is Debian's
NPM_SHA512 = "OnUG836FwboQIbqtefDNlyR0gTHzIfwRfE3DuiNewBvnMnWEpB0VEXwBlFVgqpNzIgYo/MHh3d2Hel/pszapAA=="


def cache_folder():
    """What tests keep of what they fetched."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "firestop-tests"


@functools.cache
def npm_folder():
    """The host's npm, or one fetched from its registry once and kept; None if there is no network either."""
    program = shutil.which("npm")
    folder = pathlib.Path(program).resolve().parent.parent if program else None
    if folder and (folder / "node_modules").is_dir():
        return folder
    folder = cache_folder() / NPM.removesuffix(".tgz")
    if not folder.is_dir():
        try:
            with urllib.request.urlopen("https://registry.npmjs.org/npm/-/" + NPM, timeout=30) as answer:
                data = answer.read()
        except OSError:
            return None
        if sha512(data) != NPM_SHA512:
            raise RuntimeError(f"{NPM} is not what its name stood for when this test was written")
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(fresh)  # nothing but what the digest names
        try:
            (fresh / "package").rename(folder)
        except OSError:
            pass  # another test was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def npm_ci(folder):
    """`npm ci` in `folder`: exactly what package-lock.json says, byte for byte. No package's script is run."""
    program = [shutil.which("node") or "node", npm_folder() / "bin/npm-cli.js"]
    done = subprocess.run([*program, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm ci in {folder}: {done.stdout}{done.stderr}")


def sha512(data):
    return base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry(Files):
    """registry.npmjs.org with real packages: those that npm itself is made of, all of them with what they need.

    `packed` has the tarballs' paths by package name.
    """

    def __init__(self, folder, authority, *names):
        self.root, self.packed = folder / "www", {}
        (self.root / "files").mkdir(parents=True)
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in self.packed:
                todo += self.add(name)
        own = json.loads((npm_folder() / "package.json").read_text())
        self.publish("npm", {own["version"]: own})  # it looks whether there is a newer one
        super().__init__(folder / "nginx", authority, ["registry.npmjs.org"], self.root)

    def add(self, name):
        """Publishes every version of a package that there is; returns the names of what they depend on."""
        versions, needs, self.packed[name] = {}, [], []
        for at in sorted(npm_folder().glob(f"**/node_modules/{name}/package.json")):
            manifest = json.loads(at.read_text())
            tarball = self.root / f"files/{name.replace('/', '-')}-{manifest['version']}.tgz"
            subprocess.run(["tar", "-czf", tarball, "--exclude=./node_modules", "--transform=s,^[.],package,",
                            "-C", at.parent, "."], check=True)
            manifest["dist"] = {"tarball": f"https://registry.npmjs.org/files/{tarball.name}",
                                "integrity": "sha512-" + sha512(tarball.read_bytes())}
            versions[manifest["version"]] = manifest
            needs += manifest.get("dependencies", {})
            self.packed[name].append("/files/" + tarball.name)
        self.publish(name, versions)
        return needs

    def publish(self, name, versions):
        document = self.root / name
        document.parent.mkdir(exist_ok=True)
        document.write_text(json.dumps({"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": versions}))
