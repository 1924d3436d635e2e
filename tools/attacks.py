"""The attacks: every test whose name begins with invNN_ (C++) or test_invNN_ (Python), run and listed by invariant."""
import ast
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

NUMBER = re.compile(r"(?:^|_)inv(\d\d)_")
ROW = re.compile(r"^\| (\d+) \| \*\*(.+?)\*\*")


class Attack:
    def __init__(self, where, name, argv=None):
        self.where, self.name, self.argv = where, name, argv
        self.invariant = int(NUMBER.search(name.split(".")[-1])[1])
        self.verdict, self.seconds, self.output = "did not run", 0.0, ""


def promises(source):
    """What each invariant says, from the threat model's table."""
    rows = (ROW.match(line) for line in (source / "docs/threat-model.md").read_text().splitlines())
    return {int(row[1]): row[2] for row in rows if row}


def in_python(source):
    found = []
    for script in sorted(source.glob("tests/*/*_test.py")):
        for node in ast.parse(script.read_text()).body:
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                name = getattr(method, "name", "")
                if name.startswith("test_inv") and NUMBER.search(name):
                    test = f"{node.name}.{name}"
                    found.append(Attack(str(script.relative_to(source)), test, [sys.executable, str(script), test]))
    return found


def in_program(program):
    """The attacks of a program of unit tests."""
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, found = "", []
    for line in listed.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = word
        elif NUMBER.search(word):
            found.append(Attack(program.name, suite + word))
    return found


def run_program(program, attacks):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        argv = [program, f"--gtest_filter={':'.join(attack.name for attack in attacks)}",
                f"--gtest_output=json:{report.name}"]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=1800)
        text = pathlib.Path(report.name).read_text()
    suites = json.loads(text)["testsuites"] if text else []
    results = {f"{suite['name']}.{test['name']}": test for suite in suites for test in suite["testsuite"]}
    for attack in attacks:
        result = results.get(attack.name)
        attack.output = done.stdout
        if result and result["status"] == "RUN":
            attack.seconds = float(result["time"].rstrip("s"))
            failed = "failures" in result
            attack.verdict = "FAILED" if failed else "skipped" if result["result"] == "SKIPPED" else "passed"


def run_python(attack, firestop):
    begun = time.monotonic()
    try:
        done = subprocess.run(attack.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=1800, env={**os.environ, "FIRESTOP": str(firestop)})
        attack.output = done.stdout
        skipped = "skipped=" in done.stdout.strip().splitlines()[-1]
        attack.verdict = "FAILED" if done.returncode else "skipped" if skipped else "passed"
    except subprocess.TimeoutExpired:
        attack.verdict = "FAILED"
    attack.seconds = time.monotonic() - begun


def run(source, build, jobs, say):
    """Runs all; `say` is told of each as it ends. Returns the attacks with their verdicts."""
    python, programs = in_python(source), {}
    for program in sorted((build / "bin").glob("*_test")):
        if attacks := in_program(program):
            programs[program] = attacks
    everything = python + [attack for attacks in programs.values() for attack in attacks]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        todo = {pool.submit(run_python, attack, build / "bin/firestop"): [attack] for attack in python}
        todo |= {pool.submit(run_program, program, attacks): attacks for program, attacks in programs.items()}
        for done in concurrent.futures.as_completed(todo):
            done.result()
            for attack in todo[done]:
                say(f"{attack.verdict}: {attack.name}")
    return everything


def table(source, attacks):
    """The list for people: by invariant, each attack with its result."""
    says, lines = promises(source), []
    for number in sorted({attack.invariant for attack in attacks} | set(says)):
        lines.append(f"\nInvariant {number}. {says.get(number, '')}")
        of_it = sorted((attack for attack in attacks if attack.invariant == number), key=lambda a: (a.where, a.name))
        for attack in of_it:
            lines.append(f"  {attack.verdict:8} {attack.seconds:6.1f} s  {attack.name}  ({attack.where})")
        if not of_it:
            lines.append("  no attack yet")
    return "\n".join(lines)
