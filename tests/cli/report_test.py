"""report: one page about a run, in three forms. Records are made by hand; tests/lib/made_record.py.

FIRESTOP_UPDATE_GOLDEN=1 writes the expected pages anew.
"""
import base64
import hashlib
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import made_record  # noqa: E402
from firestop_test import LIMIT, CliTest, main  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]
CURSOR = "\x1b\x9b\x07\x08\r\u202e\u2066"

# In frames as wide as screens are: texts that meet, that leave the page, or that are too small to read.
MEASURE = """
const measure = inside => {
  const found = [], texts = [], width = inside.documentElement.clientWidth;
  const walk = inside.createTreeWalker(inside.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!node.data.trim() || node.parentElement.closest('title, thead')) continue;
    const range = inside.createRange(), label = node.parentElement.closest('.lane > span');  // cut by its box
    range.selectNodeContents(node);
    for (const part of label ? [label.getBoundingClientRect()] : range.getClientRects())
      texts.push({name: node.data.trim().slice(0, 40), left: part.left, top: part.top, right: part.right,
                  bottom: part.bottom, node});
    const size = parseFloat(inside.defaultView.getComputedStyle(node.parentElement).fontSize);
    if (size < 12) found.push(`${node.data} is small: ${size}`);
  }
  if (inside.documentElement.scrollWidth > width)
    found.push(`the page is ${inside.documentElement.scrollWidth} of ${width} wide`);
  texts.sort((a, b) => a.top - b.top);
  texts.forEach((a, at) => {
    if (a.left < -0.5 || a.right > width + 0.5) found.push(`${a.name} leaves the page`);
    for (let next = at + 1; next < texts.length && texts[next].top < a.bottom - 3; next++) {
      const b = texts[next];
      if (b.node !== a.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) found.push(`${a.name} meets ${b.name}`);
    }
  });
  return {texts: texts.length, found: found.slice(0, 20)};
};
window.onload = () => {  // the frames' pages are there, too
  const measured = [...document.querySelectorAll('iframe')].map(frame => measure(frame.contentDocument));
  const answer = document.createElement('pre');
  answer.id = 'found';
  answer.textContent = JSON.stringify(measured);
  document.body.replaceChildren(answer);
};
"""


class Page(html.parser.HTMLParser):
    """The tags, attributes and words of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


class ReportTest(CliTest):
    def page(self, make, form="text", *args):
        directory = make(self.work / make.__name__).write()
        return self.firestop("report", directory.name + "/", "--format", form, *args).stdout

    def test_golden_pages(self):
        for make in (made_record.small, made_record.hostile):
            for form, suffix in (("text", "txt"), ("markdown", "md")):
                with self.subTest(make.__name__, form=form):
                    text, path = self.page(make, form), GOLDEN / f"report_{make.__name__}.{suffix}"
                    if os.environ.get("FIRESTOP_UPDATE_GOLDEN"):
                        path.write_text(text)
                    self.assertEqual(text, path.read_text())

    def test_what_was_never_used_is_said_and_what_was_used_is_not(self):
        text = self.page(made_record.small)
        unused = text[text.index("Granted, and never used"):text.index("Granted, and used")]
        for name in ("egress[1]", "egress[0].methods    GET on", "credentials.forge", "capabilities.memory"):
            self.assertIn(name, unused)
        for name in ("POST", "credentials.model", "capabilities.shell", "capabilities.filesystem"):
            self.assertNotIn(name, unused)
        used = text[text.index("Granted, and used"):text.index("\nLimits")]
        self.assertRegex(used, r"egress\[0\] .* 1  curl \(3\)")
        self.assertRegex(used, r"credentials.model .* 1  curl \(3\)")

    def test_never_used_is_not_said_of_what_nobody_watched(self):
        def blind(directory):
            record = made_record.begin(made_record.Record(directory))
            return record.at(9).guest("lost", what="files", count=1).guest("lost", what="processes", count=1)
        unused = self.page(blind)
        unused = unused[unused.index("Granted, and never used"):unused.index("Granted, and used")]
        self.assertNotIn("capabilities.", unused)
        self.assertRegex(unused.replace("\n", " "), r"Not known: +shell, +filesystem, +memory")

    def test_a_record_without_anything(self):
        def empty(directory):
            return made_record.Record(directory)
        for form in ("text", "markdown", "html"):
            self.assertIn("no end", self.page(empty, form))

    def test_no_name_gets_out_of_its_place(self):
        text = self.page(made_record.hostile)
        markdown = self.page(made_record.hostile, "markdown")
        for form in (text, markdown, self.page(made_record.hostile, "html")):
            self.assertEqual([c for c in CURSOR if c in form], [])
            self.assertLess(max(map(len, form.splitlines())), 3000)
        outside = re.sub(r"`[^`]*`", "", markdown)
        self.assertNotRegex(outside, r"<|>|\]\(|https?://|^# heading")
        for row in (line for line in markdown.splitlines() if line.startswith("|")):
            self.assertIn(row.count("|"), (3, 4, 5, 6, 7, 9), row)

    def test_html_is_one_file_that_loads_and_runs_nothing(self):
        for make in (made_record.small, made_record.hostile, made_record.large):
            text = self.page(make, "html")
            page = Page(text)
            self.assertLessEqual(set(page.tags), {
                "html", "head", "meta", "title", "style", "body", "main", "header", "p", "h1", "h2", "dl", "dt", "dd", "div",
                "a", "b", "i", "span", "section", "table", "thead", "tbody", "tr", "th", "td", "code", "svg", "rect", "path"})
            self.assertEqual(page.tags.count("title"), 1 + text.count("<rect"))
            names = {name for _, name, _ in page.attributes}
            self.assertLessEqual(names, {
                "lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "title", "scope", "data-label",
                "viewbox", "preserveaspectratio", "role", "aria-hidden", "x", "y", "width", "height", "d"})
            self.assertEqual([value for _, name, value in page.attributes if name == "href" and value[0] != "#"], [])
            self.assertEqual(re.findall(r"url\(|@import", text), [])
            style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
            digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
            [policy] = [value for _, name, value in page.attributes if name == "content" and "default-src" in value]
            self.assertEqual(policy, f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'")
        self.assertLess(len(text), 200_000, "a run of 5000 processes is summarised")
        self.assertIn("5001", text)

    def test_out_writes_the_file(self):
        self.assertEqual(self.page(made_record.small, "html", "--out", "page.html"), "")
        self.assertIn("<!DOCTYPE html>", (self.work / "page.html").read_text())

    @unittest.skipUnless(BROWSER, "needs chromium")
    def test_nothing_meets_or_leaves_the_page(self):
        for make in (made_record.small, made_record.hostile, made_record.large):
            text = self.page(make, "html")
            for width, measured in zip((400, 1400), self.measure((text, 400), (text, 1400))):
                with self.subTest(make.__name__, width=width):
                    self.assertGreater(measured["texts"], 100)
                    self.assertEqual(measured["found"], [])

    @unittest.skipUnless(BROWSER, "needs chromium")
    def test_the_measure_finds_what_it_looks_for(self):
        wanted = {'<p style="width:900px">wide</p>': "400 wide", '<p style="font-size:9px">tiny</p>': "is small",
                  '<p style="position:absolute;top:0">one</p><p style="position:absolute;top:0">two</p>': "meets",
                  "<p>right</p>": None}
        for what, measured in zip(wanted.values(), self.measure(*(("<!DOCTYPE html>" + body, 400) for body in wanted))):
            self.assertEqual(any(what in line for line in measured["found"]) if what else measured["found"],
                             True if what else [])

    def measure(self, *pages):
        outer = self.folder / "outer.html"
        # Each is a document as wide as its frame; its policy holds in it, and the measure stands outside.
        frames = "".join(f'<iframe width={width} height=900 style="border:0" srcdoc="{html.escape(text)}"></iframe>'
                         for text, width in pages)
        outer.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{frames}<script>{MEASURE}</script>")
        with tempfile.TemporaryDirectory(prefix="firestop-browser-", ignore_cleanup_errors=True) as profile:
            done = subprocess.run([BROWSER, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", outer.as_uri()],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * LIMIT, check=False, text=True)
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
        self.assertTrue(found, done.stderr[-2000:])
        return json.loads(html.unescape(found[1]))


if __name__ == "__main__":
    main()
