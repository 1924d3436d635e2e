"""check, explain, init: what can be said of a manifest without running it."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402

BAD = """\
firestop: 1
name: tidy
image: agent-base
colour: red
rating: 5 parsecs
"""


class CheckTest(CliTest):
    def test_a_good_one(self):
        self.manifest()
        done = self.firestop("check")
        self.assertEqual(done.stdout, "firestop.yaml: ok (tidy, 1 entry)\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.json_of("check"), [])

    def test_another_file(self):
        path = self.manifest(name="other.yaml")
        self.assertIn("other.yaml: ok", self.firestop("check", "other.yaml").stdout)
        self.assertIn("ok", self.firestop("check", path).stdout)

    def test_every_fault_with_its_position_line_and_caret(self):
        self.manifest(BAD)
        done = self.firestop("check", status=240)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"firestop\.yaml:4:1: colour: ")
        self.assertRegex(done.stderr, r"firestop\.yaml:5:9: rating: ")
        self.assertIn("colour: red\n", done.stderr)
        self.assertIn("^", done.stderr)
        self.assertTrue(done.stderr.endswith("firestop: firestop.yaml has 2 faults\n"))

    def test_faults_for_programs(self):
        self.manifest(BAD)
        faults = self.json_of("check", status=240)
        self.assertEqual([(fault["line"], fault["column"], fault["field"]) for fault in faults],
                         [(4, 1, "colour"), (5, 9, "rating")])
        for fault in faults:
            self.assertEqual(set(fault), {"file", "line", "column", "field", "wrong", "expected"})

    def test_no_file(self):
        self.assert_error(self.firestop("check", status=None), "firestop.yaml", 240)
        self.assert_json_error(("check", "--json"), "manifest.unreadable", 240)

    def test_a_folder_is_no_manifest(self):
        self.firestop("check", ".", status=240)

    def test_what_this_version_cannot_run_is_said(self):
        text = self.manifest().read_text()
        self.manifest().write_text(text.replace("image: agent-base", "image: oci:a.example/b@sha256:" + 64 * "0"))
        done = self.firestop("check")
        self.assertIn("ok", done.stdout)
        self.assertIn("image", done.stderr)


class ExplainTest(CliTest):
    def test_for_people_and_for_programs(self):
        self.manifest()
        text = self.firestop("explain").stdout
        self.assertIn("notes.md", text)
        self.assertNotIn("\x1b", text)
        as_json = self.firestop("explain", "--format", "json").stdout
        self.assertIsInstance(json.loads(as_json), dict)
        self.assertEqual(self.firestop("explain", "--json").stdout, as_json)
        self.assertEqual(self.firestop("explain", "--format=text").stdout, text)

    def test_a_bad_one(self):
        self.manifest(BAD)
        done = self.firestop("explain", status=240)
        self.assertEqual(done.stdout, "")
        self.assertIn("2 faults", done.stderr)
        self.assert_json_error(("explain", "--json"), "manifest.invalid", 240)


class InitTest(CliTest):
    def test_what_it_writes_is_right(self):
        self.firestop("init")
        self.assertEqual((self.work / "firestop.yaml").stat().st_mode & 0o777, 0o644)
        self.assertIn("ok", self.firestop("check").stdout)
        self.firestop("explain")

    def test_it_replaces_nothing_unasked(self):
        path = self.manifest("mine\n")
        self.assert_error(self.firestop("init", status=None), "firestop.yaml exists", 240)
        self.assertEqual(path.read_text(), "mine\n")
        self.firestop("init", "--force")
        self.assertNotEqual(path.read_text(), "mine\n")

    def test_a_dangling_link_is_not_written_through(self):
        (self.work / "firestop.yaml").symlink_to(self.folder / "elsewhere")
        self.firestop("init", status=240)
        self.assertFalse((self.folder / "elsewhere").exists())

    def test_stdout_writes_no_file(self):
        text = self.firestop("init", "--stdout").stdout
        self.assertIn("firestop: 1", text)
        self.assertFalse((self.work / "firestop.yaml").exists())


class RunTest(CliTest):
    """What `run` refuses before anything is started."""

    def test_no_manifest(self):
        done = self.firestop("run", "--", "true", status=240)
        self.assertEqual(done.stdout, "")
        self.assertIn("firestop.yaml", done.stderr)

    def test_a_bad_manifest(self):
        self.manifest(BAD)
        done = self.firestop("run", "--", "true", status=240)
        self.assertIn("firestop.yaml:4:1: colour: ", done.stderr)
        self.assertEqual(self.json_of("runs"), [])

    def test_bad_words(self):
        self.manifest()
        for args in (("--bind", "x"), ("--bind", "=x"), ("--name", "../x"), ("--name", "A")):
            done = self.firestop("run", *args, "--", "true", status=240)
            self.assertEqual(done.stdout, "")
            self.assertTrue(done.stderr.startswith("firestop: "), done.stderr)


if __name__ == "__main__":
    main()
