#!/usr/bin/env python3
"""Checks on the tree as text: file sizes, links between documents, scripts, traces of one person's machine."""
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES = 600  # of a source file; beyond it, a concept wants a file of its own
GOOD_LINES = 500

# Paths that exist on the authors' machines only. The brackets keep this line from finding itself.
PRIVATE = re.compile(r"(?<![\w.])/wor[k]/(main|share[d]|\.)|\.\./share[d]\b|\.librar[y]/")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE,
                            capture_output=True, check=True).stdout
    for name in sorted(filter(None, listed.decode().split("\0"))):
        path = SOURCE / name
        if path.is_file() and not path.is_symlink():
            yield name, path


def text_of(path):
    data = path.read_bytes()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def anchors(text):
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def link_faults(name, path, text):
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
    for number, line in enumerate(prose.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            goal = (path.parent / file).resolve() if file else path
            if not goal.is_relative_to(SOURCE) or not goal.exists():
                yield f"{name}:{number}: the link to {target} leads nowhere"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text()):
                yield f"{name}:{number}: {target}: no such heading"


def promise_faults():
    """Every test that the threat model names must exist: a promise whose test is gone is none."""
    name = "docs/threat-model.md"
    tests = "\n".join(f"{path.stem}\n{text_of(path) or ''}" for file, path in tracked()
                      if ("test" in file or file.startswith("fuzz/")) and file.endswith((".cc", ".py")))
    for number, line in enumerate((SOURCE / name).read_text().splitlines(), 1):
        if re.match(r"\| \d+ \|", line):
            for test in re.findall(r"`(\w+)`", line.rstrip("| ").rpartition("|")[2]):
                if not re.search(rf"\b(test_)?{test}\b", tests):
                    yield f"{name}:{number}: there is no test {test}"


def script_fault(path, text):
    first = text.split("\n", 1)[0]
    if not first.startswith("#!"):
        return None
    if not path.stat().st_mode & 0o111:
        return "has an interpreter line but is not executable"
    command = None
    if re.search(r"\b(ba)?sh\b", first):
        command = ["shellcheck", "-S", "style", path]
    elif "python" in first:
        command = [sys.executable, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])", path]
    if command:
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            return (ran.stdout + ran.stderr).strip()
    return None


def faults():
    yield from promise_faults()
    for name, path in tracked():
        text = text_of(path)
        if text is None or name.startswith("fuzz/corpus/"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if PRIVATE.search(line):
                yield f"{name}:{number}: names a folder of the authors' machines"
        if path.suffix == ".md":
            yield from link_faults(name, path, text)
        elif path.suffix == ".py" and not text.startswith("#!"):
            try:
                compile(text, name, "exec")
            except SyntaxError as error:
                yield f"{name}:{error.lineno}: {error.msg}"
        elif fault := script_fault(path, text):
            yield f"{name}: {fault}"
        if path.suffix in (".cc", ".h", ".c", ".py", ".sh") and text.count("\n") > GOOD_LINES:
            lines = text.count("\n")
            if lines > MOST_LINES:
                yield f"{name}: {lines} lines; {MOST_LINES} is the most, {GOOD_LINES} is much"
            else:
                print(f"note: {name}: {lines} lines, {MOST_LINES} is the most", file=sys.stderr)


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found))
    sys.exit(1 if found else 0)
