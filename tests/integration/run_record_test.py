"""What a run really did, read afterwards: the script that nobody reviewed and that is gone when somebody looks."""
import html
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402

# A shell that stands for an agent: it writes a script to a temporary file, runs it, deletes it, and goes on.
AGENT = """\
script=$(mktemp /tmp/task-XXXXXX)
printf '%s\\n' '#!/bin/sh' 'echo "copied $(wc -l < README) line" > copied.txt' > "$script"
sh "$script"
rm "$script"
echo "all done"
"""
BYTES = b'#!/bin/sh\necho "copied $(wc -l < README) line" > copied.txt\n'


class RecordTest(SandboxTest):
    def test_a_script_that_deletes_its_traces_is_read_afterwards(self):
        self.repository({"README": "one\n", "agent.sh": AGENT})
        self.manifest("""\
            workspace: {entries: {repo: {type: git_repo, repo: "."}}}
            command: [sh, -c, "cd repo && exec sh agent.sh"]
            """)
        out = self.firestop("run", "--name", "story").stdout
        self.assertEqual(out, b"all done\n")  # its own story

        [script] = [script for script in self.json_of("scripts", "story") if script["path"].startswith("/tmp/task-")]
        self.assertEqual(script["how"], "argument")
        self.assertEqual(script["size"], len(BYTES))
        self.assertIsNot(script["exists"], True)
        self.assertIn(script["written_by"]["name"], ("sh", "dash"))
        self.assertIn(script["ran_by"]["name"], ("sh", "dash"))
        self.assertNotEqual(script["ran_by"]["pid"], script["written_by"]["pid"])
        number = str(script["number"])
        self.assertEqual(self.firestop("scripts", "story", "--show", number).stdout, BYTES)
        self.firestop("scripts", "story", "--export", self.folder / "seen")
        self.assertEqual((self.folder / "seen" / script["digest"]).read_bytes(), BYTES)

        tree = self.firestop("ps-tree", "story").stdout.decode()
        self.assertIn("sh " + script["path"], tree)
        page = html.unescape(self.firestop("report", "story", "--format", "html").stdout.decode())
        self.assertIn(script["path"], page)
        self.assertIn(script["digest"][:16], page)
        self.assertIn(">intact<", page)

        trace = self.folder / "trace.jsonl"
        trace.write_text(json.dumps({"command": "cd repo && exec sh agent.sh", "exit": 0}) + "\n")
        found = self.firestop("reconcile", "story", "--trace", trace, status=3).stdout.decode()
        self.assertIn(script["path"], found)


class AnchorTest(SandboxTest):  # 30 s
    def test_inv11_a_slow_anchor_holds_up_no_output(self):
        self.manifest("")
        anchor = self.folder / "anchor.jsonl"
        # The second checkpoint, in the middle of the run, takes eight seconds.
        slow = f"command:n=$(wc -l < {anchor}); cat >> {anchor}; test $n -ne 1 || {{ touch {anchor}.slow; sleep 8; }}"
        anchor.touch()
        process = self.start("run", "--name", "slow", "--anchor", slow, "--", "sh", "-c",
                             "i=0; while [ $i -lt 500 ]; do i=$((i + 1)); /bin/true; echo $i; done",
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        before, longest, lines, began = None, 0, 0, None
        for _ in process.stdout:
            now = time.monotonic()
            longest = max(longest, now - (before or now))
            before, lines = now, lines + 1
            if not began and pathlib.Path(f"{anchor}.slow").exists():
                began = (now, lines)
        self.assertEqual(process.wait(timeout=120), 0)
        self.assertEqual(lines, 500)
        self.assertTrue(began, "no checkpoint in the middle")
        self.assertGreater(lines - began[1], 20, "it came too late to show anything")
        self.assertLess(longest, 6)
        found = self.json_of("log", "verify", "slow", "--anchor", anchor)
        self.assertEqual(found["integrity"], "intact")
        self.assertTrue(found["complete"])
        self.assertEqual(len(anchor.read_text().splitlines()), found["anchored"])


if __name__ == "__main__":
    main()
