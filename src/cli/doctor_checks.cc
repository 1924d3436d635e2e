#include "cli/doctor_checks.h"

#include <pwd.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "egress/seam.h"
#include "image/image.h"
#include "image/program.h"
#include "vmm/vmm.h"

namespace firestop::cli {
namespace {

constexpr uint64_t kMiB = 1u << 20;
constexpr const char* kDefaultImage = "agent-base";

Check ok(std::string id, std::string title, std::string found) {
  return {std::move(id), std::move(title), Health::kOk, std::move(found), "", ""};
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The first line of `PROGRAM --version`, or nothing if the program can't be run.
std::optional<std::string> version_of(const std::string& program, const char* option = "--version") {
  const auto ran = run({.argv = {program, option}}, {.timeout = std::chrono::seconds(10)});
  if (!ran || !ran->ok()) return std::nullopt;
  return first_line(ran->out.empty() ? ran->err : ran->out);
}

Check check_program(std::string id, std::string title, const std::string& program, const std::string& package,
                    Health without, std::string meaning, const char* option = "--version") {
  const std::string path = find_program(program);
  if (path.empty())
    return {std::move(id),
            std::move(title),
            without,
            "there is no " + program + " in PATH",
            std::move(meaning),
            "sudo apt-get install " + package};
  const auto version = version_of(path, option);
  if (!version)
    return {std::move(id),           std::move(title),   without,
            path + " cannot be run", std::move(meaning), "sudo apt-get install --reinstall " + package};
  return ok(std::move(id), std::move(title), path + ", " + *version);
}

Check check_kernel() {
  utsname name{};
  ::uname(&name);
  const std::string found = std::string(name.sysname) + " " + name.release + ", " + name.machine;
  unsigned major = 0, minor = 0;
  (void)std::sscanf(name.release, "%u.%u", &major, &minor);
  if (std::strcmp(name.machine, "x86_64") != 0)
    return {"kernel", "host", Health::kMissing, found, "Firestop runs on x86-64 only", "use another machine"};
  if (major < 5 || (major == 5 && minor < 12))
    return {"kernel",
            "host",
            Health::kMissing,
            found,
            "system calls that runs need are missing (openat2, close_range, mount_setattr)",
            "use a Linux of 5.12 or later, such as Debian 12's"};
  return ok("kernel", "host", found);
}

Check check_qemu() {
  const std::string program = find_program("qemu-system-x86_64");
  if (program.empty())
    return {"qemu",
            "QEMU",
            Health::kMissing,
            "there is no qemu-system-x86_64 in PATH",
            "no machine can be started",
            "sudo apt-get install qemu-system-x86"};
  return check_qemu_version(program, version_of(program).value_or(""));
}

// `image` is what a guest could be started from, if there is one. Starting it is tried once after each boot
// of the host; then the answer is known.
Check check_kvm(const Result<image::BootFiles>& image) {
  constexpr const char* kSlow = "machines run in emulation (TCG): computing is some 5 to 10 times slower";
  constexpr const char* kDevice = "/dev/kvm";
  if (::access(kDevice, F_OK) != 0)
    return {"kvm",
            "KVM",
            Health::kDegraded,
            "there is no /dev/kvm",
            kSlow,
            "switch virtualization on in the firmware, or nested virtualization for this virtual machine; "
            "then sudo modprobe kvm_intel (or kvm_amd)"};
  if (::access(kDevice, R_OK | W_OK) != 0)
    return {"kvm",
            "KVM",
            Health::kDegraded,
            "/dev/kvm exists, but this account may not use it",
            kSlow,
            "sudo usermod -aG kvm \"$USER\", then log in again"};
  if (!image)
    return ok("kvm", "KVM", "/dev/kvm can be opened; not tried yet, since there is no image to start");
  const auto probe = vmm::probe_accelerator(image->kernel, image->initramfs, image->root);
  if (!probe)
    return {"kvm",
            "KVM",
            Health::kDegraded,
            "cannot be tried: " + probe.error().message,
            kSlow,
            probe.error().hint};
  if (probe->accelerator == vmm::Accelerator::kKvm) return ok("kvm", "KVM", "a guest starts with it");
  return {"kvm",
          "KVM",
          Health::kDegraded,
          "/dev/kvm exists, but is not used: " + probe->why,
          kSlow,
          "where this is a virtual machine, its host must offer nested virtualization with the processor's "
          "full model; "
          "after a change remove accelerator.json in " +
              cache_directory()};
}

// What a fork that asks for a user namespace gets: 0, or its errno.
int try_user_namespace() {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : std::min(errno, 255));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINVAL;
}

Check check_user_namespaces(Health without) {
  const int error = try_user_namespace();
  if (error == 0) return ok("userns", "user namespaces", "can be made");
  std::string mend = "sudo sysctl -w user.max_user_namespaces=10000";
  if (const auto value = read_file("/proc/sys/kernel/unprivileged_userns_clone", 64);
      value && value->starts_with('0'))
    mend = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  if (const auto value = read_file("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 64);
      value && value->starts_with('1'))
    mend = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  return {"userns",
          "user namespaces",
          without,
          std::string("cannot be made: ") + std::strerror(error),
          "images cannot be built without root",
          mend};
}

// ssh-keygen has no option that only prints its version.
Check check_ssh_keygen() {
  const std::string path = find_program("ssh-keygen");
  if (!path.empty()) return ok("ssh_keygen", "ssh-keygen", path);
  return {"ssh_keygen",
          "ssh-keygen",
          Health::kDegraded,
          "there is no ssh-keygen in PATH",
          "manifests cannot be signed, and one that must be signed does not start",
          "sudo apt-get install openssh-client"};
}

Check check_jail() {
  const auto made = vmm::check_jail();
  if (made) return ok("jail", "jail", "QEMU starts in namespaces of its own, without a view of the host");
  return {"jail",
          "jail",
          Health::kMissing,
          made.error().message,
          "no machine is started outside a jail",
          made.error().hint};
}

// Makes one, and lets it go.
Check check_network() {
  const auto made = egress::make_seam();
  if (made)
    return ok("network", "network", "a sandbox's own network can be made (namespaces, /dev/net/tun, nft)");
  return {"network",
          "network",
          Health::kDegraded,
          made.error().message,
          "manifests with `egress` do not start; others do",
          made.error().hint};
}

// The nearest folder that exists: what is missing is made below it.
std::string existing(std::string directory) {
  while (!exists(directory) && directory != "/" && directory != ".") directory = parent_path(directory);
  return directory;
}

Check check_disk_at(const std::string& id, const std::string& title, const std::string& directory) {
  const std::string there = existing(directory);
  struct statvfs fs{};
  if (::statvfs(there.c_str(), &fs) != 0)
    return {id,
            title,
            Health::kMissing,
            directory + ": " + std::strerror(errno),
            "nothing can be kept there",
            "make " + there + " readable"};
  return check_disk(id, title, directory, static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize,
                    ::access(there.c_str(), W_OK | X_OK) == 0);
}

std::string text_of(const std::string& path) {
  return read_file(path, kMiB).value_or("");
}

Check check_own_subordinate_ids() {
  const passwd* account = ::getpwuid(::geteuid());
  return check_subordinate_ids(account ? account->pw_name : "", ::geteuid(), text_of("/etc/subuid"),
                               text_of("/etc/subgid"),
                               !find_program("newuidmap").empty() && !find_program("newgidmap").empty());
}

Check check_guest_program() {
  const auto program = image::guest_program();
  if (program) return ok("guest", "guest program", *program);
  return {"guest",
          "guest program",
          Health::kMissing,
          program.error().message,
          "machines have nothing to run as init",
          program.error().hint};
}

}  // namespace

std::vector<Check> check_host() {
  const auto image = image::find(kDefaultImage);
  const bool has_image = image.has_value();
  const bool can_build = !find_program("mmdebstrap").empty();
  // What only building needs is no obstacle once the image is there.
  const Health building = has_image ? Health::kDegraded : Health::kMissing;
  std::vector<Check> checks{check_kernel(), check_qemu(), check_kvm(image), check_guest_program()};
  checks.push_back(check_jail());
  checks.push_back(check_network());
  checks.push_back(
      has_image
          ? ok("image", "guest image",
               std::string(kDefaultImage) + " " + image->digest.substr(0, 12) + ", kernel " +
                   image->kernel_release)
          : Check{"image", "guest image", Health::kDegraded, std::string(kDefaultImage) + " is not built yet",
                  "the first run builds it, which takes a minute or two and the network",
                  can_build ? "firestop image build" : "see mmdebstrap, then firestop image build"});
  checks.push_back(check_program("mmdebstrap", "mmdebstrap", "mmdebstrap", "mmdebstrap", building,
                                 "images cannot be built"));
  checks.push_back(check_user_namespaces(::geteuid() == 0 ? Health::kDegraded : building));
  Check subids = check_own_subordinate_ids();
  if (subids.health == Health::kDegraded) subids.health = building;
  checks.push_back(std::move(subids));
  checks.push_back(check_program("git", "git", "git", "git", Health::kMissing,
                                 "repositories cannot be brought in or back"));
  checks.push_back(check_ssh_keygen());
  checks.push_back(check_program("mke2fs", "mke2fs", "mke2fs", "e2fsprogs", Health::kMissing,
                                 "a run's own disk cannot be made", "-V"));
  checks.push_back(check_cgroups(""));
  checks.push_back(check_memory(text_of("/proc/meminfo")));
  checks.push_back(check_disk_at("state_disk", "disk for runs", state_directory()));
  checks.push_back(check_disk_at("cache_disk", "disk for images", cache_directory()));
  return checks;
}

}  // namespace firestop::cli
