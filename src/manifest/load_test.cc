#include "manifest/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/digest.h"
#include "base/file.h"
#include "manifest/explain.h"
#include "manifest/needs.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGood = FIRESTOP_SOURCE_DIR "/tests/manifest/good/";

Manifest good(const std::string& file) {
  auto loaded = load_file(kGood + file);
  if (!loaded) throw std::runtime_error(loaded.error().to_string());
  EXPECT_EQ(render(loaded->faults, loaded->text), "");
  return std::move(loaded->manifest);
}

Manifest from(const std::string& rest) {
  auto loaded = load_text("firestop.yaml", "firestop: 1\nname: t\n" + rest);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}

const Entry& entry(const Manifest& manifest, const std::string& path) {
  for (const auto& candidate : manifest.entries)
    if (candidate.path == path) return candidate;
  throw std::runtime_error("no entry " + path);
}

std::string folder_for_test() {
  const auto path = std::filesystem::temp_directory_path() / ("firestop-manifest-" + random_hex(8));
  std::filesystem::create_directories(path);
  return path.string();
}

TEST(Load, TheSmallestManifestGrantsNothing) {
  const Manifest manifest = good("smallest.yaml");
  EXPECT_EQ(manifest.kind, Kind::kRun);
  EXPECT_EQ(manifest.rating, std::chrono::hours(1));
  EXPECT_EQ(manifest.image.recipe, "agent-base");
  EXPECT_EQ(manifest.run_as, "agent");
  ASSERT_EQ(manifest.users.size(), 1u);
  EXPECT_EQ(manifest.uid_of("agent"), 1000u);
  EXPECT_TRUE(manifest.entries.empty());
  EXPECT_TRUE(manifest.environment.empty());
  EXPECT_TRUE(manifest.capabilities.empty());
  EXPECT_TRUE(manifest.egress.empty());
  EXPECT_TRUE(manifest.credentials.empty());
  EXPECT_TRUE(manifest.command.empty());
}

TEST(Load, ReadsEveryField) {
  const Manifest manifest = good("every-field.yaml");
  EXPECT_EQ(manifest.description, "A text over several lines.");
  EXPECT_EQ(manifest.rating, std::chrono::minutes(90));
  EXPECT_EQ(manifest.idle, std::chrono::seconds(90));
  EXPECT_THAT(manifest.image.oci, testing::StartsWith("registry.example.com/team/agent:1.0@sha256:0123"));
  EXPECT_EQ(manifest.image.recipe, "");
  EXPECT_EQ(manifest.entries.size(), 13u);
  EXPECT_TRUE(std::is_sorted(manifest.entries.begin(), manifest.entries.end(),
                             [](const Entry& a, const Entry& b) { return a.path < b.path; }));
  EXPECT_EQ(entry(manifest, "repo").depth, 1u);
  EXPECT_EQ(entry(manifest, "repo").where, (Position{13, 5}));
  EXPECT_EQ(entry(manifest, "repo/data").source.bind, "data");
  EXPECT_EQ(entry(manifest, "other").host, "git.example.com");
  EXPECT_EQ(entry(manifest, "dir").permissions, 0750u);
  EXPECT_EQ(entry(manifest, "script").permissions, 0755u);
  EXPECT_EQ(entry(manifest, "one").permissions, 0644u);
  EXPECT_EQ(entry(manifest, "dir/deep/notes.md").owner, "helper");
  EXPECT_EQ(entry(manifest, "with space/größe 😀").content, "block text\n");
  EXPECT_EQ(entry(manifest, "three").source.path, "sub/folder");
  EXPECT_EQ(entry(manifest, "out").max_bytes, 10u << 20);
  EXPECT_EQ(manifest.environment.at("ANSWER"), "no");
  EXPECT_EQ(manifest.environment.at("_x9"), "two\nlines");
  EXPECT_THAT(manifest.users[0].groups, ElementsAre("reviewers", "writers"));
  EXPECT_EQ(manifest.uid_of("helper"), 1001u);
  EXPECT_EQ(manifest.run_as, "helper");
  EXPECT_THAT(manifest.command, ElementsAre("sh", "-c", "echo \"$0\"", ""));
  EXPECT_EQ(manifest.capabilities.size(), 5u);
  ASSERT_EQ(manifest.skills.size(), 3u);
  EXPECT_EQ(manifest.skills[0].name, "house-style");
  EXPECT_EQ(manifest.skills[0].source.bind, "style");
  EXPECT_EQ(manifest.skills[1].source.path, "skills/review");
  EXPECT_EQ(manifest.skills[2].source.path, "skills/x1");
  EXPECT_EQ(manifest.limits.memory_directory, 32u << 20);
  EXPECT_EQ(manifest.limits.memory_files, 200u);
  EXPECT_EQ(manifest.limits.cpus, 1.5);
  EXPECT_EQ(manifest.limits.disk, 512u << 20);
  EXPECT_EQ(manifest.limits.io, 2500000u);
  EXPECT_EQ(manifest.limits.network.connections, 1u);
  ASSERT_EQ(manifest.egress.size(), 11u);
  EXPECT_EQ(manifest.egress[0].host, "api.example.com");
  EXPECT_THAT(manifest.egress[0].ports, ElementsAre(443, 8443));
  EXPECT_THAT(manifest.egress[1].ports, ElementsAre(443, 80));
  EXPECT_THAT(manifest.egress[2].ports, ElementsAre(443));
  EXPECT_TRUE(manifest.egress[1].private_addresses);
  EXPECT_EQ(manifest.egress[4].protocol, "tcp");
  ASSERT_TRUE(manifest.egress[7].git.has_value());
  EXPECT_THAT(manifest.egress[7].git->push, ElementsAre("refs/heads/agent/**", "refs/tags/*"));
  EXPECT_TRUE(manifest.egress[7].git->deletes);
  EXPECT_THAT(manifest.egress[7].git->options, ElementsAre("ci.skip", "merge_request.title=*"));
  ASSERT_EQ(manifest.credentials.size(), 5u);
  EXPECT_EQ(manifest.credentials[0].length, 64u);
  EXPECT_EQ(manifest.credentials[2].scheme, "Token");
  EXPECT_TRUE(manifest.egress[8].plain_text);
  EXPECT_EQ(manifest.egress[8].placeholders_in_body, "own");
  EXPECT_EQ(manifest.egress[7].placeholders_in_body, "");
  EXPECT_TRUE(manifest.egress[9].ca.starts_with("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_EQ(manifest.credentials[0].on_alarm, "kill");
  EXPECT_EQ(manifest.credentials[1].on_alarm, "deny");
  EXPECT_EQ(manifest.credentials[4].key_id, "K4");
  EXPECT_EQ(manifest.credentials[4].session_token, "K5");
}

TEST(Load, YamlAndJsonOfOneMeaningAreOneManifest) {
  for (const char* name : {"due-diligence", "smallest"}) {
    Manifest yaml = good(std::string(name) + ".yaml"), json = good(std::string(name) + ".json");
    yaml.file = json.file = "x";
    EXPECT_EQ(codec::write_json_pretty(explain_json(yaml)), codec::write_json_pretty(explain_json(json)));
    EXPECT_EQ(yaml.environment, json.environment);
    ASSERT_EQ(yaml.entries.size(), json.entries.size());
    for (size_t i = 0; i < yaml.entries.size(); ++i)
      EXPECT_EQ(yaml.entries[i].content, json.entries[i].content);
  }
}

TEST(Load, AnOutputWithoutMaxIsCappedByTheResult) {
  const Manifest manifest =
      from("limits: {result: 7MiB}\nworkspace: {entries: {o: {type: dir, output: true}}}\n");
  EXPECT_EQ(manifest.entries[0].max_bytes, 7u << 20);
}

TEST(Load, TheFolderIsThatOfTheFile) {
  const std::string folder = folder_for_test();
  ASSERT_TRUE(write_file_atomic(folder + "/m.yaml", "firestop: 1\nname: t\n"));
  const auto loaded = load_file(folder + "/m.yaml");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->manifest.folder, std::filesystem::canonical(folder).string());
  ASSERT_TRUE(remove_tree(folder));
}

TEST(Load, AMissingFileIsAnErrorWithAHint) {
  const auto loaded = load_file("/nonexistent/firestop.yaml");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, "manifest.unreadable");
  EXPECT_THAT(loaded.error().hint, HasSubstr("firestop init"));
}

TEST(Load, ADocumentThatIsTooLargeIsAFault) {
  const auto loaded = load_text("m", std::string((1u << 20) + 1, '#'));
  ASSERT_EQ(loaded.faults.size(), 1u);
  EXPECT_EQ(loaded.faults[0].headline(), "m: the document has 1048577 bytes; expected at most 1MiB");
}

// Sources are looked at through their links: what leads out of the folder is refused before anything starts.
TEST(Load, SourcesDoNotLeaveTheFolderThroughLinks) {
  namespace fs = std::filesystem;
  const std::string top = folder_for_test(), folder = top + "/project";
  fs::create_directories(folder + "/inside");
  fs::create_directory(top + "/other");
  fs::create_directory_symlink("../other", folder + "/out");
  fs::create_directory_symlink("/etc", folder + "/etc");
  fs::create_directory_symlink("inside", folder + "/in");
  fs::create_symlink("loop", folder + "/loop");
  fs::create_symlink("nowhere", folder + "/dangling");
  const auto faults = [&](const std::string& source) {
    std::string out;
    for (const std::string& entry :
         {"{type: local_dir, src: " + source + "}", "{type: mount, source: {path: " + source + "}}",
          "{type: git_repo, repo: " + source + "}"}) {
      const auto loaded = load_text(folder + "/firestop.yaml",
                                    "firestop: 1\nname: t\nworkspace: {entries: {a: " + entry + "}}\n");
      out += loaded.faults.empty() ? "good " : loaded.faults[0].wrong + " ";
    }
    return out;
  };
  EXPECT_EQ(faults("inside"), "good good good ");
  EXPECT_EQ(faults("in"), "good good good ");
  EXPECT_EQ(faults("missing"), "good good good ");   // said when the run starts
  EXPECT_EQ(faults("dangling"), "good good good ");  // likewise
  const std::string out = "'out' leads out of the manifest's folder through a symbolic link ";
  EXPECT_EQ(faults("out"), out + out + out);
  EXPECT_THAT(faults("out/deeper"), HasSubstr("leads out"));
  EXPECT_THAT(faults("etc/passwd"), HasSubstr("leads out"));
  EXPECT_THAT(faults("loop"), HasSubstr("loop of symbolic links"));
  ASSERT_TRUE(remove_tree(top));
}

TEST(Load, FaultsOfALongKeyOrValueStayShort) {
  const std::string big(100000, 'x');
  for (const std::string& text :
       {"firestop: 1\nname: t\n" + big + ": 1\n", "firestop: 1\nname: " + big + "\n",
        "firestop: 1\nname: t\nlimits: {processes: " + std::string(100000, '9') + "}\n"}) {
    const auto loaded = load_text("m", text);
    ASSERT_FALSE(loaded.faults.empty());
    EXPECT_LT(render(loaded.faults, loaded.text).size(), 2000u);
  }
}

TEST(Load, TooManyEntriesImagesAndAccounts) {
  const auto first = [](const std::string& text) {
    const auto loaded = load_text("m", "firestop: 1\nname: t\nrun_as: agent\nworkspace:\n" + text);
    return loaded.faults.empty() ? "" : loaded.faults[0].wrong;
  };
  std::string entries = "  entries:\n", mounts = entries, users = "  users:\n    - {name: agent}\n";
  for (int i = 0; i < 1001; ++i) entries += "    e" + std::to_string(i) + ": {type: dir}\n";
  for (int i = 0; i < 16; ++i) mounts += "    m" + std::to_string(i) + ": {type: mount, source: {bind: b}}\n";
  for (int i = 0; i < 32; ++i) users += "    - {name: u" + std::to_string(i) + "}\n";
  EXPECT_EQ(first(entries), "has 1001 keys");
  EXPECT_EQ(first(mounts), "has 16 entries of type git_repo or mount");
  EXPECT_EQ(first(users), "has 33 items");
}

TEST(Load, HostileManifestsEndSoon) {
  const std::string head = "{\"firestop\": 1, \"name\": \"t\", ";
  std::string keys, users, groups, ports;
  for (int i = 0; i < 19000; ++i) {
    const std::string n = std::to_string(i);
    keys += ",\"kez" + n + std::string(40, 'x') + "\":1";
    ports += "," + n;
    groups += ",\"g" + n + "\"";
    if (i < 6000) users += ",{\"name\":\"u" + n + "\",\"groups\":[\"g" + n + "\"]}";
  }
  for (const auto& text :
       {head + "\"limits\":{" + keys.substr(1) + "}}",
        head + "\"workspace\":{\"users\":[" + users.substr(1) + "]}}",
        head + "\"workspace\":{\"users\":[{\"name\":\"a\",\"groups\":[" + groups.substr(1) + "]}]}}",
        head + "\"egress\":[{\"host\":\"a.example.com\",\"ports\":[" + ports.substr(1) + "]}]}"}) {
    ASSERT_LT(text.size(), 1u << 20) << "else it would be refused for its size";
    const auto loaded = load_text("m", text);
    EXPECT_FALSE(loaded.faults.empty());
    EXPECT_LE(loaded.faults.size(), 101u);
  }
}

TEST(Rules, Refs) {
  for (const char* ref : {"main", "refs/heads/a", "v1.0", "feature/x-1",
                          "0123456789abcdef0123456789abcdef01234567", "HEAD", "ä"})
    EXPECT_EQ(why_not_ref(ref), "") << ref;
  for (const char* ref :
       {"",  "-x", "a..b", "a b",  "a~1", "a^",   "a:b",    "a?",       "a*", "a[",    "a\\b", "a@{1}",
        "@", "/a", "a/",   "a//b", ".a",  "a/.b", "a.lock", "a.lock/b", "a.", "a\x7f", "a\n"})
    EXPECT_NE(why_not_ref(ref), "") << ref;
}

TEST(Rules, Hosts) {
  for (const char* host :
       {"example.com", "EXAMPLE.com.", "a-b.example.co.uk", "*.example.com", "**.example.com", "x1.2y.z3",
        "xn--bcher-kva.example", "_acme.example.com", "0x7f.example.com"})
    EXPECT_EQ(why_not_host(host), "") << host;
  for (const char* host : {"",
                           ".",
                           "*",
                           "**",
                           "*.com",
                           "**.com",
                           "com",
                           "*.*.example.com",
                           "a.*.com",
                           "a..b",
                           ".a.b",
                           "a.b..",
                           "-a.b",
                           "a-.b",
                           "a b.c",
                           "a.b/c",
                           "http://a.b",
                           "a.b:443",
                           "127.0.0.1",
                           "127.1",
                           "0x7f000001",
                           "0x7F.1",
                           "2130706433",
                           "1.2.3.4.5",
                           "a.0x",
                           "::1",
                           "[::1]",
                           "localhost",
                           "a.localhost",
                           "bücher.de",
                           "a\tb.c"})
    EXPECT_NE(why_not_host(host), "") << host;
  EXPECT_NE(why_not_host(std::string(64, 'a') + ".com"), "");
  EXPECT_EQ(canonical_host("EVIL.com."), "evil.com");
}

TEST(Rules, Networks) {
  for (const char* cidr : {"0.0.0.0/0", "93.184.216.34/32", "2606:2800:220::/48", "255.255.255.255/32"})
    EXPECT_EQ(read_cidr(cidr).why_not, "") << cidr;
  for (const char* cidr :
       {"", "/", "1.2.3.4", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/33", "1.2.3.4/024", "1.2.3.4/24",
        "01.2.3.4/32", "1.2.3/24", "::/129", "::1/64", "::ffff:1.2.3.4/128", "1.2.3.4/32 ", "1.2.3.4/+8"})
    EXPECT_NE(read_cidr(cidr).why_not, "") << cidr;
  for (const char* cidr : {"10.0.0.0/8", "127.0.0.1/32", "169.254.169.254/32", "100.64.0.0/10",
                           "198.18.0.0/15", "192.0.0.0/24", "224.0.0.0/4", "255.255.255.255/32", "::1/128",
                           "::/128", "fe80::/10", "fc00::/7", "64:ff9b::/96", "2001:db8::/32", "2002::/16"})
    EXPECT_FALSE(read_cidr(cidr).public_address) << cidr;
  for (const char* cidr : {"93.184.216.34/32", "172.32.0.0/16", "2606:2800:220::/48"})
    EXPECT_TRUE(read_cidr(cidr).public_address) << cidr;
}

TEST(Rules, NetworksOfWhichEachAddressNeedsItsOwnRule) {
  for (const char* cidr : {"127.0.0.0/8", "127.0.0.0/31", "169.254.0.0/16", "169.254.169.254/31",
                           "224.0.0.0/4", "fe80::/10", "fd00:ec2::/32", "::/127", "64:ff9b::/96"})
    EXPECT_NE(read_cidr(cidr).special, "") << cidr;
  for (const char* cidr :
       {"127.0.0.1/32", "169.254.169.254/32", "fd00:ec2::254/128", "10.0.0.0/8", "0.0.0.0/0", "::/0",
        "fc00::/7", "100.64.0.0/10", "93.184.216.0/24", "168.63.0.0/16"})
    EXPECT_EQ(read_cidr(cidr).special, "") << cidr;
}

TEST(Rules, PathsOfRequests) {
  for (const char* path : {"/", "/v1", "/v1/**", "/**/x", "/a*b/c", "/a%2Fb", "/a/"})
    EXPECT_EQ(why_not_request_path(path), "") << path;
  for (const char* path : {"", "v1", "/a/../b", "/a/%2E%2e/b", "/a/.%2e", "/a/..;/b", "//a", "/a//b", "/a?b",
                           "/a#b", "/a b", "/ä", "/a**", "/a\\b", "/./a"})
    EXPECT_NE(why_not_request_path(path), "") << path;
}

TEST(Needs, ARunThatCanBeGivenIsSupported) {
  EXPECT_TRUE(check_supported(from("capabilities: [shell, filesystem]\nidle: 1m\n")));
  EXPECT_TRUE(check_supported(from("egress: [{host: a.example.com}]\n")));
  for (const char* fewer :
       {"", "capabilities: []\n", "capabilities: [shell]\n", "capabilities: [filesystem]\n"})
    EXPECT_TRUE(check_supported(from(fewer))) << fewer;
}

TEST(Needs, WhatCannotBeEnforcedDoesNotStart) {
  const auto why = [](const std::string& rest) {
    const auto supported = check_supported(from(rest));
    if (supported) return std::string();
    EXPECT_EQ(supported.error().code, "manifest.unsupported");
    return supported.error().message;
  };
  const std::string both = "capabilities: [shell, filesystem]\n";
  EXPECT_THAT(why(both + "kind: verdict\n"), HasSubstr("verdict"));
  EXPECT_THAT(why(both + "image: oci:a@sha256:" + std::string(64, '0') + "\n"), HasSubstr("image"));
  EXPECT_THAT(why(both + "workspace: {entries: {r: {type: git_repo, host: a.example.com, repo: x}}}\n"),
              HasSubstr("r.host"));
  EXPECT_EQ(why("capabilities: [shell, skills, memory]\nskills: {a: {src: a}}\n"), "");
}

}  // namespace
}  // namespace firestop::manifest
