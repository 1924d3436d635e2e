"""Help, version, usage errors: what every command has in common."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import FIRESTOP, CliTest, main  # noqa: E402

COMMANDS = ["run", "init", "import", "import openai", "check", "explain", "runs", "show", "rm", "image", "image build",
            "image list", "image prune", "log", "log path", "log verify", "attest", "attest verify",
            "doctor", "completion", "help", "version"]


class HelpTest(CliTest):
    def test_every_command_explains_itself_with_an_example(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.firestop(*command.split(), "--help").stdout
                self.assertTrue(text.startswith(f"firestop {command}: "))
                self.assertIn(f"\nUsage: firestop {command}", text)
                self.assertIn("\nOptions:\n", text)
                if command not in ("image", "import", "memory", "attest"):
                    self.assertRegex(text, rf"\nExamples:\n.*firestop {command}")
                self.assertRegex(text, r"\nExit status:\n")
                self.assertIn("240", text)
                self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_help_in_three_ways_is_the_same(self):
        for command in COMMANDS:
            pages = {self.firestop(*command.split(), "-h").stdout, self.firestop(*command.split(), "--help").stdout,
                     self.firestop("help", *command.split()).stdout}
            self.assertEqual(len(pages), 1, command)
        self.assertEqual(self.firestop("help").stdout, self.firestop("--help").stdout)

    def test_the_overview_lists_every_command_and_no_hidden_one(self):
        text = self.firestop("help").stdout
        for command in COMMANDS:
            if command not in ("image", "import", "memory", "attest"):
                self.assertRegex(text, rf"\n  {command} +\S")
        self.assertNotIn("__", text)

    def test_help_wins_over_what_else_is_wrong(self):
        self.firestop("run", "--no-such-option", "--help")
        self.firestop("show", "--help")

    def test_help_after_dashes_is_the_commands(self):
        done = self.firestop("run", "none.yaml", "--", "ls", "--help", status=240)
        self.assertNotIn("Usage", done.stdout)

    def test_an_unknown_topic(self):
        self.assert_error(self.firestop("help", "rnu", status=None), "firestop help run", 240)

    def test_version(self):
        text = self.firestop("--version").stdout
        self.assertRegex(text, r"\Afirestop \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.firestop("version").stdout, text)
        self.assertEqual(self.firestop("-V").stdout, text)
        self.assertEqual(self.json_of("version"), {"version": text.split()[1]})


class UsageTest(CliTest):
    def test_wrong_command_lines_end_with_240_and_a_hint(self):
        rows = [
            ((), "no command"),
            (("rnu",), "did you mean 'firestop run'?"),
            (("image",), "image build, image list, image prune"),
            (("memory",), "memory list, memory forget"),
            (("memory", "forget"), "needs NAME"),
            (("import",), "import openai"),
            (("image", "biuld"), "did you mean 'firestop image build'?"),
            (("runs", "--jsn"), "did you mean '--json'?"),
            (("runs", "--al"), "'--al' is no option"),
            (("runs", "extra"), "one argument too many"),
            (("show",), "needs RUN"),
            (("rm",), "needs RUN or --ended"),
            (("run", "--"), "after --"),
            (("run", "--name"), "--name needs a value"),
            (("run", "--name", "a", "--name", "b"), "more than once"),
            (("run", "--tty=yes"), "takes no value"),
            (("explain", "--format", "xml"), "'xml' is no value"),
            (("completion", "bsh"), "did you mean 'bash'?"),
            (("--all", "runs"), "options stand behind the command"),
        ]
        for args, text in rows:
            with self.subTest(args=args):
                done = self.firestop(*args, status=None)
                self.assert_error(done, text, 240)
                self.assertRegex(done.stderr, r"\Afirestop: [^\n]+\n  [^\n]+\n\Z")

    def test_with_json_errors_are_one_object(self):
        self.assert_json_error(("runs", "--nope", "--json"), "usage.unknown_option", 240)
        self.assert_json_error(("--json", "runs"), "usage.unknown_option", 240)
        self.assert_json_error(("show", "x", "--json"), "run.not_found", 240)
        self.assert_json_error(("rm", "--json"), "usage.missing_argument", 240)
        self.assert_json_error(("explain", "none.yaml", "--json"), "manifest.unreadable", 240)
        self.assert_json_error(("explain", "none.yaml", "--format", "json"), "manifest.unreadable", 240)

    def test_hostile_words_do_not_reach_the_terminal(self):
        done = self.firestop("\x1b[2Jevil", status=240)
        self.assertNotIn("\x1b", done.stderr)

    def test_stdout_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = self.firestop("help", status=242, stdout=full)
        self.assertIn("cannot write to standard output", done.stderr)

    def test_a_reader_that_goes_away_is_none(self):
        shell = f"set -o pipefail; {FIRESTOP} help run | head -c 1"
        done = subprocess.run(["bash", "-c", shell], env=self.env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class ColourTest(CliTest):
    def test_no_colour_off_a_terminal(self):
        for args in (("help", "run"), ("doctor",), ("nope",)):
            done = self.firestop(*args, status=None)
            self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_colour_on_a_terminal(self):
        self.assertIn("\x1b[1m", self.on_a_terminal("help", "run"))

    def test_no_color_and_dumb_terminals_are_minded(self):
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", self.on_a_terminal("help", "run", env=env))
        self.assertIn("\x1b", self.on_a_terminal("help", "run", env={"NO_COLOR": ""}))

    def test_the_width_of_the_terminal_is_minded(self):
        text = re.sub(r"\x1b\[\d*m", "", self.on_a_terminal("help", columns="50"))
        self.assertLessEqual(max(map(len, text.splitlines())), 50, text)


if __name__ == "__main__":
    main()
