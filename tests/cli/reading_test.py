"""ps-tree, scripts and network: a record as people read it. Records are made by hand; tests/lib/made_record.py."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import made_record  # noqa: E402
from firestop_test import FIRESTOP, LIMIT, CliTest, main  # noqa: E402

ONE, TWO = "20261129-100000-aaaaaa", "20261129-110000-bbbbbb"
CURSOR = "\x1b\x9b\x07\x08\r\u202e\u2066"  # what moves a cursor or turns text around


class RecordTest(CliTest):
    def record(self, make=made_record.small, run=ONE):
        directory = self.make_run(run) / "evidence"
        make(directory).write()
        return directory

    def assert_printable(self, text):
        self.assertEqual([c for c in CURSOR if c in text], [])


class FindTest(RecordTest):
    def test_a_run_by_name_prefix_or_directory(self):
        directory = self.record()
        wanted = self.firestop("ps-tree", ONE).stdout
        self.assertIn("./agent.sh", wanted)
        for word in ("fix", ONE[:12], directory, directory.parent, os.path.relpath(directory, self.work)):
            self.assertEqual(self.firestop("ps-tree", word).stdout, wanted, word)

    def test_what_is_none(self):
        self.make_run(ONE)
        for command in ("ps-tree", "scripts"):
            self.assert_json_error((command, "nope", "--json"),
                                   "run.not_found", 240)
            self.assert_error(self.firestop(command, "/nowhere", status=None), "no record", 242)
            self.assert_error(self.firestop(command, ONE, status=None), "has no record", 242)

    def test_a_half_record_says_so_and_shows_what_there_is(self):
        directory = self.record()
        lines = (directory / "events.jsonl").read_text().splitlines(keepends=True)
        (directory / "events.jsonl").write_text("".join(lines[:12]) + "{\n" + "".join(lines[12:]))
        done = self.firestop("ps-tree", ONE)
        self.assertIn("events.jsonl:13", done.stderr)
        self.assertIn("./agent.sh", done.stdout)
        self.assertNotIn("curl", done.stdout)


class PsTreeTest(RecordTest):
    def test_the_tree(self):
        self.record()
        lines = self.firestop("ps-tree", ONE).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["TOOK", "CPU", "EXIT", "PID", "PROCESS"])
        self.assertEqual([line[lines[0].index("PROCESS"):] for line in lines[1:]], [
            "/bin/sh ./agent.sh", "|- /usr/bin/curl https://api.example.com/v1/chat", "|- /usr/bin/python3 /tmp/x.py",
            "`- /bin/sh -c 'sleep 1 & exit'", "   `- (a copy of sh)"])
        self.assertEqual(lines[3].split()[:4], ["200ms", "100ms", "1", "4"])
        self.assertEqual(lines[5].split()[2], "KILL")

    def test_colours_are_for_terminals(self):
        self.record(made_record.hostile)
        self.assertNotIn("\x1b", self.firestop("ps-tree", ONE).stdout)
        self.assertIn("\x1b[", self.on_a_terminal("ps-tree", ONE))
        self.assertNotIn("\x1b", self.on_a_terminal("ps-tree", ONE, env={"NO_COLOR": "1"}))
        for line in self.on_a_terminal("ps-tree", ONE, env={"NO_COLOR": "1"}).splitlines()[:8]:
            self.assertLessEqual(len(line), 80)

    def test_json(self):
        self.record()
        processes = self.json_of("ps-tree", ONE)
        self.assertEqual([process["parent"] for process in processes], [None, 0, 0, 0, 3])
        self.assertEqual(processes[2]["status"], 256)
        self.assertEqual(processes[1]["execs"][0]["argv"], ["/usr/bin/curl", "https://api.example.com/v1/chat"])

    def test_a_tree_as_deep_as_it_is_long(self):
        def deep(directory):
            record = made_record.Record(directory).at(1)
            for pid in range(2, 3002):
                record.fork(pid, pid - 1)
            return record
        self.record(deep)
        out = self.firestop("ps-tree", ONE).stdout
        self.assertEqual(len(out.splitlines()), 3001)
        self.assertIn("[2999]", out)
        self.assertLess(max(map(len, out.splitlines())), 200)

    def test_hostile_names(self):
        self.record(made_record.hostile)
        for command in ("ps-tree", "scripts", "network"):
            done = self.firestop(command, ONE)
            self.assert_printable(done.stdout + done.stderr)
            self.assert_printable(self.on_a_terminal(command, ONE, env={"NO_COLOR": "1"}))
            self.firestop(command, ONE, "--json")


class ScriptsTest(RecordTest):
    def test_newest_first_with_who_and_whether(self):
        self.record()
        lines = self.firestop("scripts", ONE).stdout.splitlines()
        self.assertEqual([line.split()[:3] for line in lines[1:]],
                         [["3", "20:00:00.805", "command"], ["2", "20:00:00.512", "argument"],
                          ["1", "20:00:00.100", "script"]])
        self.assertRegex(lines[2], r"12B +1 +no +python3 \(4\) +sh \(2\) +/tmp/x.py by /usr/bin/python3")
        self.assertRegex(lines[3], r"yes +sh \(2\) +- +/workspace/agent.sh")

    def test_show_prints_the_bytes(self):
        def binary(directory):
            return made_record.Record(directory).at(1).code(2, "program", "/tmp/x", bytes(range(256)) * 3)
        self.record(binary)
        raw = subprocess.run([FIRESTOP, "scripts", ONE, "--show", "1"], env=self.env, cwd=self.work, timeout=LIMIT,
                             capture_output=True, check=True).stdout
        self.assertEqual(raw, bytes(range(256)) * 3)
        self.assert_printable(self.on_a_terminal("scripts", ONE, "--show", "1").replace("\r", ""))
        self.assertIn("base64", self.json_of("scripts", ONE, "--show", "1")["bytes"])

    def test_show_of_what_is_not_there(self):
        directory = self.record()
        for number in ("0", "4", "-1", "x", "99999999999999999999"):
            done = self.firestop("scripts", ONE, "--show", number, status=240)
            self.assertIn("firestop: ", done.stderr)
        digest = hashlib.sha256(b"print('hi')\n").hexdigest()
        content = directory / "content" / digest[:2] / digest
        content.write_bytes(b"print('something else')\n")
        self.assert_error(self.firestop("scripts", ONE, "--show", "2", status=None), "were changed since", 242)
        content.unlink()
        content.symlink_to("/etc/passwd")
        self.assert_error(self.firestop("scripts", ONE, "--show", "2", status=None), digest, 242)
        content.unlink()
        self.assert_error(self.firestop("scripts", ONE, "--show", "2", status=None), "no bytes", 242)

    def test_bytes_that_could_not_be_had_are_said(self):
        self.record(lambda directory: made_record.Record(directory).at(1).code(
            2, "stdin", "", None, note="the reader was too fast"))
        self.assertIn("(stdin): the reader was too fast", self.firestop("scripts", ONE).stdout)
        self.assert_error(self.firestop("scripts", ONE, "--show", "1", status=None), "could not be had", 242)

    def test_export(self):
        self.record()
        out = self.work / "seen"
        self.assertIn("3 files", self.firestop("scripts", ONE, "--export", out).stdout)
        index = json.loads((out / "index.json").read_text())
        self.assertEqual([script["path"] for script in index["scripts"]], ["/workspace/agent.sh", "/tmp/x.py", ""])
        for script in index["scripts"]:
            self.assertEqual(hashlib.sha256((out / script["digest"]).read_bytes()).hexdigest(), script["digest"])
        self.assertEqual(sorted(path.name for path in out.iterdir()),
                         sorted(["index.json"] + [script["digest"] for script in index["scripts"]]))
        self.firestop("scripts", ONE, "--export", out)  # again: the same

    def test_export_follows_no_link(self):
        self.record()
        out, victim = self.work / "seen", self.work / "victim"
        victim.write_text("mine")
        out.mkdir()
        digest = hashlib.sha256(b"print('hi')\n").hexdigest()
        (out / digest).symlink_to(victim)
        (out / "index.json").symlink_to(victim)
        self.firestop("scripts", ONE, "--export", out)
        self.assertEqual(victim.read_text(), "mine")
        self.assertEqual((out / digest).read_bytes(), b"print('hi')\n")
        self.assertFalse((out / "index.json").is_symlink())

    def test_the_same_bytes_are_one_line(self):
        def often(directory):
            record = made_record.Record(directory)
            for at in range(50):
                record.at(at).code(2, "script", "/tmp/x.sh", b"again")
            return record
        self.record(often)
        [script] = self.json_of("scripts", ONE)
        self.assertEqual(script["runs"], 50)

    def test_none_is_not_the_same_as_nobody_looked(self):
        self.record(lambda directory: made_record.begin(made_record.Record(directory)))
        self.assertIn("nothing ran", self.firestop("scripts", ONE).stdout)
        self.record(lambda directory: made_record.Record(directory).at(1).fork(2, 1), run=TWO)
        self.assertIn("nobody watched", self.firestop("scripts", TWO).stdout)


class NetworkTest(RecordTest):
    def test_of_a_record_with_processes(self):
        directory = self.record()
        lines = self.firestop("network", ONE).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["TIME", "KIND", "VERDICT", "STATUS", "RULE", "PROCESS", "WHAT", "DETAIL"])
        self.assertRegex(lines[2], r"request +allowed +200 +egress\[0\] +curl \(3\) +POST https://api.example.com:443/v1/chat")
        self.assertRegex(lines[3], r"denied egress.no_rule +403 +- +python3 \(4\) +GET https://evil.example:443/")
        crossings = self.json_of("network", directory)
        self.assertEqual(crossings[1]["process"], {"index": 1, "name": "curl", "pid": 3})
        self.assertEqual(crossings[1]["kind"], "request")


if __name__ == "__main__":
    main()
