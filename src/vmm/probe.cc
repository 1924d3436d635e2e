#include "vmm/probe.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "vmm/builder.h"
#include "vmm/host.h"
#include "vmm/memory.h"
#include "vmm/vmm.h"

namespace firestop::vmm {
namespace {

constexpr auto kProbeLimit = std::chrono::seconds(10);

// Why /dev/kvm is of no use, without starting a guest; empty if it may be.
std::string why_no_device() {
  const UniqueFd kvm(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!kvm.valid() && errno == ENOENT) return "there is no /dev/kvm";
  if (!kvm.valid() && errno == EACCES) return "/dev/kvm may not be opened by this user (group kvm)";
  if (!kvm.valid()) return std::string("/dev/kvm cannot be opened: ") + std::strerror(errno);
  const UniqueFd vm(::ioctl(kvm.get(), KVM_CREATE_VM, 0));
  if (!vm.valid()) return std::string("/dev/kvm makes no machine: ") + std::strerror(errno);
  return {};
}

std::string why_no_boot(const std::string& kernel, const std::string& initramfs, const std::string& root) {
  Machine machine;
  machine.kernel = kernel;
  machine.initramfs = initramfs;
  machine.image_digest = "probe";
  machine.root = {"root", root, true};
  machine.memory = 256u << 20;
  machine.accelerator = Accelerator::kKvm;
  auto started = VmBuilder::start(machine, {});
  if (!started) return started.error().message;
  const auto ready = VmBuilder::wait_ready(started->vm, kProbeLimit);
  return ready ? "" : why_kvm_failed(started->vm.qemu_errors(), ready.error().message);
}

}  // namespace

std::string why_kvm_failed(std::string_view qemu_errors, std::string_view boot_error) {
  // QEMU's first complaint names the cause; what follows is an assertion's noise.
  const std::string said = printable_tail(qemu_errors, 64);
  if (!said.empty()) {
    std::string line = said.substr(0, said.find('\n'));
    for (const std::string_view prefix : {"qemu-system-x86_64: ", "error: "})
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    return "QEMU with KVM ended: " + line;
  }
  return "no guest starts with KVM: " + std::string(boot_error.substr(0, boot_error.find('\n')));
}

Result<Probe> probe_accelerator(const std::string& kernel, const std::string& initramfs,
                                const std::string& root) {
  if (const char* wanted = std::getenv("FIRESTOP_ACCEL"); wanted && *wanted) {
    if (std::strcmp(wanted, "kvm") == 0) return Probe{Accelerator::kKvm, ""};
    if (std::strcmp(wanted, "tcg") == 0) return Probe{Accelerator::kTcg, "FIRESTOP_ACCEL=tcg"};
    return fail("vmm.bad_accelerator", "FIRESTOP_ACCEL is neither kvm nor tcg");
  }
  if (const std::string why = why_no_device(); !why.empty()) return Probe{Accelerator::kTcg, why};

  TRY_ASSIGN(const std::string program, qemu_program());
  TRY_ASSIGN(const std::string qemu, file_identity(program));
  TRY_ASSIGN(const std::string kernel_identity, file_identity(kernel));
  TRY_ASSIGN(const std::string initramfs_identity, file_identity(initramfs));
  const std::string key = sha256_hex(boot_id() + "\n" + program + "\n" + qemu + "\n" + kernel_identity +
                                     "\n" + initramfs_identity);
  const std::string cache = join_path(cache_directory(), "accelerator.json");
  if (const auto text = read_file(cache, 64u << 10)) {
    const auto known = codec::parse_json(*text);
    if (known && known->string_or("key", "") == key) {
      const bool kvm = known->bool_or("kvm", false);
      return Probe{kvm ? Accelerator::kKvm : Accelerator::kTcg, kvm ? "" : known->string_or("why", "")};
    }
  }
  const std::string why = why_no_boot(kernel, initramfs, root);
  const bool kvm = why.empty();
  if (make_directories(cache_directory()))
    (void)write_file_atomic(
        cache, codec::write_json_pretty(codec::JsonObject{{"key", key}, {"kvm", kvm}, {"why", why}}));
  return Probe{kvm ? Accelerator::kKvm : Accelerator::kTcg, why};
}

}  // namespace firestop::vmm
