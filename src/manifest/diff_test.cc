#include "manifest/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "manifest/cover.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

using testing::HasSubstr;
using testing::Not;

Manifest load(const std::string& body) {
  auto loaded = load_text("firestop.yaml", "firestop: 1\nname: t\n" + body);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}

// "+field" for what opens, "-field" for what closes, "~field" for the others, in the order of the diff.
std::string verdicts(const std::vector<Change>& changes) {
  std::string out;
  for (const auto& change : changes) {
    out += out.empty() ? "" : " ";
    out += change.effect == Effect::kOpens ? '+' : change.effect == Effect::kCloses ? '-' : '~';
    out += change.field;
  }
  return out;
}

std::string entry(const std::string& text) {
  return "workspace: {entries: {x: " + text + "}}\n";
}
std::string rule(const std::string& text) {
  return "egress: [{" + text + "}]\n";
}
std::string secret(const std::string& text) {
  return rule("host: a.example.com, methods: [GET], paths: [/v1/**], credential: c") + "credentials: {c: {" +
         text + "}}\n";
}
std::string git(const std::string& text) {
  return rule("host: a.example.com, git: {repository: a/b, " + text + "}");
}

struct Row {
  const char* why;
  std::string before, after, forth, back;  // the verdicts from before to after, and from after to before
};

const Row kRows[] = {
    {"nothing", "", "", "", ""},
    {"a default written out", "", "rating: 1h\n", "", ""},
    {"another spelling", "rating: 90m\n", "rating: 1h30m\n", "", ""},
    {"a longer rating", "rating: 30m\n", "rating: 31m\n", "+rating", "-rating"},
    {"no idle time", "idle: 5m\n", "", "+idle", "-idle"},
    {"a longer idle time", "idle: 5m\n", "idle: 6m\n", "+idle", "-idle"},
    {"another description", "", "description: d\n", "~description", "~description"},
    {"another image", "", "image: other\n", "~image", "~image"},
    {"another command", "command: [a]\n", "command: [a, b]\n", "~command", "~command"},
    {"words are not one word", "command: [a, b]\n", "command: [a b]\n", "~command", "~command"},
    {"a capability", "", "capabilities: [shell]\n", "+capabilities.shell", "-capabilities.shell"},
    {"the last capability goes", "capabilities: [shell]\n", "capabilities: []\n", "-capabilities.shell",
     "+capabilities.shell"},
    {"memory", "limits: {memory: 512MiB}\n", "limits: {memory: 513MiB}\n", "+limits.memory",
     "-limits.memory"},
    {"a fraction of a processor", "limits: {cpus: 1}\n", "limits: {cpus: 1.5}\n", "+limits.cpus",
     "-limits.cpus"},
    {"a cap where none was", "", "limits: {io: 1MiB/s}\n", "-limits.io", "+limits.io"},
    {"result", "limits: {result: 1MiB}\n", "limits: {result: 2MiB}\n", "+limits.result", "-limits.result"},
    {"one up, one down", "limits: {memory: 1GiB, disk: 2GiB}\n", "limits: {memory: 2GiB, disk: 1GiB}\n",
     "+limits.memory -limits.disk", "+limits.disk -limits.memory"},
    {"a cap of the network", rule("host: a.example.com") + "limits: {network: {bytes: 1MiB}}\n",
     rule("host: a.example.com"), "+limits.network.bytes", "-limits.network.bytes"},
    {"a file", "", entry("{type: file, content: a}"), "+workspace.entries.x", "-workspace.entries.x"},
    {"an empty folder", "", entry("{type: dir}"), "~workspace.entries.x", "~workspace.entries.x"},
    {"an output", entry("{type: dir}"), entry("{type: dir, output: true, max: 1MiB}"),
     "+workspace.entries.x.output", "-workspace.entries.x.output"},
    {"a larger output", entry("{type: dir, output: true, max: 1MiB}"),
     entry("{type: dir, output: true, max: 2MiB}"), "+workspace.entries.x.max", "-workspace.entries.x.max"},
    {"another text", entry("{type: file, content: a}"), entry("{type: file, content: b}"),
     "~workspace.entries.x.content", "~workspace.entries.x.content"},
    {"a part of a folder", entry("{type: local_dir, src: a}"), entry("{type: local_dir, src: a/b}"),
     "-workspace.entries.x.src", "+workspace.entries.x.src"},
    {"a folder whose name begins so", entry("{type: local_dir, src: a}"), entry("{type: local_dir, src: ab}"),
     "+workspace.entries.x.src", "+workspace.entries.x.src"},
    {"something bound", entry("{type: local_dir, src: a}"), entry("{type: local_dir, source: {bind: a}}"),
     "+workspace.entries.x.source.bind", "+workspace.entries.x.src"},
    {"a copy becomes a mount", entry("{type: local_dir, source: {bind: a}}"),
     entry("{type: mount, source: {bind: a}, read_only: true}"), "+workspace.entries.x -workspace.entries.x",
     "+workspace.entries.x -workspace.entries.x"},
    {"another branch", entry("{type: git_repo, repo: ., ref: a}"), entry("{type: git_repo, repo: ., ref: b}"),
     "~workspace.entries.x.ref", "~workspace.entries.x.ref"},
    {"whole history", entry("{type: git_repo, repo: ., depth: 1}"), entry("{type: git_repo, repo: .}"),
     "+workspace.entries.x.depth", "-workspace.entries.x.depth"},
    {"another repository", entry("{type: git_repo, repo: a}"), entry("{type: git_repo, repo: b}"),
     "+workspace.entries.x.repo", "+workspace.entries.x.repo"},
    {"permissions", entry("{type: dir}"), entry("{type: dir, permissions: '0700'}"),
     "~workspace.entries.x.permissions", "~workspace.entries.x.permissions"},
    {"a variable", "", "workspace: {environment: {A: b}}\n", "~workspace.environment.A",
     "~workspace.environment.A"},
    {"the first rule", "", rule("host: a.example.com"), "+egress +egress[a.example.com]",
     "-egress -egress[a.example.com]"},
    {"a rule more", rule("host: a.example.com"), "egress: [{host: b.example.com}, {host: a.example.com}]\n",
     "+egress[b.example.com]", "-egress[b.example.com]"},
    {"rules in another order", "egress: [{host: a.example.com}, {host: b.example.com}]\n",
     "egress: [{host: b.example.com}, {host: a.example.com}]\n", "~egress", "~egress"},
    {"a wider host", rule("host: a.example.com"), rule("host: '*.example.com'"),
     "+egress[*.example.com].host", "-egress[a.example.com].host"},
    {"two stars", rule("host: '*.example.com'"), rule("host: '**.example.com'"),
     "+egress[**.example.com].host", "-egress[*.example.com].host"},
    {"another host", rule("host: a.example.com"), rule("host: a.example.org"),
     "+egress[a.example.org] -egress[a.example.com]", "+egress[a.example.com] -egress[a.example.org]"},
    {"every method", rule("host: a.example.com, methods: [GET]"), rule("host: a.example.com"),
     "+egress[a.example.com].methods", "-egress[a.example.com].methods"},
    {"a method more", rule("host: a.example.com, methods: [GET]"),
     rule("host: a.example.com, methods: [POST, GET]"), "+egress[a.example.com].methods",
     "-egress[a.example.com].methods"},
    {"a method for another", rule("host: a.example.com, methods: [GET]"),
     rule("host: a.example.com, methods: [POST]"),
     "+egress[a.example.com].methods -egress[a.example.com].methods",
     "+egress[a.example.com].methods -egress[a.example.com].methods"},
    {"a part of a path", rule("host: a.example.com, paths: [/v1/**]"),
     rule("host: a.example.com, paths: [/v1/models]"), "-egress[a.example.com].paths",
     "+egress[a.example.com].paths"},
    {"a port more", rule("host: a.example.com"), rule("host: a.example.com, ports: [443, 80, 8443]"),
     "+egress[a.example.com].ports", "-egress[a.example.com].ports"},
    {"not read any more", rule("host: a.example.com, port: 443"), rule("host: a.example.com, protocol: tls"),
     "+egress[a.example.com].protocol", "-egress[a.example.com].protocol"},
    {"private addresses", rule("host: a.example.com"), rule("host: a.example.com, private: true"),
     "+egress[a.example.com].private", "-egress[a.example.com].private"},
    {"a websocket", rule("host: a.example.com"), rule("host: a.example.com, websocket: true"),
     "+egress[a.example.com].websocket", "-egress[a.example.com].websocket"},
    {"a wider network", rule("cidr: 93.184.216.0/24, port: 22"), rule("cidr: 93.184.0.0/16, port: 22"),
     "+egress[93.184.0.0/16].cidr", "-egress[93.184.216.0/24].cidr"},
    {"a secret", rule("host: a.example.com, methods: [GET], paths: [/v1/**]"),
     secret("env: K, inject: bearer"), "+egress[a.example.com].credential +credentials.c",
     "-egress[a.example.com].credential -credentials.c"},
    {"where its placeholder is", secret("env: K, inject: bearer"), secret("env: L, inject: bearer"),
     "~credentials.c.env", "~credentials.c.env"},
    {"pushing", git("fetch: true"), git("fetch: true, push: [refs/heads/a/**]"),
     "+egress[a.example.com].git.push", "-egress[a.example.com].git.push"},
    {"pushing elsewhere, too", git("push: [refs/heads/a/**]"), git("push: [refs/heads/**]"),
     "+egress[a.example.com].git.push", "-egress[a.example.com].git.push"},
    {"deleting", git("push: [refs/heads/a]"), git("push: [refs/heads/a], delete: true"),
     "+egress[a.example.com].git.delete", "-egress[a.example.com].git.delete"},
    {"a push option", git("push: [refs/heads/a]"), git("push: [refs/heads/a], push_options: [a]"),
     "+egress[a.example.com].git.push_options", "-egress[a.example.com].git.push_options"},
    {"more push options", git("push: [refs/heads/a], push_options: [a.b]"),
     git("push: [refs/heads/a], push_options: [\"a.*\"]"), "+egress[a.example.com].git.push_options",
     "-egress[a.example.com].git.push_options"},
    {"fetching", git("push: [refs/heads/a]"), git("push: [refs/heads/a], fetch: true"),
     "+egress[a.example.com].git.fetch", "-egress[a.example.com].git.fetch"},
    {"another account", "workspace: {users: [{name: a}, {name: b}]}\nrun_as: a\n",
     "workspace: {users: [{name: a}, {name: b}]}\nrun_as: b\n", "~run_as", "~run_as"},
};

TEST(Diff, SaysOfEachChangeWhatItOpensAndCloses) {
  for (const auto& row : kRows) {
    const Manifest before = load(row.before), after = load(row.after);
    EXPECT_EQ(verdicts(diff(before, after)), row.forth) << row.why;
    EXPECT_EQ(verdicts(diff(after, before)), row.back) << row.why << ", back";
  }
}

TEST(Diff, AVerdictIsLessThanARun) {
  Manifest run = load(""), verdict = run;
  verdict.kind = Kind::kVerdict;
  EXPECT_EQ(verdicts(diff(run, verdict)), "-kind");
  EXPECT_EQ(verdicts(diff(verdict, run)), "+kind");
}

TEST(Diff, OpensComeFirst) {
  const auto changes = diff(load("description: a\nrating: 2h\n" + rule("host: a.example.com")),
                            load("description: b\nrating: 1h\ncapabilities: [shell]\n"));
  EXPECT_EQ(verdicts(changes), "+capabilities.shell -egress -egress[a.example.com] -rating ~description");
}

// Whatever one takes out of a manifest that has every field, nothing opens but what was a bound.
TEST(Diff, TakingAwayAGrantNeverOpens) {
  const auto text = read_file(FIRESTOP_SOURCE_DIR "/tests/manifest/good/every-field.yaml");
  ASSERT_TRUE(text);
  const auto loaded = load_text("firestop.yaml", *text);
  ASSERT_TRUE(loaded.faults.empty());
  const auto none_opens = [&](const Manifest& less, const std::string& what) {
    const auto changes = diff(loaded.manifest, less);
    EXPECT_THAT(verdicts(changes), Not(HasSubstr("+"))) << what;
    EXPECT_FALSE(changes.empty()) << what;
  };
  for (size_t at = 0; at < loaded.manifest.entries.size(); ++at) {
    Manifest less = loaded.manifest;
    less.entries.erase(less.entries.begin() + static_cast<ptrdiff_t>(at));
    none_opens(less, loaded.manifest.entries[at].path);
  }
  for (size_t at = 0; at < loaded.manifest.egress.size(); ++at) {
    Manifest less = loaded.manifest;
    less.egress.erase(less.egress.begin() + static_cast<ptrdiff_t>(at));
    none_opens(less, loaded.manifest.egress[at].host);
  }
  Manifest none = loaded.manifest;
  none.egress.clear();
  none.credentials.clear();
  none.entries.clear();
  none.capabilities.clear();
  none_opens(none, "everything");
}

TEST(Diff, SkillsAndMemory) {
  const auto with = [](const std::string& skills) {
    return load(skills.empty() ? "" : "capabilities: [skills]\nskills: " + skills + "\n");
  };
  const auto review = with("{review: {src: a/b}}");
  EXPECT_EQ(verdicts(diff(with(""), review)), "+skills.review +capabilities.skills");
  EXPECT_EQ(verdicts(diff(review, with(""))), "-skills.review -capabilities.skills");
  EXPECT_EQ(verdicts(diff(review, with("{review: {src: a/b/c}}"))), "-skills.review.src");
  EXPECT_EQ(verdicts(diff(review, with("{review: {src: a}}"))), "+skills.review.src");
  EXPECT_EQ(verdicts(diff(review, with("{review: {source: {bind: a}}}"))), "+skills.review.source.bind");
  EXPECT_EQ(verdicts(diff(review, with("{other: {src: a/b}}"))), "+skills.other -skills.review");
  EXPECT_EQ(verdicts(diff(review, with("{review: {source: {path: a/b}}}"))), "");
  const auto memory = [](const std::string& limits) {
    return load("capabilities: [memory]\nlimits: {" + limits + "}\n");
  };
  EXPECT_EQ(verdicts(diff(load(""), memory(""))), "+capabilities.memory");
  EXPECT_EQ(verdicts(diff(memory(""), memory("memory_directory: 17MiB, memory_files: 999"))),
            "+limits.memory_directory -limits.memory_files");
  EXPECT_EQ(verdicts(diff(memory(""), memory("memory_directory: 16MiB, memory_files: 1000"))), "");
}

TEST(Diff, TextForPeople) {
  const auto before = load("rating: 30m\nlimits: {disk: 2GiB}\n"), after = load("limits: {disk: 1GiB}\n");
  EXPECT_EQ(diff_text(before, after, diff(before, after), Colour::kOff),
            R"(t  firestop.yaml against firestop.yaml

Opens
  + rating
      it may run longer
      30m -> 1h

Closes
  - limits.disk
      less may be used
      2GiB -> 1GiB

Changes nothing
)");
  EXPECT_THAT(diff_text(before, before, diff(before, before), Colour::kOff), HasSubstr("Nothing opens"));
}

TEST(Diff, TextOfTheManifestsCannotSteerTheTerminal) {
  const auto before = load("description: \"\\e[2J\"\n");
  const auto after = load("description: \"\\u202E\"\ncommand: [\"\\e]0;x\\a\"]\n");
  const auto text = diff_text(before, after, diff(before, after), Colour::kOff);
  for (const char* hidden : {"\x1b", "\x07", "\xE2\x80\xAE"}) EXPECT_THAT(text, Not(HasSubstr(hidden)));
}

TEST(Diff, JsonForPrograms) {
  const auto before = load(""), after = load("capabilities: [shell]\ndescription: d\nrating: 5m\n");
  const auto json = diff_json(before, after, diff(before, after));
  EXPECT_EQ(codec::write_json(*json.find("opens")),
            R"([{"after":"granted","before":null,"field":"capabilities.shell",)"
            R"("words":"may run any program of the image and the workspace"}])");
  EXPECT_EQ(json.find("closes")->as_array()->size(), 1u);
  EXPECT_EQ(json.find("changes")->as_array()->size(), 1u);
}

TEST(Cover, Hosts) {
  EXPECT_TRUE(host_covers("**.example.com", "a.b.example.com"));
  EXPECT_TRUE(host_covers("**.example.com", "*.b.example.com"));
  EXPECT_TRUE(host_covers("*.example.com", "a.example.com"));
  EXPECT_FALSE(host_covers("*.example.com", "a.b.example.com"));
  EXPECT_FALSE(host_covers("*.example.com", "example.com"));
  EXPECT_FALSE(host_covers("**.example.com", "example.com"));
  EXPECT_FALSE(host_covers("*.example.com", "aexample.com"));
  EXPECT_FALSE(host_covers("*.example.com", "**.example.com"));
  EXPECT_FALSE(host_covers("a.example.com", "*.example.com"));
}

TEST(Cover, NetworksAndPatterns) {
  EXPECT_TRUE(cidr_covers("10.0.0.0/8", "10.1.0.0/16"));
  EXPECT_FALSE(cidr_covers("10.1.0.0/16", "10.0.0.0/8"));
  EXPECT_FALSE(cidr_covers("10.0.0.0/9", "10.128.0.0/9"));
  EXPECT_FALSE(cidr_covers("0.0.0.0/0", "2001:db8::/32"));
  EXPECT_TRUE(pattern_covers("/v1/**", "/v1/a/*"));
  EXPECT_FALSE(pattern_covers("/v1/**", "/v1"));
  EXPECT_FALSE(pattern_covers("/v1/**", "/v10/a"));
  EXPECT_FALSE(pattern_covers("/*/a/**", "/b/a/c"));  // true, but not plainly so
  EXPECT_TRUE(folder_covers(".", "a"));
  EXPECT_FALSE(folder_covers("a", "ab"));
}

}  // namespace
}  // namespace firestop::manifest
