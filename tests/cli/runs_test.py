"""runs, show, rm, and what every command does about runs whose owner was killed."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402

ONE, TWO, THREE = "20261129-100000-aaaaaa", "20261129-110000-bbbbbb", "20261130-120000-cccccc"
BRANCH = {"entry": "repo", "repository": "/srv/x", "ref": "refs/heads/agent/fix", "commit": "0" * 40, "new_commits": 2,
          "uncommitted": True}


class RunsTest(CliTest):
    def test_none(self):
        self.assertIn("no runs yet", self.firestop("runs").stdout)
        self.assertEqual(self.json_of("runs"), [])

    def test_the_table(self):
        self.make_run(ONE, branches=[BRANCH])
        self.make_run(TWO, exit_status=243, reason="rating.reached")
        self.make_run(THREE, state="running", ended_ms=0)
        self.hold(THREE)
        lines = self.firestop("runs").stdout.splitlines()
        self.assertEqual(lines[0].split(), ["RUN", "NAME", "STATE", "EXIT", "AGE", "TOOK", "BRANCH"])
        self.assertEqual([line.split()[0] for line in lines[1:]], [THREE, TWO, ONE], "newest first")
        self.assertIn("running", lines[1])
        self.assertEqual(lines[2].split()[2:4], ["ended", "243"])
        self.assertTrue(lines[3].endswith("agent/fix"))
        self.assertIn("12.5s", lines[3])
        self.assertEqual(lines[1].index("fix"), lines[0].index("NAME"), "columns are aligned")

    def test_json(self):
        self.make_run(ONE, branches=[BRANCH])
        [run] = self.json_of("runs")
        self.assertEqual(run["id"], ONE)
        self.assertEqual(run["state"], "ended")
        self.assertEqual(run["exit_status"], 0)
        self.assertIs(run["alive"], False)
        self.assertEqual(run["branches"], [BRANCH])
        self.assertEqual(run["directory"], str(self.run_directory(ONE)))
        self.assertEqual(run["steps"][1], {"step": "boot", "us": 300000})
        self.assertEqual(run, self.json_of("show", ONE))

    def test_old_ones_are_left_out_unless_asked_for(self):
        for i in range(25):
            self.make_run(f"20261129-1000{i:02}-aaaaaa")
        self.assertIn("and 5 older", self.firestop("runs").stdout)
        self.assertEqual(len(self.firestop("runs").stdout.splitlines()), 1 + 20 + 1)
        self.assertEqual(len(self.firestop("runs", "--all").stdout.splitlines()), 1 + 25)
        self.assertEqual(len(self.json_of("runs")), 25)

    def test_a_record_that_cannot_be_read_is_shown_and_can_be_removed(self):
        (self.make_run(ONE) / "run.json").write_text("{")
        self.assertIn("unreadable", self.firestop("runs").stdout)
        self.assertIn("unreadable", self.firestop("show", ONE).stdout)
        self.assertNotEqual(self.json_of("show", ONE)["note"], "")
        self.firestop("rm", ONE)
        self.assertEqual(self.json_of("runs"), [])

    def test_records_cannot_write_to_the_terminal(self):
        self.make_run(ONE, name="\x1b[2Jx", reason="\x1b]0;t\x07", message="a\rb\x1b[1m", command=["\x1b[31m"])
        for args in (("runs",), ("show", ONE)):
            self.assertNotRegex(self.firestop(*args).stdout, "[\x1b\r\x07]")


class ShowTest(CliTest):
    def test_the_page(self):
        self.make_run(ONE, branches=[BRANCH], outputs={"directory": "/srv/out", "files": 3, "bytes": 2048})
        text = self.firestop("show", ONE).stdout
        for part in (ONE, "make 'test all'", "2026-11-29", "agent/fix in /srv/x: 2 new commits", "left uncommitted",
                     "/srv/out: 3 files, 2KiB", "resolve", "300.0 ms", "agent-base", "tcg", "ab" * 32):
            self.assertIn(part, text)

    def test_names_and_prefixes(self):
        self.make_run(ONE)
        self.make_run(TWO)
        self.make_run(THREE, name="other")
        self.assertEqual(self.json_of("show", "fix")["id"], TWO, "the newest of that name")
        self.assertEqual(self.json_of("show", "20261130")["id"], THREE)
        self.assert_json_error(("show", "20261129", "--json"), "run.ambiguous", 240)
        self.assert_error(self.firestop("show", "nope", status=None), "no run 'nope'", 240)


class RmTest(CliTest):
    def test_removes_what_ended(self):
        directory = self.make_run(ONE)
        self.make_run(TWO)
        self.assertEqual(self.firestop("rm", ONE).stdout, f"removed {ONE}\n")
        self.assertFalse(directory.exists())
        self.assertEqual([run["id"] for run in self.json_of("runs")], [TWO])

    def test_refuses_what_lives(self):
        directory = self.make_run(ONE, state="running")
        lock = self.hold(ONE)
        self.assert_error(self.firestop("rm", ONE, status=None), "still alive", 242)
        self.firestop("rm", "--ended")
        self.assertTrue(directory.exists())
        lock.close()
        self.firestop("rm", ONE)
        self.assertFalse(directory.exists())

    def test_goes_on_after_one_that_it_cannot_remove(self):
        self.make_run(ONE)
        self.make_run(TWO, state="running")
        self.hold(TWO)
        answer = self.json_of("rm", TWO, "nope", ONE, status=242)
        self.assertEqual(answer["removed"], [ONE])
        self.assertEqual([error["code"] for error in answer["errors"]], ["run.not_found", "run.alive"])

    def test_ended_removes_all_but_the_living(self):
        self.make_run(ONE)
        self.make_run(TWO, state="died", exit_status=None)
        self.make_run(THREE, state="running")
        self.hold(THREE)
        self.assertEqual(sorted(self.json_of("rm", "--ended")["removed"]), [ONE, TWO])

    def test_no_path_is_a_run(self):
        outside = self.folder / "keep"
        outside.mkdir()
        for word in ("..", ".", "../../../keep", str(outside), "-", "[a,b]"):
            self.firestop("rm", word, status=240)
        self.assertTrue(outside.exists())


class SweepTest(CliTest):
    def dead_run(self):
        directory = self.make_run(ONE, state="running", ended_ms=0)
        for name in ("lock", "scratch.img", "console.log", "manifest.yaml"):
            (directory / name).write_text("x")
        (directory / "work").mkdir()
        return directory

    def test_each_of_these_commands_sweeps_and_says_so_once(self):
        for args in (("runs",), ("show", ONE), ("rm", "nope"), ("doctor",)):
            directory = self.dead_run()
            done = self.firestop(*args, status=None)
            self.assertIn(f"cleaned up after 1 run whose firestop process was killed: {ONE}\n", done.stderr)
            self.assertEqual(sorted(path.name for path in directory.iterdir()),
                             ["console.log", "manifest.yaml", "run.json"])
            self.assertNotIn("cleaned", self.firestop(*args, status=None).stderr)
            run = self.json_of("show", ONE)
            self.assertEqual((run["state"], run["reason"]), ("died", "owner.died"))
            self.firestop("rm", ONE)

    def test_only_what_is_dead(self):
        self.dead_run()
        alive = self.make_run(TWO, state="running")
        (alive / "scratch.img").write_text("x")
        self.hold(TWO)
        self.firestop("runs")
        self.assertTrue((alive / "scratch.img").exists())

    def test_not_what_a_newer_firestop_left(self):
        directory = self.dead_run()
        (directory / "run.json").write_text('{"version": 99}')
        self.assertNotIn("cleaned", self.firestop("runs").stderr)
        self.assertTrue((directory / "scratch.img").exists())


if __name__ == "__main__":
    main()
