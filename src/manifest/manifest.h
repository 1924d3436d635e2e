// The manifest as typed values: what a document that passed every check says. docs/manifest.md has the
// fields for people, schema/manifest.schema.json for editors.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace firestop::manifest {

enum class Kind { kRun, kVerdict };

enum class EntryType { kGitRepo, kFile, kDir, kLocalFile, kLocalDir, kMount };

// Where an entry's bytes come from: a path below the manifest's folder, or a name bound at run time.
struct Source {
  std::string path;  // one of the two is empty
  std::string bind;
};

struct Entry {
  std::string path;  // normal form, relative to the workspace root; unique
  EntryType type{};
  Position where;

  // git_repo
  std::string repo;               // "." or a path below the manifest's folder, or, with host, its path there
  std::string host;               // "" means local
  std::string ref;                // branch, tag or commit; "" means HEAD
  std::optional<uint32_t> depth;  // commits of history; nullopt means whole
  std::string content;            // file: its bytes
  Source source;                  // local_file, local_dir, mount
  bool output = false;            // dir: comes back after the run
  uint64_t max_bytes = 0;         // dir with output: the most that comes back
  uint32_t permissions = 0;       // 0: as the source has them, else the nine permission bits
  std::string owner, group;       // "" means run_as and its group
};

struct User {
  std::string name;
  std::vector<std::string> groups;  // supplementary, each declared
};

// Where skills are, and what is kept between runs; below the workspace.
inline constexpr char kSkillsPath[] = ".skills";
inline constexpr char kMemoryPath[] = ".memory";

// A folder that is there to read, as .skills/NAME of the workspace.
struct Skill {
  std::string name;
  Position where;
  Source source;
};

enum class Capability { kShell, kFilesystem, kSkills, kMemory, kCompaction };

struct NetworkLimits {
  std::optional<uint64_t> bytes;
  std::optional<uint64_t> rate;  // bytes a second
  std::optional<uint32_t> connections;
};

struct Limits {  // the defaults are in force when the manifest is silent
  double cpus = 1;
  uint64_t memory = 1ull << 30;  // bytes of the guest's memory
  uint64_t disk = 4ull << 30;    // bytes the sandbox may write to its disk
  std::optional<uint64_t> io;    // bytes a second, reading plus writing
  uint32_t processes = 512;
  uint32_t open_files = 4096;
  uint64_t output = 64ull << 20;   // bytes of stdout plus stderr
  uint64_t result = 256ull << 20;  // bytes that come back, commits and outputs together
  uint32_t result_files = 100000;
  uint64_t memory_directory = 16ull << 20;  // bytes that capability `memory` keeps for the next run
  uint32_t memory_files = 1000;             // files and folders of them
  NetworkLimits network;
};

struct EgressRule {
  Position where;
  std::string name;    // "egress[2]", of a preset "egress[2].npm[0]"
  std::string preset;  // that it comes from, or ""
  std::string host, cidr;
  std::vector<uint16_t> ports;
  std::vector<std::string> methods, paths;
  std::string protocol;  // "http", "tls", "tcp"
  bool private_addresses = false;
  bool websocket = false;
  bool plain_text = false;  // the credential goes into requests over http:// too
  std::string ca;           // PEM: trusted for these hosts besides the host's own store; "" means no other
  std::string credential;
  std::string placeholders_in_body;  // that may stand in bodies of these requests: "" none, "own", "all"
  struct Git {
    std::string repository;
    bool fetch = false;
    std::vector<std::string> push;     // patterns of refs
    bool deletes = false;              // whether these may also be deleted
    std::vector<std::string> options;  // push options: a text, or its beginning and "*"
  };
  std::optional<Git> git;
};

struct Credential {
  Position where;
  std::string name, env, inject, user, header, query;
  std::string scheme;             // header: what stands before the value, "Token" in "Token VALUE"
  std::string key_id;             // sigv4: the variable with the placeholder of the access key's id
  std::string session_token;      // sigv4: the variable with the placeholder of temporary keys' token, or ""
  std::string prefix;             // what the placeholder begins with
  uint32_t length = 0;            // characters of the placeholder; 0 means as many as fit
  std::string on_alarm = "deny";  // when a placeholder is about to leave elsewhere: "deny", "freeze", "kill"
};

struct Image {
  std::string recipe;  // a name in images/, or
  std::string oci;     // "NAME@sha256:..."
};

struct Manifest {
  std::string file;    // as given on the command line
  std::string folder;  // absolute path of the folder it lies in
  Kind kind = Kind::kRun;
  std::string name, description;
  std::chrono::milliseconds rating{3600000};
  std::optional<std::chrono::milliseconds> idle;
  Image image;
  std::vector<Entry> entries;  // sorted by path
  std::map<std::string, std::string> environment;
  std::vector<User> users;  // the first has uid 1000, the next 1001, ...
  std::vector<std::string> groups;
  std::string run_as;                // declared in users; "agent" if the manifest declares nobody
  std::vector<std::string> command;  // may be empty: then the command line must bring one
  std::set<Capability> capabilities;
  std::vector<Skill> skills;  // sorted by name; some if, and only if, capability `skills` is granted
  Limits limits;
  std::vector<EgressRule> egress;              // presets expanded
  std::map<std::string, std::string> presets;  // that it names: SHA-256 of each one's text
  std::vector<Credential> credentials;
  // Fields that the document sets where a default exists: "rating", "image", "run_as", "command",
  // "capabilities", "limits.memory", ...
  std::set<std::string> declared;

  uint32_t uid_of(const std::string& user) const;  // 1000 + place in `users`
};

const char* to_string(EntryType type);
const char* to_string(Capability capability);

}  // namespace firestop::manifest
