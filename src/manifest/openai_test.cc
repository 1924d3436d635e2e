// One workspace in three spellings is one canonical text; what the SDK's document cannot say here is a fault,
// word for word in tests/manifest/bad/dialect-*.
#include "manifest/openai.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "manifest/canonical.h"

namespace firestop::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string good(const std::string& name) {
  return std::string(FIRESTOP_SOURCE_DIR) + "/tests/manifest/good/" + name;
}

std::string canonical(const std::string& file) {
  const auto loaded = load_file(file);
  if (!loaded) return loaded.error().to_string();
  if (!loaded->faults.empty()) return render(loaded->faults, loaded->text);
  return canonical_json(loaded->manifest, nullptr).value_or("not canonical");
}

std::string canonical_of(const Loaded& loaded) {
  if (!loaded.faults.empty()) return render(loaded.faults, loaded.text);
  return canonical_json(loaded.manifest, nullptr).value_or("not canonical");
}

TEST(OpenAi, ThreeSpellingsOfAWorkspaceAreOneCanonicalText) {
  const auto ours = canonical(good("dialect-ours.yaml"));
  EXPECT_THAT(ours, HasSubstr(R"("input/data")"));
  EXPECT_THAT(ours, HasSubstr(R"("content_base64":"AAH/")"));
  EXPECT_EQ(canonical(good("dialect-python.json")), ours);
  EXPECT_EQ(canonical(good("dialect-javascript.json")), ours);
}

TEST(OpenAi, SpellingsMayBeMixed) {
  const std::string head =
      "firestop: 1\nname: t\nworkspace:\n  entries:\n    a: {type: mount, source: {bind: d}, ";
  const auto plain = canonical_of(load_text("/nonexistent/f.yaml", head + "read_only: true}\n"));
  EXPECT_EQ(canonical_of(load_text("/nonexistent/f.yaml", head + "readOnly: true, mount_path: a}\n")), plain);
}

struct PermissionsRow {
  const char* spelling;
  uint32_t bits;
};

TEST(OpenAi, ReadsPermissionsInEverySpelling) {
  for (const auto& [spelling, bits] :
       std::initializer_list<PermissionsRow>{{"\"0755\"", 0755},
                                             {"0o755", 0755},
                                             {"493", 0755},
                                             {"420", 0644},
                                             {"511", 0777},
                                             {"448", 0700},
                                             {"rwxr-xr-x", 0755},
                                             {"-rw-r--r--", 0644},
                                             {"drwxr-x---", 0750},
                                             {"\"---x--x--x\"", 0111},
                                             {"{owner: 7, group: 5, other: 0}", 0750},
                                             {"{owner: 6, group: 4, other: 4, directory: true}", 0644},
                                             {"{}", 0700},
                                             {"{group: 5, sticky: false}", 0750}}) {
    const auto loaded = load_text("/nonexistent/f.yaml",
                                  "firestop: 1\nname: t\nworkspace: {entries: {a: {type: dir, "
                                  "permissions: " +
                                      std::string(spelling) + "}}}\n");
    ASSERT_EQ(render(loaded.faults, loaded.text), "") << spelling;
    EXPECT_EQ(loaded.manifest.entries.at(0).permissions, bits) << spelling;
  }
}

// Numbers that a person would write in octal without saying so.
TEST(OpenAi, RefusesNumbersThatLookOctal) {
  for (const char* number :
       {"400", "440", "444", "500", "755", "644", "600", "777", "1000", "0755", "040755"}) {
    const auto loaded = load_text("/nonexistent/f.yaml",
                                  "firestop: 1\nname: t\nworkspace: {entries: {a: {type: dir, "
                                  "permissions: " +
                                      std::string(number) + "}}}\n");
    EXPECT_EQ(loaded.faults.size(), 1u) << number;
  }
}

TEST(OpenAi, AVariableMayBeCalledValue) {
  for (const char* environment :
       {"{value: x}", "{value: {value: x}}", "{value: {value: {value: {value: x}}}}"}) {
    const auto loaded =
        load_text("/nonexistent/f.yaml",
                  "firestop: 1\nname: t\nworkspace: {environment: " + std::string(environment) + "}\n");
    ASSERT_EQ(render(loaded.faults, loaded.text), "") << environment;
    EXPECT_THAT(loaded.manifest.environment, ElementsAre(testing::Pair("value", "x"))) << environment;
  }
}

// Folders in folders must not multiply the bytes of a document.
TEST(OpenAi, BoundsTheLengthOfPaths) {
  const std::string name = std::string(250, 'x') + "/" + std::string(250, 'x');
  const auto nested = [&](int levels) {
    std::string text = "{firestop: 1, name: t, workspace: {entries: ";
    for (int i = 0; i < levels; ++i) text += "{" + name + ": {type: dir, children: ";
    text += "{a: {type: dir}}";
    for (int i = 0; i < levels; ++i) text += "}}";
    const auto loaded = load_text("/nonexistent/f.yaml", text + "}}\n");
    return render(loaded.faults, "");
  };
  EXPECT_EQ(nested(8), "");
  EXPECT_THAT(nested(9), HasSubstr("the path is too long"));
}

// The workspace of the good manifests alone, as an SDK would write it.
std::string workspace_of(const std::string& name) {
  const auto document = codec::parse_json(*read_file(good(name)));
  return codec::write_json_pretty(*document->find("workspace"));
}

TEST(OpenAiImport, WritesWhatItReadInOurSpelling) {
  const auto ours = canonical(good("dialect-ours.yaml"));
  for (const char* name : {"dialect-python.json", "dialect-javascript.json"}) {
    const auto imported = import_openai("sdk.json", workspace_of(name), "three-spellings");
    ASSERT_EQ(render(imported.loaded.faults, imported.loaded.text), "") << name;
    const auto again = load_text("firestop.yaml", imported.text);
    ASSERT_EQ(render(again.faults, again.text), "") << imported.text;
    EXPECT_EQ(canonical_of(again), ours);
    EXPECT_THAT(imported.binds, ElementsAre());
  }
}

TEST(OpenAiImport, SaysWhatItLeftOut) {
  const auto imported = import_openai("sdk.json", workspace_of("dialect-python.json"), "t");
  ASSERT_TRUE(imported.loaded.faults.empty());
  EXPECT_THAT(imported.text, HasSubstr("'Where to begin'"));
  EXPECT_THAT(imported.text, HasSubstr("is about remote mounts"));
}

TEST(OpenAiImport, NamesWhatLiesElsewhere) {
  const auto imported =
      import_openai("sdk.yaml",
                    "entries:\n"
                    "  a: {type: local_dir, src: /srv/data}\n"
                    "  b: {type: local_file, src: ../data}\n"
                    "  c: {type: local_dir, src: /srv/data}\n"
                    "  d: {type: mount, source: '~/My Data/', mountStrategy: {type: local_bind}}\n"
                    "  e: {type: local_dir, src: inside}\n"
                    "  f: {type: git_repo, repo: acme/widget, ref: main}\n"
                    "  g: {type: local_dir, src: /}\n",
                    "t");
  ASSERT_EQ(render(imported.loaded.faults, imported.loaded.text), "");
  EXPECT_THAT(imported.binds,
              ElementsAre("data=/srv/data", "data-2=../data", "My-Data=~/My Data/", "folder=/"));
  EXPECT_THAT(imported.text, HasSubstr("source: {bind: \"data-2\"}"));
  EXPECT_THAT(imported.text, HasSubstr("source: {path: \"inside\"}"));
  EXPECT_THAT(imported.text, HasSubstr("host: github.com"));
}

TEST(OpenAiImport, RunsAsTheFirstOfSeveralUsers) {
  const auto imported = import_openai("sdk.yaml", "users: [{name: ann}, ben]\n", "t");
  ASSERT_EQ(render(imported.loaded.faults, imported.loaded.text), "");
  EXPECT_EQ(imported.loaded.manifest.run_as, "ann");
}

// Texts that YAML takes for something else, and characters that it takes in escapes only.
TEST(OpenAiImport, QuotesWhatNeedsQuotes) {
  const std::string document =
      R"({"entries": {"true": {"type": "file", "content": "\u202e\u2028\ufeff\u0085\u007f\t'\"\\"},
    "1e3": {"type": "file", "content": "# no comment\n- x: y\n"}, "größe 😀": {"type": "dir"}, "- a: b": {"type": "dir"}},
    "environment": {"NULL": "null", "Y": "yes", "N": "0x10"}})";
  const auto imported = import_openai("sdk.json", document, "on");
  ASSERT_EQ(render(imported.loaded.faults, imported.loaded.text), "");
  const auto again = load_text("firestop.yaml", imported.text);
  ASSERT_EQ(render(again.faults, again.text), "") << imported.text;
  EXPECT_EQ(canonical_of(again), canonical_of(imported.loaded));
}

struct RefusedRow {
  const char* document;
  const char* fault;
};

TEST(OpenAiImport, WritesNothingWhenSomethingCannotBeSaid) {
  for (const auto& [document, fault] : std::initializer_list<RefusedRow>{
           {"root: /\n", "sdk.yaml:1:7: workspace.root: '/' is another root"},
           {"entries: {a: {type: s3_mount, bucket: b}}\n", "remote store"},
           {"entries: {a: {type: local_dir, src: 'C:\\x'}}\n", "sdk.yaml:1:37: workspace.entries.a.src"},
           {"extra_path_grants: [{path: /etc}]\n", "grants paths outside"},
           {"[1]\n", "workspace: is a list"},
           {"", "sdk.yaml"},
           {"a: [\n", "sdk.yaml:"},
           {"entries: {a: {type: git_repo, repo: 'https://github.com/a/b'}}\n",
            "workspace.entries.a.repo"}}) {
    const auto imported = import_openai("sdk.yaml", document, "t");
    EXPECT_THAT(render(imported.loaded.faults, imported.loaded.text), HasSubstr(fault)) << document;
    EXPECT_EQ(imported.text, "") << document;
  }
}

}  // namespace
}  // namespace firestop::manifest
