#include "vmm/arguments.h"

namespace firestop::vmm {
namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
}

void add_disks(std::vector<std::string>& argv, const Plan& plan) {
  const auto add = [&](std::string option, std::string value) {
    argv.push_back(std::move(option));
    argv.push_back(std::move(value));
  };
  if (plan.io_rate) add("-object", "throttle-group,id=io,x-bps-total=" + number(*plan.io_rate));
  std::vector<int> sets;  // descriptors that have their set already: a set is named after its descriptor
  for (size_t i = 0; i < plan.disks.size(); ++i) {
    const DiskArgument& disk = plan.disks[i];
    const std::string fd = std::to_string(disk.fd);
    bool known = false;
    for (const int set : sets) known = known || set == disk.fd;
    if (!known) add("-add-fd", "fd=" + fd + ",set=" + fd);
    sets.push_back(disk.fd);

    std::string node = "disk" + number(i);
    std::string file =
        "driver=file,node-name=" + node + ",filename=/dev/fdset/" + fd + ",locking=off,aio=threads";
    // A scratch disk dies with its run: flushes would only cost, holes keep the host's file small.
    file += disk.read_only ? ",read-only=on" : ",cache.no-flush=on,discard=unmap";
    add("-blockdev", file);
    if (plan.io_rate) {
      const std::string limited = "limited" + number(i);
      add("-blockdev", "driver=throttle,node-name=" + limited + ",throttle-group=io,file=" + node +
                           (disk.read_only ? ",read-only=on" : ",discard=unmap"));
      node = limited;
    }
    add("-device", "virtio-blk-device,drive=" + node + ",serial=" + disk.serial);
  }
}

}  // namespace

std::string kernel_arguments(const Plan& plan) {
  // Errors and panics reach the console even with "quiet". Power-off does not end QEMU on this machine
  // type, a reboot (also the one after a panic) does.
  std::string line = "console=ttyS0 quiet reboot=t panic=-1";
  // Without it TCG hangs in delay calibration about every third boot: the guest measures its clock
  // against timers that lag while code is being translated.
  // For the same reason the counter seems to run away from those timers on a busy host; the guest's watchdog
  // would then give it up for them, and its clock would lose a quarter of the time.
  if (plan.accelerator == Accelerator::kTcg) line += " tsc=reliable tsc_early_khz=" + number(plan.tsc_khz);
  if (plan.unobserved) line += " audit=0 firestop.unobserved";
  return line;
}

std::vector<std::string> qemu_arguments(const std::string& program, const Plan& plan) {
  const bool kvm = plan.accelerator == Accelerator::kKvm;
  const std::string mib = number(plan.memory >> 20) + "M";
  std::vector<std::string> argv = {
      program,
      // What QEMU may not do any more, whoever got hold of it (seccomp, qemu(1) -sandbox).
      "-sandbox",
      "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
      "-nodefaults",
      "-no-user-config",
      "-display",
      "none",
      "-no-reboot",
      // The cloud kernel takes no virtio-mmio devices from its command line: ACPI describes them.
      "-M",
      "microvm,acpi=on,isa-serial=on,memory-backend=memory",
      "-accel",
      kvm ? "kvm" : "tcg",
      "-cpu",
      kvm ? "host" : "max",
      "-smp",
      number(plan.cpus),
      "-m",
      mib,
      "-object",
      "memory-backend-file,id=memory,size=" + mib + ",mem-path=" + kMemoryPath + ",share=on,dump=off",
      "-kernel",
      kKernelPath,
      "-initrd",
      kInitramfsPath,
      "-append",
      kernel_arguments(plan),
      "-chardev",
      "socket,id=qmp,fd=" + std::to_string(plan.qmp_fd),
      "-mon",
      "chardev=qmp,mode=control",
      "-add-fd",
      "fd=" + std::to_string(plan.console_fd) + ",set=" + std::to_string(plan.console_fd),
      "-chardev",
      "file,id=console,append=on,path=/dev/fdset/" + std::to_string(plan.console_fd),
      "-serial",
      "chardev:console",
      "-chardev",
      "socket,id=channel,fd=" + std::to_string(plan.channel_fd),
      "-chardev",
      "socket,id=evidence,fd=" + std::to_string(plan.evidence_fd),
      // Three ports: 0 is taken by the kernel's console protocol, 1 is the channel, 2 the collectors'.
      "-device",
      "virtio-serial-device,max_ports=3",
      "-device",
      "virtserialport,nr=1,chardev=channel,name=firestop.0",
      "-device",
      "virtserialport,nr=2,chardev=evidence,name=firestop.1",
      "-object",
      "rng-builtin,id=rng",
      "-device",
      "virtio-rng-device,rng=rng",
  };
  add_disks(argv, plan);
  if (plan.tap_fd)
    argv.insert(argv.end(), {"-netdev", "tap,id=net,vhost=off,fd=" + std::to_string(*plan.tap_fd), "-device",
                             std::string("virtio-net-device,netdev=net,mac=") + kNetworkMac});
  if (plan.incoming) {
    argv.push_back("-incoming");
    argv.push_back("defer");
  }
  return argv;
}

}  // namespace firestop::vmm
