#include "vmm/builder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/path.h"
#include "codec/frame.h"
#include "codec/json.h"
#include "jail/cgroup.h"
#include "jail/vm_jail.h"
#include "vmm/arguments.h"
#include "vmm/host.h"
#include "vmm/memory.h"
#include "vmm/stub_kernel.h"

namespace firestop::vmm {
namespace {

using Clock = std::chrono::steady_clock;

// The first frame is one control message; more than a frame's worth before it ends is an attack or a fault.
constexpr size_t kMaxReady = codec::kFrameHeader + codec::kMaxPayload;

// Ours and QEMU's number of each descriptor that QEMU gets: 3, 4, 5, ...
class Descriptors {
 public:
  int give(int fd) {
    list_.push_back({fd, next_});
    return next_++;
  }
  int give(UniqueFd fd) {
    owned_.push_back(std::move(fd));
    return give(owned_.back().get());
  }
  const std::vector<std::pair<int, int>>& list() const { return list_; }
  std::vector<std::pair<int, int>>& list() { return list_; }

 private:
  int next_ = 3;
  std::vector<std::pair<int, int>> list_;
  std::vector<UniqueFd> owned_;
};

struct Ends {
  UniqueFd ours, theirs;
};

Result<Ends> socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return fail_errno("vmm.start", "cannot make a socket pair");
  Ends ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
  ::fcntl(ends.ours.get(), F_SETFL, O_NONBLOCK);
  return ends;
}

// Ours is the reading end. Neither blocks: a QEMU that is made to complain without end loses words, not time.
// For the console a pipe holds 64 KiB, a socket only some 280 of the single bytes that a serial port sends.
Result<Ends> pipe_pair() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("vmm.start", "cannot make a pipe");
  return Ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<UniqueFd> open_disk(const Disk& disk) {
  auto fd = open_file(disk.path, disk.read_only ? O_RDONLY : O_RDWR);
  if (!fd) return wrap(fd.error(), "disk " + disk.serial);
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return fail_errno("vmm.bad_machine", "cannot look at " + disk.path);
  if (!S_ISREG(st.st_mode))
    return fail("vmm.bad_machine", "disk " + disk.serial + ": not a regular file: " + disk.path);
  if (st.st_size == 0 || st.st_size % 512 != 0)
    return fail("vmm.bad_machine", "disk " + disk.serial + ": " + disk.path + " has " +
                                       std::to_string(st.st_size) +
                                       " bytes, which are no whole sectors of 512");
  return fd;
}

// root, scratch, ro0..ro15, in this order whatever is used.
Result<void> add_disks(const Machine& machine, Descriptors& descriptors, Plan& plan) {
  const auto add = [&](const Disk& disk) -> Result<void> {
    TRY_ASSIGN(UniqueFd fd, open_disk(disk));
    plan.disks.push_back({disk.serial, descriptors.give(std::move(fd)), disk.read_only});
    return {};
  };
  TRY(add(machine.root));
  if (machine.scratch.path.empty()) {  // a template's
    TRY_ASSIGN(UniqueFd empty, make_memory("scratch", 1u << 20));
    plan.disks.push_back({"scratch", descriptors.give(std::move(empty)), false});
  } else {
    TRY(add(machine.scratch));
  }
  for (const Disk& disk : machine.disks) TRY(add(disk));
  TRY_ASSIGN(UniqueFd empty, make_sealed("empty", std::string(4096, '\0')));
  const int number = descriptors.give(std::move(empty));
  for (size_t slot = machine.disks.size(); slot < kMaxDisks; ++slot)
    plan.disks.push_back({"ro" + std::to_string(slot), number, true});
  return {};
}

// What QEMU reads besides the libraries it is linked to: its accelerator, firmware and option ROM.
jail::VmJail jail_of(const Machine& machine, uint64_t largest_file) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  jail::VmJail jail;
  for (const char* directory :
       {"/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu-kvm", "/usr/lib64/qemu", "/usr/lib/qemu"}) {
    const std::string module = join_path(directory, "accel-tcg-x86_64.so");
    if (exists(module)) jail.modules.push_back(module);
  }
  for (const char* directory : {"/usr/share/qemu", "/usr/share/seabios", "/usr/share/qemu-firmware"})
    for (const char* name : {"bios-microvm.bin", "pvh.bin", "linuxboot_dma.bin", "kvmvapic.bin"})
      jail.data.push_back(join_path(directory, name));
  jail.kvm = machine.accelerator == Accelerator::kKvm;
  jail.memory = machine.memory;
  // The guest's memory, 1 GiB of translated code, and stacks and heaps of threads: reserved, not used.
  jail.address_space = machine.memory + (16 + machine.cpus) * kGiB;
  jail.file_size = std::max(machine.memory, largest_file);
  // Disks are served by up to 64 threads, beside one a processor and some of QEMU's own.
  jail.threads = 128 + machine.cpus;
  return jail;
}

// QEMU's own memory beside the guest's: translated code, the processor's tables, buffers of disks.
uint64_t overhead(Accelerator accelerator) {
  return (accelerator == Accelerator::kKvm ? uint64_t{512} : uint64_t{2048}) << 20;
}

uint64_t size_of(const Disk& disk) {
  struct stat st{};
  return ::stat(disk.path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

// A kernel's panic begins with its reason and ends with numbers.
std::string_view interesting(std::string_view console) {
  const size_t panic = console.rfind("Kernel panic");
  if (panic == std::string_view::npos) return console;
  size_t end = panic;
  for (int lines = 0; lines < 8 && end < console.size(); ++lines)
    end = std::min(console.find('\n', end), console.size() - 1) + 1;
  return console.substr(0, end);
}

// Whether the guest's first frame says that it is ready; it may say why it is not.
Result<void> check_first_frame(Vm& vm, const codec::Frame& frame) {
  if (frame.type != codec::FrameType::kControl)
    return VmBuilder::no_boot(vm, "the guest's first frame is no control message");
  const auto message = codec::parse_json(frame.payload);
  if (!message) return VmBuilder::no_boot(vm, "the guest's first message is not JSON");
  const std::string type = message->string_or("type", "");
  if (type == "failed")
    return VmBuilder::no_boot(
        vm, "the guest cannot go on: " + printable_tail(message->string_or("step", ""), 1) + ": " +
                printable_tail(message->string_or("message", ""), 4));
  if (type != "ready") return VmBuilder::no_boot(vm, "the guest's first message is not \"ready\"");
  return {};
}

}  // namespace

Result<void> check_machine(const Machine& machine) {
  constexpr uint64_t kMiB = 1u << 20;
  const auto bad = [](std::string what) { return fail("vmm.bad_machine", std::move(what)); };
  if (machine.memory < 64 * kMiB || machine.memory > (uint64_t{1} << 40) || machine.memory % kMiB != 0)
    return bad("memory of " + std::to_string(machine.memory) +
               " bytes; 64 MiB to 1 TiB in whole MiB are possible");
  if (machine.cpus < 1 || machine.cpus > 64)
    return bad(std::to_string(machine.cpus) + " processors; 1 to 64 are possible");
  if (machine.image_digest.empty()) return bad("no image digest");
  if (machine.root.serial != "root" || !machine.root.read_only)
    return bad("the root disk must be \"root\", read-only");
  if (!machine.scratch.path.empty() && (machine.scratch.serial != "scratch" || machine.scratch.read_only))
    return bad("the scratch disk must be \"scratch\", writable");
  if (machine.disks.size() > kMaxDisks)
    return bad(std::to_string(machine.disks.size()) + " read-only disks; at most " +
               std::to_string(kMaxDisks) + " are possible");
  for (size_t i = 0; i < machine.disks.size(); ++i)
    if (machine.disks[i].serial != "ro" + std::to_string(i) || !machine.disks[i].read_only)
      return bad("disk " + std::to_string(i) + " must be \"ro" + std::to_string(i) + "\", read-only");
  if (machine.io_rate && (*machine.io_rate < 4096 || *machine.io_rate > 1'000'000'000'000))
    return bad("an I/O rate of " + std::to_string(*machine.io_rate) +
               " bytes a second; 4096 to 10^12 are possible");
  return {};
}

Result<void> check_jail() {
  TRY_ASSIGN(const std::string program, qemu_program());
  return jail::try_jail(program);
}

Result<void> check_disks(const Machine& machine) {
  TRY(open_disk(machine.root));
  if (!machine.scratch.path.empty()) TRY(open_disk(machine.scratch));
  for (const Disk& disk : machine.disks) TRY(open_disk(disk));
  return {};
}

std::chrono::milliseconds boot_limit(Accelerator accelerator) {
  if (const char* text = std::getenv("FIRESTOP_BOOT_LIMIT_MS")) {
    int64_t ms = 0;
    const char* end = text + std::strlen(text);
    if (auto [stop, error] = std::from_chars(text, end, ms); error == std::errc() && stop == end && ms > 0)
      return std::chrono::milliseconds(std::min<int64_t>(ms, 3'600'000));
  }
  return std::chrono::seconds(accelerator == Accelerator::kKvm ? 20 : 60);
}

Result<Started> VmBuilder::start(const Machine& machine, const StartOptions& options) {
  const auto begin = Clock::now();
  TRY(check_machine(machine));
  TRY_ASSIGN(const std::string program, qemu_program());
  Started started;
  Vm& vm = started.vm;
  Descriptors descriptors;
  Plan plan;
  plan.accelerator = machine.accelerator;
  plan.memory = machine.memory;
  plan.cpus = machine.cpus;
  plan.unobserved = machine.unobserved;
  plan.tsc_khz = options.tsc_khz;
  plan.io_rate = machine.io_rate;
  plan.incoming = options.incoming.has_value();

  TRY_ASSIGN(Ends channel, socket_pair());
  TRY_ASSIGN(Ends evidence, socket_pair());
  TRY_ASSIGN(Ends console, pipe_pair());
  TRY_ASSIGN(Ends qmp, socket_pair());
  TRY_ASSIGN(Ends errors, pipe_pair());
  vm.channel_ = std::move(channel.ours);
  vm.evidence_ = std::move(evidence.ours);
  vm.console_fd_ = std::move(console.ours);
  vm.errors_fd_ = std::move(errors.ours);
  plan.channel_fd = descriptors.give(std::move(channel.theirs));
  plan.evidence_fd = descriptors.give(std::move(evidence.theirs));
  plan.console_fd = descriptors.give(std::move(console.theirs));
  plan.qmp_fd = descriptors.give(std::move(qmp.theirs));
  UniqueFd kernel, initramfs;
  if (plan.incoming) {
    TRY_ASSIGN(kernel, make_sealed("kernel", stub_kernel()));
    TRY_ASSIGN(initramfs, make_sealed("initramfs", std::string(512, '\0')));
    started.incoming_fd = descriptors.give(*options.incoming);
  } else {
    TRY_ASSIGN(kernel, open_file(machine.kernel, O_RDONLY));
    TRY_ASSIGN(initramfs, open_file(machine.initramfs, O_RDONLY));
  }
  jail::VmJail jail = jail_of(machine, size_of(machine.scratch));
  jail.copies = {{descriptors.give(std::move(kernel)), kKernelPath},
                 {descriptors.give(std::move(initramfs)), kInitramfsPath}};
  TRY(add_disks(machine, descriptors, plan));
  if (machine.tap >= 0) plan.tap_fd = descriptors.give(machine.tap);
  if (!machine.run.empty()) {
    TRY_ASSIGN(jail::Cgroup group,
               jail::Cgroup::make("", machine.run,
                                  {.memory = machine.memory + overhead(machine.accelerator),
                                   .processes = jail.threads,
                                   .cpus = machine.processor_time}));
    vm.cgroup_ = std::make_shared<const jail::Cgroup>(std::move(group));
    jail.admit = [group = vm.cgroup_](pid_t pid) { return group->admit(pid); };
  }

  Command command;
  command.argv = qemu_arguments(program, plan);
  command.descriptors = descriptors.list();
  command.descriptors.push_back({errors.theirs.get(), 2});
  TRY_ASSIGN(jail::Jailed jailed, jail::spawn_jailed(std::move(command), jail));
  vm.child_ = std::move(jailed.child);
  started.memory = std::move(jailed.memory);
  started.qmp = Qmp(std::move(qmp.ours));
  add_step(vm, "spawn", begin);
  return started;
}

Result<std::string> VmBuilder::wait_ready(Vm& vm, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::string bytes;
  codec::FrameDecoder decoder;
  int channel = vm.channel_fd();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return no_boot(vm, "the guest did not come up within " + std::to_string(limit.count()) + " ms");
    pollfd fds[] = {{channel, POLLIN, 0}, {vm.console_fd(), POLLIN, 0}, {vm.exit_fd(), POLLIN, 0}};
    if (::poll(fds, 3, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR)
      return fail_errno("vmm.start", "cannot wait for the guest");
    if (fds[1].revents) vm.drain_console();
    if (fds[0].revents) {
      char buffer[4096];
      const ssize_t n = ::recv(channel, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0) {
        bytes.append(buffer, static_cast<size_t>(n));
        if (bytes.size() > kMaxReady) return no_boot(vm, "the guest's first message is too long");
        decoder.feed({buffer, static_cast<size_t>(n)});
        const auto frame = decoder.next();
        if (!frame) return no_boot(vm, "the guest's first bytes are no frame");
        if (const auto& whole = *frame) {
          TRY(check_first_frame(vm, *whole));
          return bytes;
        }
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        channel = -1;  // QEMU is ending: its pidfd says so in a moment
      }
    }
    if (fds[2].revents) return no_boot(vm, "QEMU ended before the guest was up");
  }
}

Unexpected VmBuilder::no_boot(Vm& vm, const std::string& what) {
  const bool ended = [&] {
    pollfd wait{vm.exit_fd(), POLLIN, 0};
    return vm.exit_fd() < 0 || ::poll(&wait, 1, 0) > 0;
  }();
  const int status = vm.kill();
  vm.drain_console();
  std::string message = what;
  if (ended) message += " (" + describe_status(status) + ")";
  if (const std::string said = printable_tail(vm.qemu_errors(), 8); !said.empty())
    message += "\nQEMU said:\n" + said;
  const std::string console = printable_tail(interesting(vm.console()), 16);
  message +=
      console.empty() ? "\nThe guest's console is empty." : "\nThe guest's console ends with:\n" + console;
  return fail("vmm.no_boot", std::move(message), "firestop doctor says what this host lacks");
}

void VmBuilder::add_step(Vm& vm, std::string step, Clock::time_point since) {
  vm.steps_.push_back(
      {std::move(step), std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - since)});
}

void VmBuilder::set_template(Vm& vm, const std::string& key) {
  vm.from_template_ = true;
  vm.template_key_ = key;
}

}  // namespace firestop::vmm
