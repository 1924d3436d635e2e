#!/usr/bin/env python3
"""Holds the includes in src/ against the directions that the design allows. Tests may include anything."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent

# What a folder may include besides itself. ARCHITECTURE.md says why; a new arrow is a decision to write there.
ALLOWED = {
    "base": (),
    "codec": ("base",),
    "channel": ("base", "codec"),
    "erofs": ("base",),
    "jail": ("base",),
    "guest": ("base", "codec", "channel"),
    "manifest": ("base", "codec", "jail"),
    "image": ("base", "codec", "erofs"),
    "vmm": ("base", "codec", "jail"),
    "workspace": ("base", "codec", "erofs", "manifest", "jail"),
    "http": ("base", "codec"),
    "credentials": ("base", "codec", "http", "manifest"),
    "egress": ("base", "codec", "jail", "manifest", "http", "credentials"),
    "evidence": ("base", "codec"),
    "story": ("base", "codec", "evidence"),
    "reconcile": ("base", "codec", "evidence", "story"),
    "report": ("base", "codec", "manifest", "evidence", "story"),
    "exports": ("base", "codec", "evidence", "story"),
    "sandbox": ("base", "codec", "channel", "erofs", "jail", "manifest", "image", "vmm", "workspace", "credentials", "egress",
                "evidence"),
    "cli": ("base", "codec", "http", "jail", "manifest", "image", "vmm", "workspace", "credentials", "egress", "evidence",
            "story", "reconcile", "report", "exports", "sandbox"),
}


def circle():
    """A folder that can reach itself through the table, or None."""
    for start in ALLOWED:
        reached, todo = set(), list(ALLOWED[start])
        while todo:
            folder = todo.pop()
            if folder == start:
                return start
            if folder not in reached:
                reached.add(folder)
                todo.extend(ALLOWED[folder])
    return None


def faults():
    if folder := circle():
        yield f"tools/check_includes.py: the table has a circle through {folder}"
    for path in sorted((SOURCE / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".c") or path.stem.endswith("_test"):
            continue
        name = path.relative_to(SOURCE)
        folder = name.parts[1]
        if folder not in ALLOWED:
            yield f"{name}: folder src/{folder} is not in the table of tools/check_includes.py"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            included = match[1]
            if ".." in included.split("/") or not (SOURCE / "src" / included).exists():
                yield f'{name}:{number}: "{included}" is no path below src/'
                continue
            other = included.split("/")[0]
            if other != folder and other not in ALLOWED[folder]:
                allowed = ", ".join(ALLOWED[folder]) or "nothing else"
                yield f"{name}:{number}: {folder} must not include {other}; it may include {allowed}"


if __name__ == "__main__":
    found = list(faults())
    print("\n".join(found))
    sys.exit(1 if found else 0)
