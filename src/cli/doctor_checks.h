// What a host must have, should have, and how to mend what it lacks. Each check looks at one thing and
// changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::cli {

enum class Health { kOk, kDegraded, kMissing };  // kMissing: without it no run can start

const char* to_string(Health health);

struct Check {
  std::string id;     // stable, for programs: "kvm"
  std::string title;  // "KVM"
  Health health = Health::kOk;
  std::string found;    // what is there
  std::string meaning;  // what that means for runs; empty if all is well
  std::string mend;     // what to do; empty if all is well
};

// In the order in which they are shown.
std::vector<Check> check_host();

// The parts that take what they look at, so that tests can hand them a made-up host.

// `root` stands before /proc and /sys.
Check check_cgroups(const std::string& root);
// `subids` is the text of /etc/subuid and /etc/subgid in turn; the account is `user` with `uid`.
Check check_subordinate_ids(const std::string& user, uint32_t uid, std::string_view subuid,
                            std::string_view subgid, bool has_newuidmap);
// `meminfo` is the text of /proc/meminfo.
Check check_memory(std::string_view meminfo);
Check check_disk(const std::string& id, const std::string& title, const std::string& directory,
                 uint64_t available, bool writable);
// `version_text` is what `qemu-system-x86_64 --version` printed.
Check check_qemu_version(const std::string& program, const std::string& version_text);

}  // namespace firestop::cli
