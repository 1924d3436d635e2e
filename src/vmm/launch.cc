#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "base/path.h"
#include "vmm/builder.h"
#include "vmm/memory.h"
#include "vmm/template.h"
#include "vmm/tsc.h"
#include "vmm/vmm.h"

namespace firestop::vmm {
namespace {

using Clock = std::chrono::steady_clock;
using Notice = std::function<void(const std::string&)>;

// Restoring takes 0.1 s; a host that is busy beyond measure still gets its clone.
constexpr auto kRestoreLimit = std::chrono::seconds(30);

Result<void> send_state(int fd, std::string_view state, Deadline deadline) {
  while (!state.empty()) {
    const ssize_t n = ::send(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      state.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR)
      return fail_errno("vmm.template", "cannot hand over the guest's state");
    pollfd wait{fd, POLLOUT, 0};
    if (::poll(&wait, 1, 100) == 0 && Clock::now() > deadline)
      return fail("vmm.template", "QEMU does not take the guest's state");
  }
  return {};
}

Result<void> restore(Started& started, const Template& from, UniqueFd state, uint64_t size) {
  const Deadline deadline = Clock::now() + kRestoreLimit;
  Qmp& qmp = started.qmp;
  TRY(qmp.send("qmp_capabilities"));
  codec::JsonObject ignore{{"capability", "x-ignore-shared"}, {"state", true}};
  TRY(qmp.send("migrate-set-capabilities", {{"capabilities", codec::JsonArray{std::move(ignore)}}}));
  TRY(qmp.send("migrate-incoming", {{"uri", "fd:" + std::to_string(started.incoming_fd)}}));
  // QEMU sets itself up meanwhile, and cannot run the guest before it has the state.
  auto begin = Clock::now();
  TRY_ASSIGN(const uint64_t loaded, load_memory(from.memory.get(), started.memory.get(), size));
  // A file system may show more data than was written (whole blocks), never less.
  if (loaded < from.data_bytes) return fail("vmm.template", "the snapshot template's memory lacks data");
  VmBuilder::add_step(started.vm, "memory", begin);
  begin = Clock::now();
  TRY(send_state(state.get(), from.state, deadline));
  state.reset();
  TRY(qmp.wait_event("RESUME", deadline));
  VmBuilder::add_step(started.vm, "restore", begin);
  return {};
}

Result<Launched> clone(const Machine& machine, uint64_t tsc_khz, const Template& from) {
  int state[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, state) != 0)
    return fail_errno("vmm.start", "cannot make a socket pair");
  UniqueFd ours(state[0]);
  UniqueFd theirs(state[1]);
  StartOptions options;
  options.tsc_khz = tsc_khz;
  options.incoming = theirs.get();
  TRY_ASSIGN(Started started, VmBuilder::start(machine, options));
  theirs.reset();
  if (auto restored = restore(started, from, std::move(ours), machine.memory); !restored) {
    started.vm.kill();
    const std::string said = printable_tail(started.vm.qemu_errors(), 4);
    return fail("vmm.template", restored.error().message + (said.empty() ? "" : ": " + said));
  }
  VmBuilder::set_template(started.vm, from.key);
  return Launched{std::move(started.vm), from.ready};
}

Result<Launched> boot(const Machine& machine, uint64_t tsc_khz) {
  StartOptions options;
  options.tsc_khz = tsc_khz;
  TRY_ASSIGN(Started started, VmBuilder::start(machine, options));
  const auto begin = Clock::now();
  TRY_ASSIGN(std::string ready, VmBuilder::wait_ready(started.vm, boot_limit(machine.accelerator)));
  VmBuilder::add_step(started.vm, "boot", begin);
  return Launched{std::move(started.vm), std::move(ready)};
}

// A clone of the template, which is made if it is not there. Anything but "vmm.no_boot" and "vmm.bad_machine"
// leaves the cold boot to try.
Result<Launched> from_template(const Machine& machine, uint64_t tsc_khz, const Notice& notice) {
  TRY_ASSIGN(const TemplateKey parts, template_key(machine));
  const std::string key = parts.name();
  if (const auto why = why_unusable(key)) return fail("vmm.template", *why);
  const auto usable = [&]() -> Result<std::optional<Launched>> {
    auto found = open_template(key, machine.memory, tsc_khz);
    if (found && !*found) return std::nullopt;
    if (found) {
      auto launched = clone(machine, tsc_khz, **found);
      if (launched) return std::optional(std::move(*launched));
      if (launched.error().code != "vmm.template") return tl::unexpected(launched.error());
      found = tl::unexpected(launched.error());
    }
    (void)remove_template(key);
    return tl::unexpected(found.error());
  };
  TRY_ASSIGN(auto launched, usable());
  if (launched) return std::move(*launched);

  TRY_ASSIGN(UniqueFd lock, lock_template(key));
  TRY_ASSIGN(launched, usable());  // somebody else made it meanwhile
  if (launched) return std::move(*launched);
  notice("first start of this image with this size: keeping a snapshot of the booted guest");
  const auto begin = Clock::now();
  TRY(build_template(key, machine, tsc_khz));
  (void)prune_templates(false);
  auto made = usable();
  if (!made && made.error().code == "vmm.template") mark_unusable(key, made.error().message);
  if (!made) return tl::unexpected(made.error());
  auto& clone = *made;
  if (!clone) return fail("vmm.template", "the snapshot template vanished");
  VmBuilder::add_step(clone->vm, "template", begin);
  return std::move(*clone);
}

}  // namespace

Result<Launched> launch(const Machine& machine, const Notice& notice) {
  const auto say = [&](const std::string& text) {
    if (notice) notice(text);
  };
  TRY(check_machine(machine));
  TRY(check_disks(machine));
  TRY_ASSIGN(const uint64_t khz, tsc_khz(join_path(cache_directory(), "tsc.json")));
  auto launched = from_template(machine, khz, say);
  if (launched) return launched;
  const std::string& code = launched.error().code;
  if (code == "vmm.no_boot" || code == "vmm.bad_machine" || code == "vmm.no_qemu" ||
      code.starts_with("jail."))
    return launched;
  say("booting without a snapshot, which takes longer: " + launched.error().message);
  return boot(machine, khz);
}

}  // namespace firestop::vmm
