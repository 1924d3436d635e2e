"""import openai: a manifest from a document of the OpenAI Agents SDK."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import CliTest, main  # noqa: E402

GOOD = pathlib.Path(__file__).resolve().parent.parent / "manifest" / "good"
BAD = """\
root: /
extra_path_grants: [{path: /etc}]
entries:
  data: {type: s3_mount, bucket: b}
"""


class ImportTest(CliTest):
    def document(self, text, name="sdk.json"):
        (self.work / name).write_text(text)
        return name

    def workspace(self, spelling):
        whole = json.loads((GOOD / f"dialect-{spelling}.json").read_text())
        return self.document(json.dumps(whole["workspace"], indent=2, ensure_ascii=False))

    def test_both_spellings_become_one_manifest(self):
        (self.work / "ours.yaml").write_text((GOOD / "dialect-ours.yaml").read_text())
        ours = self.firestop("explain", "ours.yaml", "--format", "canonical").stdout
        for spelling in ("python", "javascript"):
            out = spelling + ".yaml"
            done = self.firestop("import", "openai", self.workspace(spelling), "--out", out,
                                 "--name", "three-spellings")
            self.assertIn(f"wrote {out}\n", done.stdout)
            self.assertEqual(done.stderr, "")
            self.assertIn("ok", self.firestop("check", out).stdout)
            self.assertEqual(self.firestop("explain", out, "--format", "canonical").stdout, ours)

    def test_what_it_left_out_is_said_and_written(self):
        done = self.firestop("import", "openai", self.workspace("python"))
        self.assertRegex(done.stdout,
                         r"sdk\.json:\d+:\d+: workspace\.entries\[\"notes\.md\"\]\.description: 'Where to begin'")
        text = (self.work / "firestop.yaml").read_text()
        self.assertIn("# ", text)
        self.assertIn("'Where to begin'", text)
        self.assertEqual((self.work / "firestop.yaml").stat().st_mode & 0o777, 0o644)

    def test_what_lies_elsewhere_gets_a_name(self):
        name = self.document("entries: {a: {type: local_dir, src: /srv/data}}\n", "sdk.yaml")
        self.assertIn("--bind data=/srv/data\n", self.firestop("import", "openai", name).stdout)
        found = self.json_of("import", "openai", name, "--out", "two.yaml", "--json")
        self.assertEqual((found["file"], found["binds"], found["left_out"]), ("two.yaml", ["data=/srv/data"], []))
        self.assertEqual(found["manifest"], (self.work / "two.yaml").read_text())

    def test_what_cannot_be_said_is_refused_with_its_place(self):
        name = self.document(BAD, "sdk.yaml")
        done = self.firestop("import", "openai", name, status=240)
        self.assertEqual(done.stdout, "")
        for where in ("sdk.yaml:1:7: workspace.root: ", "sdk.yaml:2:1: workspace.extra_path_grants: ",
                      "sdk.yaml:4:16: workspace.entries.data.type: "):
            self.assertIn(where, done.stderr)
        self.assertIn("extra_path_grants: [{path: /etc}]\n", done.stderr)
        self.assertFalse((self.work / "firestop.yaml").exists())
        faults = self.json_of("import", "openai", name, "--json", status=240)
        self.assertEqual([fault["line"] for fault in faults], [1, 2, 4])

    def test_it_replaces_nothing(self):
        path = self.manifest("mine\n")
        name = self.document("{}")
        self.assert_error(self.firestop("import", "openai", name, status=None), "firestop.yaml exists", 240)
        self.assertEqual(path.read_text(), "mine\n")

    def test_printed_it_writes_no_file(self):
        text = self.firestop("import", "openai", self.document("{}"), "--out", "-").stdout
        self.assertIn("firestop: 1\nname: agent\n", text)
        self.assertFalse((self.work / "firestop.yaml").exists())

    def test_wrong_words(self):
        self.assert_error(self.firestop("import", "openai", "none.json", status=None), "none.json", 240)
        name = self.document("{}")
        self.assert_error(self.firestop("import", "openai", name, "--name", "A", status=None), "'A'", 240)
        self.firestop("import", "openai", status=240)
        self.firestop("import", status=240)


if __name__ == "__main__":
    main()
