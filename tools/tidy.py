#!/usr/bin/env python3
"""clang-tidy over the product's sources, with a memory: what was clean is not looked at again until it, a header
it includes, its compiler command or the configuration changes. The memory is empty files named by digests, in the
user's cache, so that fresh clones (as CI makes them) profit. A first run takes some minutes on two cores."""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = SOURCE / "build/lint"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
CLEAN = CACHE / "firestop-tidy"
KEEP_DAYS = 30
TIDY = "clang-tidy-19"
# The analyzer's quick mode: half the time of a file, and what it finds in headers is found at their users.
SHALLOW = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"]


@functools.cache
def read(path):
    return path.read_bytes()


@functools.cache
def includes_of(path):
    """The project's files that `path` includes, at any depth."""
    found, todo = set(), [path]
    while todo:
        for name in re.findall(rb'^\s*#\s*include\s+"([^"]+)"', read(todo.pop()), re.M):
            header = SOURCE / "src" / os.fsdecode(name)
            if header not in found and header.exists():
                found.add(header)
                todo.append(header)
    return sorted(found)


def key_of(entry, common):
    digest = hashlib.sha256(common)
    # The checkout's place is no part of what is checked.
    digest.update(entry["command"].replace(str(SOURCE), "").encode())
    path = pathlib.Path(entry["file"])
    for file in [path, *includes_of(path)]:
        digest.update(str(file.relative_to(SOURCE)).encode() + b"\0" + read(file))
    return digest.hexdigest()


def check(path):
    ran = subprocess.run([TIDY, "-p", FOLDER, "--quiet", *(f"--extra-arg={word}" for word in SHALLOW), path],
                         capture_output=True, text=True)
    return ran.returncode, ran.stdout.strip() or ran.stderr.strip()


def main():
    configure = ["cmake", "-S", SOURCE, "-B", FOLDER, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_C_COMPILER=clang-19", "-DFIRESTOP_TESTS=OFF"]
    ran = subprocess.run(configure, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stdout + ran.stderr)
    CLEAN.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + read(SOURCE / ".clang-tidy") + read(pathlib.Path(__file__))
    for old in CLEAN.iterdir():
        if time.time() - old.stat().st_mtime > KEEP_DAYS * 86400:
            old.unlink(missing_ok=True)

    todo = {}  # path -> key; a file that is built twice (host and guest) is checked as it is built first
    for entry in json.loads((FOLDER / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(SOURCE / "src") and path not in todo:
            todo[path] = key_of(entry, common)
    for key in todo.values():
        if (CLEAN / key).exists():
            (CLEAN / key).touch()
    stale = {path: key for path, key in todo.items() if not (CLEAN / key).exists()}
    print(f"clang-tidy: {len(stale)} of {len(todo)} files to look at", flush=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (path, (code, output)) in enumerate(zip(stale, pool.map(check, stale)), 1):
            if code == 0:
                (CLEAN / stale[path]).touch()
            else:
                failed += 1
                print(output, flush=True)
            if done % 10 == 0:
                print(f"clang-tidy: {done} of {len(stale)} done", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
