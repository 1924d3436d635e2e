#include "sandbox/plan.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "manifest/load.h"
#include "manifest/needs.h"
#include "sandbox/host_config.h"
#include "sandbox/operator_egress.h"
#include "sandbox/run_store.h"
#include "vmm/vmm.h"

namespace firestop::sandbox {
namespace {

using manifest::EntryType;

// Where a session's summary goes that comes back with the result, and how large it may be.
constexpr char kCompactionPath[] = ".firestop/compaction";
constexpr uint64_t kCompactionMax = 1ull << 20;
// What people are told and what the guest makes.
static_assert(std::string_view(manifest::kSkillsPath) == channel::kSkillsPath);
static_assert(std::string_view(manifest::kMemoryPath) == channel::kMemoryPath);
constexpr uint32_t kFirstGroupId = 2000;  // of declared groups; users' own groups equal their uids

std::string absolute(const std::string& path) {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer)) return buffer;
  if (!path.empty() && path[0] == '/') return path;
  return ::getcwd(buffer, sizeof buffer) ? join_path(buffer, path) : path;
}

bool is_directory(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

Result<void> check_binds(const manifest::Manifest& manifest,
                         const std::map<std::string, std::string>& given) {
  std::map<std::string, EntryType> wanted;
  for (const auto& entry : manifest.entries)
    if (!entry.source.bind.empty()) wanted.emplace(entry.source.bind, entry.type);
  for (const auto& skill : manifest.skills)
    if (!skill.source.bind.empty()) wanted.emplace(skill.source.bind, EntryType::kMount);
  for (const auto& [name, type] : wanted) {
    const auto bound = given.find(name);
    if (bound == given.end())
      return fail("usage.bind_missing", "the manifest names '" + name + "' and nothing is bound to it",
                  "add --bind " + name + "=PATH");
    struct stat st{};
    if (::stat(bound->second.c_str(), &st) != 0)
      return fail_errno("usage.bind_missing", "--bind " + name + "=" + bound->second);
    if (type != EntryType::kLocalFile && !S_ISDIR(st.st_mode))
      return fail("usage.bind_type", "--bind " + name + "=" + bound->second + " is not a directory");
  }
  for (const auto& [name, path] : given)
    if (!wanted.contains(name))
      return fail("usage.bind_unknown", "--bind " + name + ": the manifest names no such source",
                  "names in it: " + (wanted.empty() ? "none" : wanted.begin()->first));
  return {};
}

// The disks in the order in which the guest mounts them.
Result<std::vector<PlannedDisk>> plan_disks(const Plan& plan) {
  std::vector<PlannedDisk> disks;
  const auto add = [&](PlannedDisk disk) {
    disk.serial = "ro" + std::to_string(disks.size());
    disks.push_back(std::move(disk));
  };
  const bool plain = std::any_of(
      plan.manifest.entries.begin(), plan.manifest.entries.end(),
      [](const auto& entry) { return entry.type != EntryType::kGitRepo && entry.type != EntryType::kMount; });
  if (plain) add({PlannedDisk::Content::kEntries, {}, 0, {}, {}});
  for (size_t i = 0; i < plan.repositories.size(); ++i)
    add({PlannedDisk::Content::kRepository, {}, i, {}, plan.repositories[i].entry});
  for (const auto& entry : plan.manifest.entries) {
    if (entry.type != EntryType::kMount) continue;
    const std::string source = entry.source.bind.empty() ? join_path(plan.manifest.folder, entry.source.path)
                                                         : plan.binds.at(entry.source.bind);
    if (!is_directory(source))
      return fail("mount.not_a_directory", entry.path + ": " + source + " is not a directory");
    add({PlannedDisk::Content::kMount, {}, 0, source, entry.path});
  }
  if (!plan.manifest.skills.empty()) add({PlannedDisk::Content::kSkills, {}, 0, {}, channel::kSkillsPath});
  if (plan.manifest.capabilities.contains(manifest::Capability::kMemory))
    add({PlannedDisk::Content::kMemory, {}, 0, {}, channel::kMemoryPath});
  if (disks.size() > vmm::kMaxDisks)
    return fail("manifest.too_many_sources",
                "git_repo and mount entries need " + std::to_string(disks.size()) +
                    " disks; the machine has " + std::to_string(vmm::kMaxDisks),
                "put several folders below one and mount that");
  return disks;
}

Result<egress::ProcessConfig> plan_egress(const Plan& plan, const RunRequest& request) {
  egress::ProcessConfig out;
  out.guard.rules = plan.manifest.egress;
  out.guard.credentials = plan.manifest.credentials;
  out.guard.placeholders = credentials::make_placeholders(plan.manifest.credentials);
  out.connections = plan.manifest.limits.network.connections.value_or(out.connections);
  TRY_ASSIGN(const HostConfig config, load_host_config());
  TRY_ASSIGN(auto said, operator_egress(plan.manifest, config, request.connect_to, request.upstream_ca));
  out.guard.connect_to = std::move(said.connect_to);
  out.upstream_ca = std::move(said.upstream_ca);
  return out;
}

std::vector<uint32_t> group_ids(const manifest::Manifest& manifest, const manifest::User& user) {
  std::vector<uint32_t> ids;
  for (const auto& name : user.groups) {
    const auto place = std::find(manifest.groups.begin(), manifest.groups.end(), name);
    ids.push_back(kFirstGroupId + static_cast<uint32_t>(place - manifest.groups.begin()));
  }
  return ids;
}

// Git sends a password when a server asks for one: so that it finds the placeholder then, without being told.
void add_git_credentials(const Plan& plan, channel::Start& start) {
  constexpr char kFile[] = "/run/firestop/git-credentials";
  std::string lines, config;
  for (const auto& rule : plan.manifest.egress) {
    if (!rule.git || rule.credential.empty() || rule.host.find('*') != std::string::npos) continue;
    for (const auto& credential : plan.manifest.credentials)
      for (const auto& placeholder : plan.egress.guard.placeholders)
        if (credential.name == rule.credential && placeholder.credential == rule.credential &&
            credential.inject == "basic") {
          const std::string user = credential.user.empty() ? "x-access-token" : credential.user;
          lines += "https://" + user + ":" + placeholder.text + "@" + rule.host + "\n";
          config += "[credential \"https://" + rule.host + "\"]\n\thelper = store --file=" + kFile + "\n";
        }
  }
  if (lines.empty()) return;
  start.files.push_back({kFile, lines, 0600});
  start.files.push_back({"/etc/gitconfig", config, 0644});
}

}  // namespace

uint64_t container_memory(uint64_t machine_memory) {
  const uint64_t reserve = (48ull << 20) + machine_memory / 16;
  return machine_memory > reserve + (16ull << 20) ? machine_memory - reserve : 16ull << 20;
}

Result<Planned> make_plan(const RunRequest& request, const std::string& run_id) {
  Planned planned;
  TRY_ASSIGN(auto loaded, manifest::load_file(request.manifest_file));
  planned.text = loaded.text;
  if (!loaded.faults.empty()) {
    planned.faults = std::move(loaded.faults);
    return planned;
  }
  Plan& plan = planned.plan;
  plan.manifest = std::move(loaded.manifest);
  plan.manifest_text = std::move(loaded.text);
  TRY_ASSIGN(plan.seal, check_seal(plan.manifest, request.allowed_signers));
  TRY(manifest::check_supported(plan.manifest));
  plan.command = request.command.empty() ? plan.manifest.command : request.command;
  if (plan.command.empty())
    return fail("usage.no_command", "the manifest has no command, and none was given",
                "add one after --, as in: firestop run -- make test");
  plan.name =
      request.name.empty() ? plan.manifest.name + "-" + run_id.substr(run_id.rfind('-') + 1) : request.name;
  if (!RunStore::valid_name(plan.name))
    return fail("usage.bad_name", "'" + plan.name + "' can't be the name of a run",
                "lower-case letters, digits, '.', '_' and '-', at most 63 characters, beginning with a "
                "letter or digit");
  TRY_ASSIGN(plan.egress, plan_egress(plan, request));
  if (!plan.manifest.credentials.empty()) {
    TRY_ASSIGN(const auto bindings, credentials::load_bindings());
    TRY_ASSIGN(plan.bindings, credentials::bind_credentials(plan.manifest, bindings));
  }
  TRY(check_binds(plan.manifest, request.binds));
  for (const auto& [name, path] : request.binds) plan.binds[name] = absolute(path);
  plan.has_outputs = plan.manifest.capabilities.contains(manifest::Capability::kCompaction);
  for (const auto& entry : plan.manifest.entries) {
    if (entry.output) plan.has_outputs = true;
    if (entry.type != EntryType::kGitRepo) continue;
    TRY_ASSIGN(auto source, plan.seal.resolve(plan.manifest, entry));
    TRY(workspace::check_branch_free(source, plan.name));
    plan.repositories.push_back(std::move(source));
  }
  for (size_t i = 0; i < plan.repositories.size(); ++i)
    for (size_t j = i + 1; j < plan.repositories.size(); ++j)
      if (plan.repositories[i].git_dir == plan.repositories[j].git_dir)
        return fail("manifest.one_repository_twice",
                    plan.repositories[i].entry + " and " + plan.repositories[j].entry +
                        " are the same repository, and both would come back as branch agent/" + plan.name,
                    "keep one of the entries");
  TRY_ASSIGN(plan.disks, plan_disks(plan));
  plan.out_directory = request.out_directory.empty()
                           ? join_path(plan.manifest.folder, "firestop-out/" + plan.name)
                           : absolute(request.out_directory);
  if (plan.has_outputs && exists(plan.out_directory))
    return fail("usage.out_exists", plan.out_directory + " exists, and nothing is overwritten",
                "choose another --name or --out, or remove it");
  return planned;
}

channel::Start make_start(const Plan& plan, std::string seccomp) {
  const auto& manifest = plan.manifest;
  channel::Start start;
  start.seed = random_bytes(64);
  start.hostname = plan.name;
  size_t repository = 0, mount = 0;
  std::vector<const manifest::Entry*> mounts;
  for (const auto& entry : manifest.entries) {
    if (entry.type == EntryType::kMount) mounts.push_back(&entry);
    if (entry.output) start.outputs.push_back({entry.path, entry.max_bytes});
  }
  if (manifest.capabilities.contains(manifest::Capability::kCompaction))
    start.outputs.push_back({kCompactionPath, kCompactionMax});
  for (const auto& disk : plan.disks) {
    switch (disk.content) {
      case PlannedDisk::Content::kEntries:
        start.entries_serial = disk.serial;
        break;
      case PlannedDisk::Content::kRepository: {
        const auto& source = plan.repositories[repository++];
        start.repositories.push_back({source.entry, disk.serial, source.commit});
        break;
      }
      case PlannedDisk::Content::kMount:
        start.mounts.push_back({mounts[mount++]->path, disk.serial});
        break;
      case PlannedDisk::Content::kSkills:
        start.mounts.push_back({channel::kSkillsPath, disk.serial});
        break;
      case PlannedDisk::Content::kMemory:
        start.memory.push_back({channel::kMemoryPath, disk.serial, manifest.limits.memory_directory,
                                manifest.limits.memory_files});
        break;
    }
  }
  for (const auto& user : manifest.users) {
    const uint32_t uid = manifest.uid_of(user.name);
    start.accounts.push_back({user.name, uid, uid, group_ids(manifest, user)});
  }
  for (size_t i = 0; i < manifest.groups.size(); ++i)
    start.groups.push_back({manifest.groups[i], kFirstGroupId + static_cast<uint32_t>(i)});
  start.run_as = manifest.run_as;
  for (const auto& [name, value] : manifest.environment) start.environment.push_back(name + "=" + value);
  // What stands for the credentials; their values are in no message.
  for (const auto& placeholder : plan.egress.guard.placeholders)
    if (!placeholder.variable.empty())
      start.environment.push_back(placeholder.variable + "=" + placeholder.text);
  add_git_credentials(plan, start);
  for (const auto capability : manifest.capabilities)
    start.capabilities.push_back(manifest::to_string(capability));
  start.seccomp = std::move(seccomp);
  start.memory_max = container_memory(manifest.limits.memory);
  start.processes_max = manifest.limits.processes;
  start.open_files_max = manifest.limits.open_files;
  start.cpus = manifest.limits.cpus;
  return start;
}

}  // namespace firestop::sandbox
