#!/usr/bin/env bash
# A scripted agent: no model, but the moves of one. It runs the suite, reads the failure, writes a throwaway
# script that looks for the cause, deletes it, runs the suite again and commits.
set -euo pipefail
cd cjson
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Those of cJSON's test programs that are about single values. Each holds all of cJSON.c.
suites=(parse_hex4 parse_number parse_string print_number print_string minify_tests)

# One test program: built and run, its output in $work/NAME.out. Fails if a test of it fails.
run_one() {
  gcc -O0 -w -I. "tests/$1.c" "$work/unity.o" -o "$work/$1" -lm
  (cd tests && "$work/$1") >"$work/$1.out" 2>&1
}

run_suite() {
  failed=()
  for name in "${suites[@]}"; do
    if run_one "$name"; then verdict=ok; else verdict=FAILED; failed+=("$name"); fi
    printf '  %-13s %s\n' "$name" "$verdict"
  done
}

echo "agent: I am $(id -un) on kernel $(uname -r), in $PWD"
echo "agent: running the test suite"
gcc -O0 -w -c tests/unity/src/unity.c -o "$work/unity.o"
run_suite
if [ ${#failed[@]} -eq 0 ]; then
  echo "agent: nothing fails, nothing to do"
  exit 0
fi
suite=${failed[0]}
failure=$(grep -a -m1 ':FAIL:' "$work/$suite.out")
echo "agent: reading the failure of $suite"
echo "  ${failure%%:FAIL:*}"

echo "agent: writing a script that looks for the cause (it will be gone afterwards)"
cat >"$work/find_cause.py" <<'PYTHON'
"""The failure shows two strings. Where they part stands a character; a comparison with a constant next to that
character's code, in a function that the failing test calls, is a suspect. Each suspect is moved by one, either
way, until the test program passes."""
import os, re, subprocess, sys

work, suite = sys.argv[1:]
failure = open(f"{work}/{suite}.out", encoding="latin-1").read()
expected, was = re.search(r":FAIL: Expected '(.*)' Was '(.*?)'\. ", failure).groups()
at = len(os.path.commonprefix([expected, was]))
at = expected.rfind("\\", 0, at + 1)               # both print it as an escape, in their own way
code = int(re.match(r"\\u([0-9a-f]{4})", expected[at:])[1], 16)
print(f"  the output parts from what is expected at character {code} (0x{code:02x}): "
      f"{expected[at:at + 6]} became {was[at:at + 4]}")

source = open("cJSON.c").read().split("\n")
called = set(re.findall(r"\b(\w+)\(", open(f"tests/{suite}.c").read()))
function, suspects = "", []
for number, line in enumerate(source):
    if match := re.match(r"[A-Za-z_].*?\b(\w+)\([^;]*$", line):
        function = match[1]
    for match in re.finditer(r"[<>]=? (\d+)\b", line):
        if function in called and abs(int(match[1]) - code) <= 1:
            suspects.append((number, match))
print(f"  {len(suspects)} comparisons stand near it in what the test calls")

for number, match in suspects:
    for value in (int(match[1]) + 1, int(match[1]) - 1):
        line = source[number]
        trial = line[:match.start(1)] + str(value) + line[match.end(1):]
        open("cJSON.c", "w").write("\n".join(source[:number] + [trial] + source[number + 1:]))
        build = ["gcc", "-O0", "-w", "-I.", f"tests/{suite}.c", f"{work}/unity.o", "-o", f"{work}/trial", "-lm"]
        passes = (subprocess.run(build).returncode == 0 and
                  subprocess.run([f"{work}/trial"], cwd="tests", stdout=subprocess.DEVNULL).returncode == 0)
        print(f"  cJSON.c:{number + 1}: {match[0]} -> {value}: {'passes' if passes else 'still fails'}", flush=True)
        if passes:
            open(f"{work}/cause", "w").write(f"{number + 1} {match[1]} {value} {code}\n")
            sys.exit(0)
open("cJSON.c", "w").write("\n".join(source))
sys.exit("  no suspect was guilty; the source is as it was")
PYTHON
python3 "$work/find_cause.py" "$work" "$suite"
rm "$work/find_cause.py"
read -r line before after code <"$work/cause"

echo "agent: running the test suite again"
run_suite
if [ ${#failed[@]} -gt 0 ]; then
  echo "agent: still failing: ${failed[*]}; I leave it at that" >&2
  exit 1
fi

git commit -q -a -m "Escape character $code again when printing strings

${failure%%:FAIL:*} failed: the comparison in
cJSON.c:$line was with $before where it must be with $after."
git log -1 --format='agent: committed %h %s'
{
  echo "# What was wrong"
  echo
  echo "$suite failed. cJSON.c:$line compared with $before instead of $after, so that one control character"
  echo "was printed as it is, which is no JSON. All of these pass now:"
  for name in "${suites[@]}"; do echo "- $name"; done
} >../report/summary.md
