"""explain --format svg and --diff: the drawing, and what a change opens or closes."""
import hashlib
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from firestop_test import FIRESTOP, GOOD_MANIFEST, LIMIT, CliTest, main  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "due-diligence.yaml"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]

SMALLEST = "firestop: 1\nname: t\n"


def crossings(repositories, mounts, files, outputs, rules):
    """A manifest with so many crossings, with names that are hard to lay out."""
    lines = ["firestop: 1", "name: " + "n" * 63, "description: '" + "Words of a long description. " * 30 + "'",
             "rating: 7d", "workspace:", "  entries:"]
    for at in range(repositories):
        lines.append(f'    repo{at}: {{type: git_repo, repo: {"." if at == 0 else f"sub{at}"}, '
                     f'ref: feature/a-rather-long-name-of-a-branch-{at}}}')
    for at in range(mounts):
        lines.append(f"    {'M' * 40}{at}: {{type: mount, source: {{bind: data-room-{at}}}, read_only: true}}")
    for at in range(files):
        lines.append(f'    "W{at}/日本語のとても長いファイル名、ЖЖЖЩЩЩ WWWWWWWW@@@@ 😀😀😀": {{type: file, content: x}}')
    for at in range(outputs):
        lines.append(f"    report{at}: {{type: dir, output: true, max: {at + 1}MiB}}")
    lines += ["  environment: {" + ", ".join(f"VARIABLE_{at}: x" for at in range(40)) + "}",
              "command: [sh, -c, '" + "WWWW @@@@ " * 60 + "']",
              "capabilities: [shell, memory]", "egress:"]
    for at in range(rules):
        lines.append(f"  - {{host: service-{at}.{'w' * 50}.example.com, methods: [GET, POST, PUT, DELETE], "
                     f"paths: [/v1/{'m' * 60}/{at}/**], credential: c{at % 2}}}")
    return "\n".join(lines + ["credentials:", "  c0: {env: API_KEY, inject: bearer}",
                              "  c1: {env: GIT_TOKEN, inject: basic, user: x}"]) + "\n"


FORTY = crossings(4, 5, 7, 4, 14)

# Finds texts that meet, that are wider than they were allotted, or that leave the box they begin in.
MEASURE = """
const found = [], texts = [...document.querySelectorAll('svg text')].map(node => {
  const box = node.getBBox(), name = node.textContent.slice(0, 60);
  if (box.width > Number(node.dataset.w) + 0.5) found.push(`${name}: ${box.width} of ${node.dataset.w}`);
  return {name, left: box.x, top: box.y, right: box.x + box.width, bottom: box.y + box.height};
});
texts.forEach((a, at) => texts.slice(at + 1).forEach(b => {
  if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) found.push(`${a.name} meets ${b.name}`);
}));
const boxes = [...document.querySelectorAll('svg rect.card, svg rect.floor, svg rect.frame, svg rect.proxy, svg rect.frame2')]
  .map(node => node.getBBox());
const inside = (box, x, y) => x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
for (const text of texts)
  for (const box of boxes)
    if (inside(box, text.left + 1, (text.top + text.bottom) / 2) &&
        (text.right > box.x + box.width || text.top < box.y || text.bottom > box.y + box.height))
      found.push(`${text.name} leaves its box`);
document.body.innerHTML = '<pre id="found"></pre>';
document.getElementById('found').textContent = JSON.stringify({texts: texts.length, found});
"""


class DrawingTest(CliTest):
    def draw(self, text, *args, name="firestop.yaml"):
        (self.work / name).write_text(text)
        return self.firestop("explain", name, "--format", "svg", *args).stdout

    def test_it_is_one_document_that_needs_nothing_else(self):
        for text in (SMALLEST, EXAMPLE.read_text(), FORTY):
            svg = self.draw(text)
            root = ElementTree.fromstring(svg)
            self.assertEqual(root.tag, SVG + "svg")
            tags = {node.tag.removeprefix(SVG) for node in root.iter()}
            self.assertLessEqual(tags, {"svg", "title", "desc", "style", "defs", "pattern", "line", "path", "rect",
                                        "circle", "text", "g"})
            self.assertEqual(re.findall(r"url\([^#]", svg), [])
            self.assertEqual(self.draw(text), svg)

    def test_the_digest_in_the_title_block_is_the_one_that_is_signed(self):
        svg = self.draw(EXAMPLE.read_text())
        canonical = self.firestop("explain", "--format", "canonical").stdout
        self.assertIn(hashlib.sha256(canonical.encode()).hexdigest(), svg)

    def test_a_lock_that_does_not_match_is_said_in_the_title_block(self):
        self.assertIn(">none<", self.draw(SMALLEST))
        (self.work / "firestop.lock").write_text("{}")
        self.assertIn(">unreadable<", self.draw(SMALLEST))
        lock = {"firestop_lock": 1, "image": {"recipe": "other", "digest": "sha256:" + 64 * "a"}, "repositories": {}}
        (self.work / "firestop.lock").write_text(json.dumps(lock))
        self.assertIn(">outdated<", self.draw(SMALLEST))
        lock["image"]["recipe"] = "agent-base"
        (self.work / "firestop.lock").write_text(json.dumps(lock))
        self.assertIn(">firestop.lock<", self.draw(SMALLEST))

    def test_a_bad_manifest_is_not_drawn(self):
        self.manifest("firestop: 1\nname: t\ncolour: red\n")
        done = self.firestop("explain", "--format", "svg", status=240)
        self.assertEqual(done.stdout, "")
        self.assertIn("colour", done.stderr)

    @unittest.skipUnless(BROWSER, "needs chromium")
    def test_no_text_meets_another_or_leaves_its_box(self):
        changed = FORTY.replace("capabilities: [shell, memory]", "capabilities: [filesystem]").replace(
            "rating: 7d", "rating: 1h").replace("methods: [GET, POST, PUT, DELETE]", "methods: [GET]")
        (self.work / "old.yaml").write_text(FORTY)
        drawings = {"smallest": self.draw(SMALLEST), "example": self.draw(EXAMPLE.read_text()),
                    "forty": self.draw(FORTY), "hundreds": self.draw(crossings(6, 8, 80, 70, 120)),
                    "changed": self.draw(changed, "--diff", "old.yaml")}
        for name, svg in drawings.items():
            with self.subTest(name):
                measured = self.measure(svg)
                self.assertGreater(measured["texts"], 50)
                self.assertEqual(measured["found"], [])

    @unittest.skipUnless(BROWSER, "needs chromium")
    def test_the_measure_finds_what_it_looks_for(self):
        text = '<text x="{}" y="20" data-w="{}" style="font-size:12px">some words</text>'
        for inner, what in ((text.format(10, 10), "of 10"), (text.format(10, 200) + text.format(30, 200), "meets"),
                            ('<rect class="card" x="5" y="5" width="30" height="30"/>' + text.format(10, 200),
                             "leaves its box")):
            found = self.measure(f'<svg viewBox="0 0 300 300">{inner}</svg>')["found"]
            self.assertTrue(any(what in line for line in found), found)

    def test_the_example_is_right(self):
        self.assertIn("ok", self.firestop("check", EXAMPLE).stdout)

    def measure(self, svg):
        page = self.folder / "page.html"
        page.write_text("<!DOCTYPE html><meta charset=utf-8><body>" + svg[svg.index("<svg"):] +
                        "<script>" + MEASURE + "</script>")
        with tempfile.TemporaryDirectory(prefix="firestop-browser-", ignore_cleanup_errors=True) as profile:
            done = subprocess.run([BROWSER, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * LIMIT, check=False,
                                  text=True)
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(found, done.stderr[-2000:])
        return json.loads(html.unescape(found[1]))


class DiffTest(CliTest):
    def test_what_opens_comes_first(self):
        (self.work / "old.yaml").write_text(GOOD_MANIFEST)
        self.manifest(GOOD_MANIFEST.replace("rating: 5m", "rating: 10m").replace("shell, ", "")
                      .replace("name: tidy", "name: tidier"))
        text = self.firestop("explain", "--diff", "old.yaml").stdout
        self.assertRegex(text, r"(?s)Opens\n  \+ rating\n.*5m -> 10m.*Closes\n  - capabilities\.shell\n"
                               r".*Changes\n  ~ name\n")
        self.assertNotIn("\x1b", text)
        answer = self.json_of("explain", "--diff", "old.yaml")
        self.assertEqual(set(answer), {"name", "file", "old", "opens", "closes", "changes"})
        self.assertEqual(answer["opens"], [{"field": "rating", "before": "5m", "after": "10m",
                                            "words": "it may run longer"}])
        self.assertEqual([change["field"] for change in answer["closes"]], ["capabilities.shell"])
        self.assertEqual(answer["old"], "old.yaml")
        svg = self.firestop("explain", "--diff", "old.yaml", "--format", "svg").stdout
        self.assertIn(">opens 1<", svg)

    def test_the_same_manifest_opens_nothing(self):
        self.manifest()
        self.assertIn("Nothing opens", self.firestop("explain", "--diff", "firestop.yaml").stdout)
        self.assertEqual(self.json_of("explain", "--diff", "firestop.yaml")["opens"], [])

    def test_old_may_be_a_pipe_and_lies_where_the_new_one_lies(self):
        (self.work / "template").mkdir()
        text = GOOD_MANIFEST.replace("    notes.md", "    t: {type: local_dir, src: template}\n    notes.md")
        self.manifest(text)
        done = subprocess.run(["bash", "-c", f'{FIRESTOP} explain --diff <(sed s/5m/4m/ firestop.yaml)'],
                              cwd=self.work, env=self.env, capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4m -> 5m", done.stdout)

    def test_a_bad_old_one(self):
        self.manifest()
        (self.work / "old.yaml").write_text("firestop: 1\nname: t\ncolour: red\n")
        done = self.firestop("explain", "--diff", "old.yaml", status=240)
        self.assertIn("old.yaml:3:1: colour", done.stderr)
        self.assert_json_error(("explain", "--diff", "old.yaml", "--json"), "manifest.invalid", 240)
        self.assert_json_error(("explain", "--diff", "none.yaml", "--json"), "manifest.unreadable", 240)

    def test_the_signed_bytes_have_no_diff(self):
        self.manifest()
        self.assert_error(self.firestop("explain", "--diff", "firestop.yaml", "--format", "canonical", status=None),
                          "no --diff", 240)


if __name__ == "__main__":
    main()
