"""Files in the record: which count as code when an interpreter opens them, and what is left at the end."""
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from sandbox_test import SandboxTest, main  # noqa: E402


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


class FilesTest(SandboxTest):  # 8 s
    def of(self, *kinds):
        [folder] = sorted((self.state / "firestop/runs").glob("2*/evidence"))[-1:]
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        return [event["data"] for event in events if event["kind"] in kinds]

    def test_what_is_only_written_is_no_code_and_what_was_moved_is_there_at_the_end(self):
        self.manifest("limits: {memory: 384MiB, disk: 512MiB}\n")
        self.run_in(r"""
echo one > log; for i in 1 2 3; do echo $i >> log; done
exec 5>>log; echo x >&5; exec 5>&-
python3 -c 'open("log.py", "w").write("print(1)\n"); open("log.py", "a").write("print(2)\n")'
echo 'echo sourced' > sourced; . ./sourced
echo 'echo both' > both; exec 6<>both; . ./both; exec 6>&-
mkdir -p d/e; echo a > d/e/f; echo b > d/g; echo c > gone; mv d moved; mv moved/e moved/h; rm gone
""")
        codes = {(code["path"], code.get("digest")) for code in self.of("code")}
        paths = {path for path, _ in codes}
        self.assertNotIn("/workspace/log", paths)
        self.assertNotIn("/workspace/log.py", paths)
        self.assertIn(("/workspace/sourced", sha("echo sourced\n")), codes)
        self.assertIn(("/workspace/both", sha("echo both\n")), codes)
        finals = {final["path"]: final["digest"] for final in self.of("file.final")}
        self.assertEqual(finals, {
            "/workspace/log": sha("one\n1\n2\n3\nx\n"), "/workspace/log.py": sha("print(1)\nprint(2)\n"),
            "/workspace/sourced": sha("echo sourced\n"), "/workspace/both": sha("echo both\n"),
            "/workspace/moved/h/f": sha("a\n"), "/workspace/moved/g": sha("b\n")})
        self.assertTrue(self.of("record.end")[0]["complete"])


if __name__ == "__main__":
    main()
