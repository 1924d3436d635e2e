"""Every line of docs/field-notes.md names a test, and every test that it names is there."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIELD_NOTES = ROOT / "docs" / "field-notes.md"


def names_of_tests():
    """Suite.Name of C++, names alone, functions of Python, fuzzers, and what lies in tests/manifest."""
    found = set()
    for path in ROOT.glob("src/**/*_test.cc"):
        found |= names_in_cpp(path.read_text(errors="replace"))
    for path in ROOT.glob("tests/**/*.cc"):
        found |= names_in_cpp(path.read_text(errors="replace"))
    for path in ROOT.glob("tests/**/*.py"):
        found |= set(re.findall(r"def (test_\w+)", path.read_text())) | set(re.findall(r"def test_(inv\w+)", path.read_text()))
        found.add(str(path.relative_to(ROOT)))
    found |= {path.stem for path in ROOT.glob("fuzz/*_fuzz.cc")} | {f"fuzz/{path.name}" for path in ROOT.glob("fuzz/*.cc")}
    found |= {path.stem for path in ROOT.glob("tests/manifest/*/*.*")}
    return found


def names_in_cpp(text):
    found = set()
    for suite, name in re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text, re.M):
        found |= {f"{suite}.{name}", name}
    return found


class FieldNotesTest(unittest.TestCase):
    def test_each_line_has_a_test_that_is_there(self):
        known = names_of_tests()
        self.assertGreater(len(known), 500)
        lines, wrong = 0, []
        for number, line in enumerate(FIELD_NOTES.read_text().splitlines(), 1):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not line.startswith("| ") or len(cells) != 2 or cells[0] in ("fault", "---"):
                continue
            lines += 1
            if cells[1].startswith("pending: "):
                continue
            tests = [one for one in re.findall(r"`([^`]+)`", cells[1]) if self.is_test(one)]
            if not tests:
                wrong.append(f"line {number} names no test")
            suite = ""
            for test in tests:
                suite = test.split(".")[0] if re.match(r"[A-Z]\w*\.", test) else suite
                whole = suite + test if test.startswith(".") else test
                pattern = re.compile(re.escape(whole).replace(r"\*", r"\w*"))
                if not any(pattern.fullmatch(one) for one in known):
                    wrong.append(f"line {number}: there is no test {whole}")
        self.assertGreater(lines, 100)
        self.assertEqual(wrong, [])

    @staticmethod
    def is_test(text):
        return bool(re.fullmatch(r"\.?[\w*]+(\.[\w*]+)?|[a-z][a-z0-9*-]+|[\w/]+\.(py|cc)", text)) and text not in (
            "wipe_environment", "private", "others", "pointers")


if __name__ == "__main__":
    unittest.main()
