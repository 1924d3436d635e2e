// The checks as rules over what was found, which is handed in.
#include <cstdio>
#include <cstdlib>

#include "base/units.h"
#include "cli/doctor_checks.h"

namespace firestop::cli {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kGiB = 1u << 30;

Check ok(std::string id, std::string title, std::string found) {
  return {std::move(id), std::move(title), Health::kOk, std::move(found), "", ""};
}

}  // namespace

const char* to_string(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kDegraded:
      return "degraded";
    case Health::kMissing:
      return "missing";
  }
  return "?";
}

Check check_qemu_version(const std::string& program, const std::string& version_text) {
  const size_t at = version_text.find("version ");
  unsigned major = 0, minor = 0;
  if (at == std::string::npos || std::sscanf(version_text.c_str() + at, "version %u.%u", &major, &minor) != 2)
    return {"qemu",
            "QEMU",
            Health::kMissing,
            program + " does not tell its version",
            "no machine can be started",
            "sudo apt-get install --reinstall qemu-system-x86"};
  const std::string found = program + ", " + version_text.substr(at);
  if (major < 7)
    return {"qemu",
            "QEMU",
            Health::kDegraded,
            found,
            "Firestop is tested with 7.2 and later",
            "use a later QEMU, such as Debian 12's"};
  return ok("qemu", "QEMU", found);
}

Check check_subordinate_ids(const std::string& user, uint32_t uid, std::string_view subuid,
                            std::string_view subgid, bool has_newuidmap) {
  Check check = ok("subids", "subordinate ids", "not needed by root");
  if (uid == 0) return check;
  const auto has_line = [&](std::string_view text) {
    for (const std::string& who : {user, std::to_string(uid)}) {
      if (who.empty()) continue;
      if (text.starts_with(who + ":") || text.find("\n" + who + ":") != std::string_view::npos) return true;
    }
    return false;
  };
  check.found = user + " has ranges in /etc/subuid and /etc/subgid";
  if (has_newuidmap && has_line(subuid) && has_line(subgid)) return check;
  check.health = Health::kDegraded;
  check.meaning = "images cannot be built by this account";
  if (!has_newuidmap) {
    check.found = "there is no newuidmap or newgidmap in PATH";
    check.mend = "sudo apt-get install uidmap";
  } else {
    check.found = user + " has no range in /etc/subuid or /etc/subgid";
    check.mend = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + user;
  }
  return check;
}

Check check_memory(std::string_view meminfo) {
  constexpr std::string_view kField = "MemAvailable:";
  const size_t at = meminfo.find(kField);
  uint64_t kib = 0;
  if (at != std::string_view::npos) {
    const std::string rest(meminfo.substr(at + kField.size(), 32));
    kib = std::strtoull(rest.c_str(), nullptr, 10);
  }
  Check check = ok("memory", "memory", format_bytes(kib / 1024 * kMiB) + " available");
  if (kib * 1024 >= 2 * kGiB) return check;
  check.health = Health::kDegraded;
  check.meaning = "machines of the default size, 1GiB, may not fit";
  check.mend = "end something else, or set limits.memory in the manifest to less";
  return check;
}

Check check_disk(const std::string& id, const std::string& title, const std::string& directory,
                 uint64_t available, bool writable) {
  Check check = ok(id, title, directory + ": " + format_bytes(available / kMiB * kMiB) + " free");
  if (!writable) {
    check.health = Health::kMissing;
    check.found = directory + " cannot be written";
    check.meaning = "nothing can be kept there";
    check.mend = "make it writable, or set " +
                 std::string(id == "cache_disk" ? "XDG_CACHE_HOME" : "XDG_STATE_HOME") +
                 " to a folder that is";
  } else if (available < 2 * kGiB) {
    check.health = available < 256 * kMiB ? Health::kMissing : Health::kDegraded;
    check.meaning = "an image takes some 500MiB; a run takes what its sandbox writes, up to limits.disk";
    check.mend = "make room: `firestop image prune`, `firestop rm --ended`";
  }
  return check;
}

}  // namespace firestop::cli
