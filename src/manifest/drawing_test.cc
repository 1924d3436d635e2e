#include "manifest/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/file.h"
#include "codec/utf8.h"
#include "manifest/drawing_model.h"
#include "manifest/drawing_parts.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

using testing::HasSubstr;
using testing::Not;

const TitleBlock kBlock{std::string(64, 'a'), "none", "not checked here"};

Manifest load(const std::string& text) {
  auto loaded = load_text("firestop.yaml", text);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}
Manifest good(const char* name) {
  std::string path = FIRESTOP_SOURCE_DIR "/tests/manifest/good/";
  path += name;
  return load(read_file(path).value_or(""));
}

size_t count(std::string_view text, std::string_view part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

TEST(Drawing, ShowsEveryCrossing) {
  const std::string svg = draw_svg(good("due-diligence.yaml"), kBlock);
  for (const char* part :
       {">due-diligence<", ">dataroom<", ">image of --bind dataroom<", ">notes.md<", ">repo<",
        ">this repository at main<", ">template<", ">agent/NAME<", ">at most 50MiB<",
        ">api.example.com:443,80<", ">GET POST on /v1/**<", ">with credential model<",
        ">git acme/widget: fetch, push refs/heads/agent/**<", ">with credential forge<", ">Ends after 45m<",
        ">analyst, uid 1000, no privileges<", ">$API_KEY for model, as bearer<", ">200MiB<"})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_EQ(count(svg, "class=\"seal\""), 9u);  // four in, four out, one above
}

TEST(Drawing, ShowsWhatIsNotThere) {
  const std::string svg = draw_svg(good("smallest.yaml"), kBlock);
  for (const char* part : {">No network device<", ">Nothing comes in.<", ">not granted<", "NOT IN THE ROOM"})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_THAT(svg, Not(HasSubstr("Firestop's proxy")));
  EXPECT_EQ(count(svg, "dim struck"), 5u);
}

TEST(Drawing, SkillsComeInAndMemoryGoesBothWays) {
  const auto plain = load("firestop: 1\nname: t\n");
  const auto more = load(
      "firestop: 1\nname: t\ncapabilities: [skills, memory]\nlimits: {memory_files: 7}\n"
      "skills: {review: {src: skills/review}, style: {source: {bind: style}}}\n");
  const std::string svg = draw_svg(more, kBlock);
  for (const char* part :
       {">.skills/review<", ">skill, image of skills/review<", ">.skills/style<", ">.memory<",
        ">kept for the next run named t<", ">at most 16MiB, 7 files<", ">memory folder<"})
    EXPECT_THAT(svg, HasSubstr(part));
  const auto marks = [](const std::vector<Crossing>& side, Mark mark) {
    return std::count_if(side.begin(), side.end(), [&](const Crossing& c) { return c.mark == mark; });
  };
  const auto fresh = crossings_of(more, &plain, diff(plain, more));
  EXPECT_EQ(marks(fresh.in, Mark::kNew), 3);
  EXPECT_EQ(marks(fresh.out, Mark::kNew), 1);
  const auto gone = crossings_of(plain, &more, diff(more, plain));
  EXPECT_EQ(marks(gone.in, Mark::kGone), 3);
  EXPECT_EQ(marks(gone.out, Mark::kGone), 1);
  auto wider = more;
  wider.limits.memory_directory *= 2;
  wider.skills[0].source.path = "skills";
  const auto changed = crossings_of(wider, &more, diff(more, wider));
  EXPECT_EQ(marks(changed.in, Mark::kWider), 1);
  EXPECT_EQ(marks(changed.out, Mark::kWider), 1);
}

TEST(Drawing, NamesNoValue) {
  EXPECT_THAT(draw_svg(good("every-field.yaml"), kBlock), Not(HasSubstr("4242")));
}

TEST(Drawing, NeedsNothingElse) {
  for (const char* name : {"smallest.yaml", "due-diligence.yaml", "every-field.yaml"}) {
    const std::string svg = draw_svg(good(name), kBlock);
    for (const char* part :
         {"<script", "href", "@import", "@font-face", "<image", "<foreignObject", "onload"})
      EXPECT_THAT(svg, Not(HasSubstr(part))) << name;
    EXPECT_EQ(count(svg, "url("), 2u);  // its own two patterns
    EXPECT_EQ(count(svg, "url(#"), 2u);
    EXPECT_EQ(count(svg, "://"), 1u);  // the name of SVG's namespace
    EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
    EXPECT_EQ(svg, draw_svg(good(name), kBlock));
  }
}

TEST(Drawing, HostileTextStaysText) {
  const Manifest manifest = load(
      "firestop: 1\nname: t\ndescription: \"</text><script>alert(1)</script> \\u202E \\e[2J ]]> & \\\" '\"\n"
      "workspace: {entries: {\"<g onload=x>\": {type: file, content: a}, \"a\\u0301\\u0301\\u0301\\u0301\": "
      "{type: dir, "
      "output: true, max: 1MiB}}}\ncommand: [\"<&\", \"\\uFDFD\"]\n"
      "credentials: {}\n");
  const std::string svg = draw_svg(manifest, kBlock);
  EXPECT_TRUE(codec::is_utf8(svg));
  EXPECT_EQ(codec::printable(svg, svg.size()), svg);  // no control and no direction characters
  for (const char* part : {"<script", "<g onload", "\xCC\x81\xCC\x81", "\xEF\xB7\xBD"})
    EXPECT_THAT(svg, Not(HasSubstr(part)));
  for (const char* part : {"&lt;script&gt;", "\\u{202E}", "\\u{001B}[2J", "&lt;g onload=x&gt;", "\\u{FDFD}"})
    EXPECT_THAT(svg, HasSubstr(part));
}

TEST(Drawing, LongNamesAreElidedAndCanBeReadWhole) {
  const std::string name(250, 'x');
  const std::string svg = draw_svg(
      load("firestop: 1\nname: t\nworkspace: {entries: {" + name + ": {type: file, content: a}}}\n"), kBlock);
  EXPECT_THAT(svg, HasSubstr("<title>" + name + "</title>"));
  EXPECT_THAT(svg, HasSubstr("x\u2026</text>"));
}

TEST(Drawing, ManyCrossingsAreGrouped) {
  std::string text = "firestop: 1\nname: t\nworkspace:\n  entries:\n";
  for (int at = 0; at < 200; ++at) text += "    f" + std::to_string(at) + ": {type: file, content: a}\n";
  const Manifest before = load(text);
  EXPECT_THAT(draw_svg(before, kBlock), HasSubstr(">and 141 more<"));
  const Manifest after = load(text + "    zz: {type: file, content: a}\n");
  EXPECT_THAT(draw_diff_svg(before, after, diff(before, after), kBlock), HasSubstr(">zz<"));
}

TEST(Drawing, MarksWhatAChangeOpensAndCloses) {
  const Manifest before = load(
      "firestop: 1\nname: t\nworkspace: {entries: {gone: {type: file, content: a}, same: {type: file, "
      "content: "
      "a}, out: {type: dir, output: true, max: 2MiB}}}\negress: [{host: a.example.com}, {host: "
      "b.example.com}]\n");
  const Manifest after = load(
      "firestop: 1\nname: t\nrating: 2h\nworkspace: {entries: {new: {type: file, content: a}, same: {type: "
      "file, "
      "content: a}, out: {type: dir, output: true, max: 1MiB}}}\ncapabilities: [shell]\negress: [{host: "
      "b.example.com, private: true}, {host: c.example.com}]\n");
  const auto changes = diff(before, after);
  const auto crossings = crossings_of(after, &before, changes);
  const auto marks = [](const std::vector<Crossing>& side) {
    std::string out;
    for (const auto& crossing : side) out += crossing.name + "=" + label_of(crossing.mark) + " ";
    return out;
  };
  EXPECT_EQ(marks(crossings.in), "new=NEW same= gone=GONE ");
  EXPECT_EQ(marks(crossings.out), "out=NARROWER stdout, stderr= exit status= ");
  EXPECT_EQ(marks(crossings.talk),
            "b.example.com:443,80=WIDER c.example.com:443,80=NEW a.example.com:443,80=GONE ");
  EXPECT_EQ(mark_of(changes, "rating"), Mark::kWider);
  EXPECT_EQ(mark_of(changes, "capability shell"), Mark::kWider);
  const std::string svg = draw_diff_svg(before, after, changes, kBlock);
  for (const char* part : {">NEW<", ">WIDER<", ">GONE<", ">NARROWER<", "class=\"card opens\"",
                           "class=\"card closes\"", ">opens 5<", ">closes 3<", ">changes 0<"})
    EXPECT_THAT(svg, HasSubstr(part));
}

TEST(Drawing, AWayOutThatOpensOrClosesIsMarkedOnItsOwnSide) {
  const std::string dir = "firestop: 1\nname: t\nworkspace: {entries: {x: {type: dir}}}\n";
  const std::string output =
      "firestop: 1\nname: t\nworkspace: {entries: {x: {type: dir, output: true, max: 1MiB}}}\n";
  const Manifest plain = load(dir), back = load(output);
  EXPECT_EQ(crossings_of(back, &plain, diff(plain, back)).out[0].mark, Mark::kNew);
  const auto closed = crossings_of(plain, &back, diff(back, plain));
  EXPECT_EQ(closed.out[0].name, "x");
  EXPECT_EQ(closed.out[0].mark, Mark::kGone);
}

TEST(Drawing, ANetworkThatIsTakenAwayIsDrawnAsGone) {
  const std::string text = "firestop: 1\nname: t\n";
  const Manifest none = load(text), some = load(text + "egress: [{host: a.example.com}]\n");
  const std::string svg = draw_diff_svg(some, none, diff(some, none), kBlock);
  EXPECT_THAT(svg, HasSubstr(">No network device any more: nothing can be talked to.<"));
  EXPECT_THAT(svg, Not(HasSubstr("the only way out")));
  EXPECT_THAT(draw_diff_svg(none, some, diff(none, some), kBlock), HasSubstr("the only way out"));
}

TEST(DrawingText, WidthsAreThoseOfTheWidestFonts) {
  EXPECT_DOUBLE_EQ(text_width("abc", Face::kMono, 10), 18.09);
  EXPECT_DOUBLE_EQ(text_width("W", Face::kSans, 10), 9.89);
  EXPECT_GT(text_width("日本", Face::kMono, 10), 2 * text_width("ab", Face::kMono, 10));
  EXPECT_DOUBLE_EQ(text_width("ab", Face::kMono, 10, 1), 14.06);
}

TEST(DrawingText, ElidesAndWrapsWithinTheWidth) {
  for (const std::string text :
       {"one two three four five", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "日本語日本語日本語日本語"}) {
    for (double width = 20; width < 200; width += 7) {
      EXPECT_LE(text_width(elide(text, Face::kSans, 10, width), Face::kSans, 10), width);
      const auto lines = wrap_lines(text, Face::kSans, 10, width, 3);
      EXPECT_LE(lines.size(), 3u);
      for (const auto& line : lines) {
        EXPECT_LE(text_width(line, Face::kSans, 10), width) << line;
        EXPECT_TRUE(codec::is_utf8(line));
      }
    }
  }
  EXPECT_THAT(wrap_lines("one two three", Face::kMono, 10, 50, 3), testing::ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_lines("", Face::kMono, 10, 50, 3), testing::IsEmpty());
}

TEST(DrawingText, CoordinatesAreTheSameEverywhere) {
  EXPECT_EQ(coordinate(1), "1");
  EXPECT_EQ(coordinate(-0.5), "-0.5");
  EXPECT_EQ(coordinate(2.05), "2.05");
  EXPECT_EQ(coordinate(-0.001), "0");
}

}  // namespace
}  // namespace firestop::manifest
