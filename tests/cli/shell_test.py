"""Completions and manual pages: shells and man take them as they are."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import FIRESTOP, CliTest, main  # noqa: E402

SHARE = pathlib.Path(os.environ.get("FIRESTOP_SHARE", "/nowhere"))


class CompletionTest(CliTest):
    def script(self, shell):
        path = self.folder / f"completion.{shell}"
        path.write_text(self.firestop("completion", shell).stdout)
        return path

    def sh(self, *argv):
        path = f"{pathlib.Path(FIRESTOP).resolve().parent}:{self.env['PATH']}"
        done = subprocess.run(argv, env={**self.env, "PATH": path}, cwd=self.work, capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), argv)
        return done.stdout

    def bash(self, line):
        """What bash offers for the last word of `line`."""
        words = " ".join(f"'{word}'" for word in line.split(" "))
        return self.sh("bash", "-c", f"source {self.script('bash')}; compopt() {{ echo default $*; }}; "
                       f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _firestop; "
                       "printf '%s\\n' \"${COMPREPLY[@]}\"").split()

    def test_bash(self):
        self.sh("bash", "-n", str(self.script("bash")))
        self.assertEqual(self.bash("firestop ru"), ["run", "runs"])
        self.assertEqual(self.bash("firestop image "), ["build", "list", "prune"])
        self.assertEqual(self.bash("firestop image prune --"), ["--help", "--all", "--json"])
        self.assertEqual(self.bash("firestop explain --format "), ["text", "json", "svg", "canonical"])
        self.assertEqual(self.bash("firestop completion z"), ["zsh"])
        self.assertEqual(self.bash("firestop check "), ["default", "-o", "default"])
        self.assertEqual(self.bash("firestop run -- ls --"), ["default", "-o", "default"])
        self.assertNotIn("__man", self.bash("firestop "))

    def test_bash_knows_the_runs(self):
        self.make_run("20261129-100000-aaaaaa")
        self.assertEqual(self.bash("firestop show "), ["20261129-100000-aaaaaa"])
        self.assertEqual(self.bash("firestop rm 2026"), ["20261129-100000-aaaaaa"])
        self.assertEqual(self.bash("firestop rm 2027"), [])
        # One that takes a run or a command of its own.
        self.assertEqual(self.bash("firestop log "), ["20261129-100000-aaaaaa", "path", "verify"])
        self.assertEqual(self.bash("firestop log verify "), ["20261129-100000-aaaaaa"])
        self.assertIn("--signers", self.bash("firestop log verify --"))
        self.assertIn("--follow", self.bash("firestop log 2026 --"))

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_zsh(self):
        self.sh("zsh", "-n", str(self.script("zsh")))
        self.sh("zsh", "-fc", f"autoload -U compinit; compinit -u -D; source {self.script('zsh')}; which _firestop >/dev/null")

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish(self):
        script = self.script("fish")
        self.sh("fish", "--no-execute", str(script))
        self.make_run("20261129-100000-aaaaaa")

        def offered(line):
            out = self.sh("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
            return [row.split("\t")[0] for row in out.splitlines()]

        self.assertEqual(offered("firestop ru"), ["run", "runs"])
        self.assertEqual(offered("firestop image "), ["build", "list", "prune"])
        self.assertIn("--format", offered("firestop explain --f"))
        self.assertEqual(offered("firestop explain --format "), ["canonical", "json", "svg", "text"])
        self.assertEqual(offered("firestop show "), ["20261129-100000-aaaaaa"])

    def test_made_by_the_build(self):
        if not SHARE.is_dir():
            self.skipTest("needs FIRESTOP_SHARE, the build's share folder")
        for shell, place in (("bash", "bash-completion/completions/firestop"), ("zsh", "zsh/site-functions/_firestop"),
                             ("fish", "fish/vendor_completions.d/firestop.fish")):
            self.assertEqual((SHARE / place).read_text(), self.firestop("completion", shell).stdout)


class ManTest(CliTest):
    def test_a_page_for_every_command(self):
        self.firestop("__man", self.folder / "man1")
        pages = {path.name for path in (self.folder / "man1").iterdir()}
        overview = self.firestop("help").stdout
        commands = [line[2:].split("  ")[0].strip() for line in
                    overview.split("Commands:\n")[1].split("\n\n")[0].splitlines() if line[2] != " "]
        self.assertGreater(len(commands), 10)
        for command in [*commands, "image"]:
            self.assertIn("firestop-" + command.replace(" ", "-") + ".1", pages)
        self.assertIn("firestop.1", pages)
        self.assertFalse([name for name in pages if "__" in name])

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_groff_has_nothing_to_complain_about(self):
        self.firestop("__man", self.folder / "man1")
        for page in sorted((self.folder / "man1").iterdir()):
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-rLL=78n", page], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            text = re.sub(r".\x08", "", done.stdout)  # bold is overstruck
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"):
                self.assertIn(section, text, page.name)


if __name__ == "__main__":
    main()
