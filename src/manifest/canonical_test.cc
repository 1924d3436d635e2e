#include "manifest/canonical.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/digest.h"
#include "codec/json.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

constexpr const char* kYaml = R"(# a comment
firestop: 1
name: due-diligence
description: Read the data room.
rating: 90m
idle: 10m
image: agent-base
workspace:
  entries:
    repo: {type: git_repo, repo: ".", ref: main, depth: 5}
    notes.md: {type: file, content: "Start with \"2025\".\n", permissions: "0640", owner: analyst, group: readers}
    template: {type: local_dir, src: template}
    rooms: {type: mount, source: {bind: dataroom}}
    report: {type: dir, output: true, max: 50MiB}
  environment: {LANG: C.UTF-8, A: ""}
  users: [{name: analyst, groups: [readers]}, {name: helper}]
  groups: [{name: readers}]
run_as: analyst
command: [./repo/agent.sh, --fast]
capabilities: [filesystem, shell, skills]
skills: {review: {src: skills/review}, style: {source: {bind: style}}}
limits: {cpus: 1.5, memory: 512MiB, io: 50MiB/s, network: {bytes: 200MiB, rate: 20Mbit/s, connections: 64}}
egress:
  - {host: api.example.com, methods: [GET, POST], paths: [/v1/**], credential: model}
  - {host: git.example.com, git: {repository: acme/widget, fetch: true, push: ["refs/heads/agent/**"]},
     credential: forge}
  - {cidr: 10.0.0.0/8, ports: [5432], private: true}
credentials:
  model: {env: API_KEY, inject: bearer}
  forge: {env: GIT_TOKEN, inject: basic, user: x-access-token}
)";

// The same, said otherwise: JSON, other orders of keys, other spellings of the same quantities.
constexpr const char* kJson = R"({
"credentials": {"forge": {"user": "x-access-token", "inject": "basic", "env": "GIT_TOKEN"},
                "model": {"inject": "bearer", "env": "API_KEY"}},
"egress": [
  {"credential": "model", "paths": ["/v1/**"], "methods": ["GET", "POST"], "host": "API.example.com.", "ports": [443, 80]},
  {"credential": "forge", "host": "git.example.com",
   "git": {"push": ["refs/heads/agent/**"], "fetch": true, "repository": "acme/widget"}},
  {"private": true, "port": 5432, "cidr": "10.0.0.0/8", "protocol": "tcp"}],
"limits": {"network": {"connections": 64, "rate": "20Mbit/s", "bytes": "200MiB"}, "io": "50MiB/s",
           "memory": "0.5GiB", "disk": "4GiB", "cpus": 1.5},
"skills": {"style": {"source": {"bind": "style"}}, "review": {"source": {"path": "skills/review"}}},
"capabilities": ["skills", "shell", "filesystem"],
"command": ["./repo/agent.sh", "--fast"], "run_as": "analyst",
"workspace": {"groups": [{"name": "readers"}],
  "users": [{"groups": ["readers"], "name": "analyst"}, {"name": "helper"}],
  "environment": {"A": "", "LANG": "C.UTF-8"},
  "entries": {
    "report": {"max": "51200KiB", "output": true, "type": "dir"},
    "rooms": {"read_only": true, "source": {"bind": "dataroom"}, "type": "mount"},
    "template": {"source": {"path": "template"}, "type": "local_dir"},
    "notes.md": {"group": "readers", "owner": "analyst", "permissions": "640", "type": "file",
                 "content": "Start with \u00222025\u0022.\n"},
    "repo": {"depth": 5, "ref": "main", "repo": ".", "type": "git_repo"}}},
"image": "agent-base", "idle": "600s", "rating": "1h30m", "description": "Read the data room.",
"kind": "run", "name": "due-diligence", "firestop": 1})";

Manifest load(std::string_view text, const std::string& file = "/nonexistent/firestop.yaml") {
  auto loaded = load_text(file, text);
  EXPECT_EQ(render(loaded.faults, loaded.text), "");
  return std::move(loaded.manifest);
}

Lock some_lock() {
  Lock lock;
  lock.repositories["repo"] = {"main", std::string(40, 'a'), "sha1"};
  lock.recipe = "agent-base";
  lock.image_digest = std::string(64, 'b');
  return lock;
}

std::string canonical(const Manifest& manifest, const Lock* lock = nullptr) {
  auto text = canonical_json(manifest, lock);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

// Signatures that people hold depend on every byte of this.
TEST(Canonical, SmallManifestInFull) {
  const auto manifest = load("firestop: 1\nname: tidy\ncommand: [make, test]\n");
  EXPECT_EQ(
      canonical(manifest),
      R"({"lock":null,"manifest":{"capabilities":[],"command":["make","test"],"credentials":{},)"
      R"("description":"","egress":[],"entries":{},"environment":{},"firestop":1,"groups":[],"idle_ms":null,)"
      R"("image":{"recipe":"agent-base"},"kind":"run","limits":{"cpus":1,"disk":4294967296,"io":null,)"
      R"("memory":1073741824,"memory_directory":16777216,"memory_files":1000,"network":{"bytes":null,"connections":null,"rate":null},"open_files":4096,)"
      R"("output":67108864,"processes":512,"result":268435456,"result_files":100000},"name":"tidy",)"
      R"("rating_ms":3600000,"run_as":"agent","skills":{},"users":[{"name":"agent"}]}})");
}

TEST(Canonical, DigestsStayWhatTheyAre) {
  const auto manifest = load(kYaml);
  const auto lock = some_lock();
  EXPECT_EQ(canonical_digest(manifest, nullptr).value(), sha256_hex(canonical(manifest)));
  EXPECT_EQ(canonical_digest(manifest, nullptr).value(),
            "c27db92ed6c66a20f2dbc74b62bafcc4100deb62fccaec3342348abcf48d7cec");
  EXPECT_EQ(canonical_digest(manifest, &lock).value(),
            "f2b69c884a3a5d1b70fbfb5ecbad5f4cacd53850f3c63ef2526195b51b973abc");
}

TEST(Canonical, YamlAndJsonInAnyOrderAreOneText) {
  EXPECT_EQ(canonical(load(kYaml)), canonical(load(kJson)));
}

TEST(Canonical, FileAndFolderSayNothing) {
  EXPECT_EQ(canonical(load(kYaml)), canonical(load(kYaml, "/tmp/other.yaml")));
}

TEST(Canonical, ADefaultIsAsGoodAsItsValueDeclared) {
  const std::string small = "firestop: 1\nname: tidy\ncommand: [make]\n";
  EXPECT_EQ(
      canonical(load(small)),
      canonical(load(small + "rating: 1h\nkind: run\nimage: agent-base\nlimits: {cpus: 1, memory: 1GiB}\n"
                             "workspace: {users: [{name: agent}]}\nrun_as: agent\n")));
}

TEST(Canonical, IsStrictJsonAndItsOwnCanonicalForm) {
  const auto lock = some_lock();
  const std::string text = canonical(load(kYaml), &lock);
  const auto parsed = codec::parse_json(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(codec::write_canonical_json(*parsed).value(), text);
}

TEST(Canonical, ContentThatIsNoTextIsKept) {
  auto manifest = load(kYaml);
  std::string before = canonical(manifest);
  manifest.entries[0].content = "\xff\xfe";
  const auto one = canonical(manifest);
  EXPECT_NE(one.find(R"("content_base64":"//4=")"), std::string::npos);
  manifest.entries[0].content = "//4=";
  EXPECT_NE(canonical(manifest), one);
}

struct Change {
  const char* name;
  std::function<void(Manifest&)> make;
};

Entry& entry(Manifest& manifest, const std::string& path) {
  for (auto& each : manifest.entries)
    if (each.path == path) return each;
  ADD_FAILURE() << "no entry " << path;
  return manifest.entries.front();
}

// One change a field. The structured bindings in canonical.cc see to it that no field is forgotten there;
// here each is shown to matter.
std::vector<Change> changes() {
  using M = Manifest;
  return {
      {"kind", [](M& m) { m.kind = Kind::kVerdict; }},
      {"name", [](M& m) { m.name += "x"; }},
      {"description", [](M& m) { m.description += "."; }},
      {"rating", [](M& m) { m.rating += std::chrono::milliseconds(1); }},
      {"idle", [](M& m) { *m.idle += std::chrono::milliseconds(1); }},
      {"no idle", [](M& m) { m.idle.reset(); }},
      {"image", [](M& m) { m.image.recipe = "other"; }},
      {"oci", [](M& m) { m.image = {"", "agent-base"}; }},
      {"entry gone", [](M& m) { m.entries.pop_back(); }},
      {"entry path", [](M& m) { entry(m, "repo").path = "repo2"; }},
      {"entry type", [](M& m) { entry(m, "template").type = EntryType::kLocalFile; }},
      {"repo", [](M& m) { entry(m, "repo").repo = "sub"; }},
      {"host", [](M& m) { entry(m, "repo").host = "git.example.com"; }},
      {"ref", [](M& m) { entry(m, "repo").ref = "mainx"; }},
      {"no ref", [](M& m) { entry(m, "repo").ref.clear(); }},
      {"depth", [](M& m) { entry(m, "repo").depth = 6; }},
      {"no depth", [](M& m) { entry(m, "repo").depth.reset(); }},
      {"content", [](M& m) { entry(m, "notes.md").content += " "; }},
      {"no content", [](M& m) { entry(m, "notes.md").content.clear(); }},
      {"NUL in content", [](M& m) { entry(m, "notes.md").content += '\0'; }},
      {"source path", [](M& m) { entry(m, "template").source.path += "x"; }},
      {"path to bind", [](M& m) { entry(m, "template").source = {"", "template"}; }},
      {"bind", [](M& m) { entry(m, "rooms").source.bind += "x"; }},
      {"bind to path", [](M& m) { entry(m, "rooms").source = {"dataroom", ""}; }},
      {"output", [](M& m) { entry(m, "report").output = false; }},
      {"max", [](M& m) { entry(m, "report").max_bytes += 1; }},
      {"permissions", [](M& m) { entry(m, "notes.md").permissions = 0644; }},
      {"no permissions", [](M& m) { entry(m, "notes.md").permissions = 0; }},
      {"owner", [](M& m) { entry(m, "notes.md").owner = "helper"; }},
      {"group", [](M& m) { entry(m, "notes.md").group = "helper"; }},
      {"owner and group", [](M& m) { std::swap(entry(m, "notes.md").owner, entry(m, "notes.md").group); }},
      {"variable", [](M& m) { m.environment["A"] = "b"; }},
      {"empty variable gone", [](M& m) { m.environment.erase("A"); }},
      {"new variable", [](M& m) { m.environment["B"] = ""; }},
      {"order of users, which is their ids", [](M& m) { std::swap(m.users[0], m.users[1]); }},
      {"user's groups", [](M& m) { m.users[0].groups.clear(); }},
      {"groups", [](M& m) { m.groups.push_back("more"); }},
      {"run_as", [](M& m) { m.run_as = "helper"; }},
      {"word", [](M& m) { m.command[1] = "--slow"; }},
      {"words joined", [](M& m) { m.command = {"./repo/agent.sh --fast"}; }},
      {"empty word", [](M& m) { m.command.push_back(""); }},
      {"no command", [](M& m) { m.command.clear(); }},
      {"capability granted", [](M& m) { m.capabilities.insert(Capability::kMemory); }},
      {"capability taken", [](M& m) { m.capabilities.erase(Capability::kShell); }},
      {"skill gone", [](M& m) { m.skills.pop_back(); }},
      {"skill more", [](M& m) { m.skills.push_back({"x", {}, {"x", ""}}); }},
      {"skill's name", [](M& m) { m.skills[0].name = "reviews"; }},
      {"skill's path", [](M& m) { m.skills[0].source.path += "x"; }},
      {"skill's path to bind", [](M& m) { m.skills[0].source = {"", "skills/review"}; }},
      {"skill's bind", [](M& m) { m.skills[1].source.bind += "x"; }},
      {"memory directory", [](M& m) { m.limits.memory_directory += 1; }},
      {"memory files", [](M& m) { m.limits.memory_files += 1; }},
      {"cpus", [](M& m) { m.limits.cpus = 1.25; }},
      {"memory", [](M& m) { m.limits.memory += 1; }},
      {"disk", [](M& m) { m.limits.disk += 1; }},
      {"io", [](M& m) { *m.limits.io += 1; }},
      {"no io", [](M& m) { m.limits.io.reset(); }},
      {"processes", [](M& m) { m.limits.processes += 1; }},
      {"open_files", [](M& m) { m.limits.open_files += 1; }},
      {"limits.output", [](M& m) { m.limits.output += 1; }},
      {"result", [](M& m) { m.limits.result += 1; }},
      {"result_files", [](M& m) { m.limits.result_files += 1; }},
      {"network bytes", [](M& m) { *m.limits.network.bytes += 1; }},
      {"network bytes gone", [](M& m) { m.limits.network.bytes.reset(); }},
      {"network bytes none", [](M& m) { m.limits.network.bytes = 0; }},
      {"network rate", [](M& m) { *m.limits.network.rate += 1; }},
      {"connections", [](M& m) { *m.limits.network.connections += 1; }},
      {"rule gone", [](M& m) { m.egress.pop_back(); }},
      {"rules in another order", [](M& m) { std::swap(m.egress[0], m.egress[1]); }},
      {"rule host", [](M& m) { m.egress[0].host = "*.example.com"; }},
      {"host to cidr", [](M& m) { std::swap(m.egress[0].host, m.egress[0].cidr); }},
      {"cidr", [](M& m) { m.egress[2].cidr = "10.0.0.0/7"; }},
      {"ports", [](M& m) { m.egress[2].ports.push_back(80); }},
      {"methods", [](M& m) { m.egress[0].methods.push_back("DELETE"); }},
      {"any method", [](M& m) { m.egress[0].methods.clear(); }},
      {"paths", [](M& m) { m.egress[0].paths[0] = "/**"; }},
      {"any path", [](M& m) { m.egress[0].paths.clear(); }},
      {"protocol", [](M& m) { m.egress[0].protocol = "tls"; }},
      {"private", [](M& m) { m.egress[0].private_addresses = true; }},
      {"websocket", [](M& m) { m.egress[0].websocket = true; }},
      {"placeholders_in_body", [](M& m) { m.egress[0].placeholders_in_body = "own"; }},
      {"plain_text", [](M& m) { m.egress[0].plain_text = true; }},
      {"ca", [](M& m) { m.egress[0].ca = "x"; }},
      {"rule's credential", [](M& m) { m.egress[0].credential = "forge"; }},
      {"no credential", [](M& m) { m.egress[0].credential.clear(); }},
      {"git gone", [](M& m) { m.egress[1].git.reset(); }},
      {"git of nothing", [](M& m) { m.egress[0].git = EgressRule::Git(); }},
      {"git repository", [](M& m) { m.egress[1].git->repository = "acme/other"; }},
      {"fetch", [](M& m) { m.egress[1].git->fetch = false; }},
      {"delete", [](M& m) { m.egress[1].git->deletes = true; }},
      {"push options", [](M& m) { m.egress[1].git->options = {"ci.skip"}; }},
      {"push", [](M& m) { m.egress[1].git->push[0] = "refs/heads/**"; }},
      {"credential gone", [](M& m) { m.credentials.pop_back(); }},
      {"credential name", [](M& m) { m.credentials[0].name = "x"; }},
      {"credential env", [](M& m) { m.credentials[0].env = "X"; }},
      {"inject", [](M& m) { m.credentials[0].inject = "basic"; }},
      {"credential user", [](M& m) { m.credentials[0].user += "x"; }},
      {"header", [](M& m) { m.credentials[0].header = "X-Key"; }},
      {"query", [](M& m) { m.credentials[0].query = "key"; }},
      {"scheme", [](M& m) { m.credentials[0].scheme = "Token"; }},
      {"session token", [](M& m) { m.credentials[0].session_token = "Token"; }},
      {"key id", [](M& m) { m.credentials[0].key_id = "Token"; }},
      {"prefix", [](M& m) { m.credentials[0].prefix = "Token"; }},
      {"on_alarm", [](M& m) { m.credentials[0].on_alarm = "kill"; }},
      {"length", [](M& m) { m.credentials[0].length = 40; }},
  };
}

TEST(Canonical, EveryChangeThatMattersIsSeen) {
  const auto manifest = load(kYaml);
  std::map<std::string, std::string> seen{{canonical(manifest), "the original"}};
  for (const auto& change : changes()) {
    auto changed = manifest;
    change.make(changed);
    const auto [place, fresh] = seen.emplace(canonical(changed), change.name);
    EXPECT_TRUE(fresh) << change.name << " cannot be told from " << place->second;
  }
}

TEST(Canonical, EveryChangeOfTheLockIsSeen) {
  const auto manifest = load(kYaml);
  const auto lock = some_lock();
  std::map<std::string, std::string> seen{{canonical(manifest), "no lock"},
                                          {canonical(manifest, &lock), "the lock"}};
  const std::pair<const char*, std::function<void(Lock&)>> lock_changes[] = {
      {"commit", [](Lock& l) { l.repositories["repo"].commit[39] = 'b'; }},
      {"ref", [](Lock& l) { l.repositories["repo"].ref = ""; }},
      {"format", [](Lock& l) { l.repositories["repo"].object_format = "sha256"; }},
      {"repository gone", [](Lock& l) { l.repositories.clear(); }},
      {"repository added", [](Lock& l) { l.repositories["b"] = l.repositories["repo"]; }},
      {"digest", [](Lock& l) { l.image_digest[0] = 'c'; }},
      {"recipe", [](Lock& l) { l.recipe = "other"; }},
      {"no image", [](Lock& l) { l.recipe.clear(); }},
  };
  for (const auto& [name, make] : lock_changes) {
    auto changed = lock;
    make(changed);
    EXPECT_TRUE(seen.emplace(canonical(manifest, &changed), name).second) << name;
  }
}

}  // namespace
}  // namespace firestop::manifest
