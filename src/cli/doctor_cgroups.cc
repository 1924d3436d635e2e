// Which control groups this process could use: the caps that hold QEMU itself, beside those in the guest.
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/path.h"
#include "cli/doctor_checks.h"

namespace firestop::cli {
namespace {

constexpr uint64_t kFileLimit = 1u << 20;
constexpr const char* kMeaning =
    "a machine's memory, processors and disk are capped by QEMU and by the guest's kernel; no control group "
    "caps QEMU as a whole";
constexpr const char* kMend =
    "run it in a scope of its own: systemd-run --user --scope -p Delegate=yes firestop run";

std::string text_of(const std::string& path) {
  return read_file(path, kFileLimit).value_or("");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// The controllers of `available` that caps would use, in one order.
std::string useful(const std::string& available) {
  std::string out;
  const std::string padded = " " + available + " ";
  for (const std::string name : {"cpu", "memory", "pids", "io"})
    if (padded.find(" " + name + " ") != std::string::npos) out += (out.empty() ? "" : " ") + name;
  return out;
}

// The path of our group in the v2 hierarchy, "/user.slice/...": the line that begins with "0::".
std::string own_group(const std::string& root) {
  for (const auto& line : lines_of(text_of(root + "/proc/self/cgroup")))
    if (line.starts_with("0::/")) return line.substr(3);
  return "/";
}

Check unified(const std::string& root) {
  Check check{"cgroups", "control groups", Health::kOk, "", "", ""};
  const std::string group = own_group(root);
  const std::string directory = root + "/sys/fs/cgroup" + (group == "/" ? "" : group);
  std::string available = text_of(directory + "/cgroup.controllers");
  while (available.ends_with('\n')) available.pop_back();
  const std::string controllers = useful(available);
  const bool delegated = ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0 &&
                         ::access((directory + "/cgroup.subtree_control").c_str(), W_OK) == 0;
  check.found = "v2, " + std::string(delegated ? "delegated to us" : "not delegated to us") +
                ", controllers: " + (controllers.empty() ? "none" : controllers);
  if (delegated && controllers.find("memory") != std::string::npos) return check;
  check.health = Health::kDegraded;
  check.meaning = kMeaning;
  check.mend = kMend;
  return check;
}

}  // namespace

Check check_cgroups(const std::string& root) {
  Check check{"cgroups", "control groups", Health::kDegraded,
              "",        kMeaning,         "use a host with control groups v2, such as Debian 12's default"};
  const std::string mount = root + "/sys/fs/cgroup";
  std::string v2 = text_of(mount + "/cgroup.controllers");
  if (exists(mount + "/cgroup.controllers") && !useful(v2.substr(0, v2.find('\n'))).empty())
    return unified(root);
  std::string v1;
  for (const std::string name : {"cpu", "memory", "pids", "blkio"})
    if (exists(join_path(mount, name))) v1 += (v1.empty() ? "" : " ") + name;
  if (!v1.empty()) {
    const bool ours = ::access(join_path(mount, "memory").c_str(), W_OK) == 0;
    check.found = "v1, " + std::string(ours ? "ours to use" : "for root only") + ", controllers: " + v1;
    if (ours) return Check{"cgroups", "control groups", Health::kOk, check.found, "", ""};
  } else if (exists(mount + "/cgroup.controllers")) {
    check.found = "v2 without any controller";
  } else {
    check.found = "none";
  }
  return check;
}

}  // namespace firestop::cli
