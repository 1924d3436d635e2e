#!/usr/bin/env python3
"""Lists the classes of a script that have tests, one a line, with the seconds that its "# N s" says (0: none said).

A class counts if it or a class of the same script that it comes from has a method test_...; a base without any is none.
Usage: test_classes.py SCRIPT
"""
import ast
import re
import sys


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    lines = text.splitlines()
    has_tests = {}
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef):
            continue
        own = any(getattr(member, "name", "").startswith("test_") for member in node.body)
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        has_tests[node.name] = own or any(has_tests.get(base) for base in bases)
        if has_tests[node.name]:
            seconds = re.search(r"# (\d+) s$", lines[node.lineno - 1])
            print(node.name, seconds[1] if seconds else 0)


if __name__ == "__main__":
    main()
