#include "manifest/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

using testing::HasSubstr;
using testing::Not;

Manifest load(const std::string& text) {
  auto loaded = load_text("firestop.yaml", text);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}

std::string good(const char* name) {
  std::string path = FIRESTOP_SOURCE_DIR "/tests/manifest/good/";
  path += name;
  return read_file(path).value_or("");
}

TEST(Explain, SaysWhatTheSmallestCanTouch) {
  EXPECT_EQ(explain_text(load(good("smallest.yaml")), Colour::kOff), R"(t  firestop.yaml, ends after 1h

Files in (copies)
  none

Mounts (read-only, in nothing that comes back)
  none

Out
  stdout, stderr  at most 64MiB
  exit status     the command's own

Network
  none            the machine has no network device

Credentials
  none

Inside
  account         agent (uid 1000)
  command         none declared; firestop run -- COMMAND
  image           agent-base
  environment     HOME, PATH, TERM, USER

Capabilities
  none

Caps
  time            1h          default
  idle time       not capped  default
  processors      1           default
  memory          1GiB        default
  disk            4GiB        default
  disk I/O        not capped  default
  processes       512         default
  open files      4096        default
  stdout, stderr  64MiB       default
  result          256MiB      default
  result files    100000      default

Not granted
  network         no device but lo, no route, no name resolves
  credentials     no secret of yours is inside, and none is used for it
  host files      nothing but copies of what comes in
  your checkout   HEAD, index, files, configuration and hooks stay as they are
  host services   no SSH agent, container socket, display, keyring or process
  root            no uid 0, no Linux capabilities, no new privileges
  devices         no KVM (nested machines), GPU, USB or disk of the host
  shell           capability: no program runs but the declared command
  filesystem      capability: the workspace is read-only but for outputs
  skills          capability: no skill folders
  memory          capability: nothing is kept for the next run
  compaction      capability: no place for a summary of the session
)");
}

TEST(Explain, NamesEveryCrossingAndNoValue) {
  const std::string text = explain_text(load(good("every-field.yaml")), Colour::kOff);
  for (const char* part : {"repository at refs/tags/v1.0, 1 commit",
                           "repository acme/widget of git.example.com",
                           "--bind data=PATH",
                           "copy of folder sub/folder",
                           "mode 0755",
                           "at most 10MiB",
                           "api.example.com:443,8443",
                           "git acme/widget: fetch, push",
                           "credential model",
                           "placeholder in $API_KEY",
                           "helper (uid 1001)",
                           "ANSWER",
                           ".skills/review",
                           "skill, read-only image of skills/review",
                           "skill, read-only image of --bind style=PATH",
                           "what the last run named every-field kept",
                           "at most 32MiB, 200 files",
                           "memory folder ",
                           "its files ",
                           "1h30m     declared"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("4242")));  // a value of the environment
}

TEST(Explain, FitsEightyColumns) {
  for (const char* name : {"smallest.yaml", "due-diligence.yaml", "every-field.yaml"}) {
    std::istringstream lines(explain_text(load(good(name)), Colour::kOff));
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(
          line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
      std::istringstream words(line);  // a label and one word that cannot be broken may be longer
      std::string label, word, more;
      const bool one_word = !(words >> label >> word >> more);
      EXPECT_TRUE(columns <= 80 || one_word) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(Explain, ColourIsOnlyThereWhenAskedFor) {
  const Manifest manifest = load(good("smallest.yaml"));
  EXPECT_THAT(explain_text(manifest, Colour::kOn), HasSubstr("\x1b[1m"));
  EXPECT_THAT(explain_text(manifest, Colour::kOff), Not(HasSubstr("\x1b")));
}

TEST(Explain, TextOfTheManifestCannotSteerTheTerminal) {
  const Manifest manifest = load(
      "firestop: 1\nname: t\ndescription: \"\\e[2J\\u202E x\"\ncommand: [\"\\e]0;x\\a\", \"\\x9b2J\"]\n");
  const std::string text = explain_text(manifest, Colour::kOff);
  for (const char* hidden : {"\x1b", "\x07", "\xC2\x9B", "\xE2\x80\xAE"})
    EXPECT_THAT(text, Not(HasSubstr(hidden)));
}

TEST(Explain, JsonHasTheSameForPrograms) {
  const auto json = explain_json(load(good("due-diligence.yaml")));
  EXPECT_EQ(json.string_or("name", ""), "due-diligence");
  EXPECT_EQ(json.int_or("rating_ms", 0), 45 * 60 * 1000);
  EXPECT_EQ(json.find("files_in")->as_array()->size(), 4u);
  EXPECT_EQ(json.find("mounts")->as_array()->at(0).string_or("source_bind", ""), "dataroom");
  EXPECT_TRUE(json.find("network")->bool_or("device", false));
  const auto* memory = json.find("caps")->find("limits.memory");
  EXPECT_EQ(memory->int_or("value", 0), 512 << 20);
  EXPECT_TRUE(memory->bool_or("declared", false));
  EXPECT_FALSE(json.find("caps")->find("limits.result")->bool_or("declared", true));
  const auto none = explain_json(load(good("smallest.yaml")));
  EXPECT_FALSE(none.find("network")->bool_or("device", true));
  EXPECT_TRUE(none.find("network")->find("rules")->as_array()->empty());
}

}  // namespace
}  // namespace firestop::manifest
