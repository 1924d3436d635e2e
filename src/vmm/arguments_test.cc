#include "vmm/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace firestop::vmm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Plan plan() {
  Plan p;
  p.accelerator = Accelerator::kTcg;
  p.memory = 512u << 20;
  p.cpus = 2;
  p.tsc_khz = 2'400'000;
  p.channel_fd = 3;
  p.console_fd = 4;
  p.qmp_fd = 5;
  p.evidence_fd = 6;
  p.disks = {{"root", 9, true}, {"scratch", 10, false}, {"ro0", 11, true}, {"ro1", 11, true}};
  return p;
}

std::string lines(const std::vector<std::string>& argv) {
  std::string out;
  for (const auto& word : argv) out += word + "\n";
  return out;
}

// The whole of what a guest can reach. Whoever changes a word here changes the compartment.
constexpr const char* kGolden = R"(qemu
-sandbox
on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
-nodefaults
-no-user-config
-display
none
-no-reboot
-M
microvm,acpi=on,isa-serial=on,memory-backend=memory
-accel
tcg
-cpu
max
-smp
2
-m
512M
-object
memory-backend-file,id=memory,size=512M,mem-path=/memory/ram,share=on,dump=off
-kernel
/kernel
-initrd
/initramfs
-append
console=ttyS0 quiet reboot=t panic=-1 tsc=reliable tsc_early_khz=2400000
-chardev
socket,id=qmp,fd=5
-mon
chardev=qmp,mode=control
-add-fd
fd=4,set=4
-chardev
file,id=console,append=on,path=/dev/fdset/4
-serial
chardev:console
-chardev
socket,id=channel,fd=3
-chardev
socket,id=evidence,fd=6
-device
virtio-serial-device,max_ports=3
-device
virtserialport,nr=1,chardev=channel,name=firestop.0
-device
virtserialport,nr=2,chardev=evidence,name=firestop.1
-object
rng-builtin,id=rng
-device
virtio-rng-device,rng=rng
-add-fd
fd=9,set=9
-blockdev
driver=file,node-name=disk0,filename=/dev/fdset/9,locking=off,aio=threads,read-only=on
-device
virtio-blk-device,drive=disk0,serial=root
-add-fd
fd=10,set=10
-blockdev
driver=file,node-name=disk1,filename=/dev/fdset/10,locking=off,aio=threads,cache.no-flush=on,discard=unmap
-device
virtio-blk-device,drive=disk1,serial=scratch
-add-fd
fd=11,set=11
-blockdev
driver=file,node-name=disk2,filename=/dev/fdset/11,locking=off,aio=threads,read-only=on
-device
virtio-blk-device,drive=disk2,serial=ro0
-blockdev
driver=file,node-name=disk3,filename=/dev/fdset/11,locking=off,aio=threads,read-only=on
-device
virtio-blk-device,drive=disk3,serial=ro1
)";

TEST(Arguments, AreExactlyThese) {
  EXPECT_EQ(lines(qemu_arguments("qemu", plan())), kGolden);
}

TEST(Arguments, KvmDiffersInThreeWordsOnly) {
  Plan kvm = plan();
  kvm.accelerator = Accelerator::kKvm;
  const auto a = qemu_arguments("qemu", plan()), b = qemu_arguments("qemu", kvm);
  ASSERT_EQ(a.size(), b.size());
  std::vector<std::string> changed;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) changed.push_back(b[i]);
  EXPECT_THAT(changed, ::testing::ElementsAre("kvm", "host", "console=ttyS0 quiet reboot=t panic=-1"));
}

TEST(Arguments, ACloneWaitsForItsState) {
  Plan clone = plan();
  clone.incoming = true;
  const auto argv = qemu_arguments("qemu", clone);
  ASSERT_GE(argv.size(), 2u);
  EXPECT_EQ(argv[argv.size() - 2], "-incoming");
  EXPECT_EQ(argv.back(), "defer");
}

TEST(Arguments, AnIoRateLimitsEveryDiskTogether) {
  Plan limited = plan();
  limited.io_rate = 1000000;
  const auto argv = qemu_arguments("qemu", limited);
  EXPECT_THAT(argv, Contains("throttle-group,id=io,x-bps-total=1000000"));
  EXPECT_THAT(argv,
              Contains("driver=throttle,node-name=limited1,throttle-group=io,file=disk1,discard=unmap"));
  // No device is left on an unlimited node.
  for (const auto& word : argv)
    if (word.starts_with("virtio-blk-device")) {
      EXPECT_THAT(word, HasSubstr("drive=limited"));
    }
  // Devices and their serials stay those of the template.
  const auto devices = [](const std::vector<std::string>& words) {
    return std::count_if(words.begin(), words.end(),
                         [](const auto& w) { return w.starts_with("virtio-blk-device"); });
  };
  EXPECT_EQ(devices(argv), devices(qemu_arguments("qemu", plan())));
}

TEST(Arguments, ThereIsNoNetworkAndNoHostDirectory) {
  const std::string all = lines(qemu_arguments("qemu", plan()));
  for (const char* word :
       {"netdev", "-nic", "virtio-net", "virtfs", "9p", "vhost", "usb", "vnc", "gdb", "monitor"})
    EXPECT_THAT(all, Not(HasSubstr(word)));
}

TEST(Arguments, ATapIsTheOnlyOtherEndThatANetworkHas) {
  Plan with = plan();
  with.tap_fd = 12;
  auto argv = qemu_arguments("qemu", with);
  const std::vector<std::string> more(argv.end() - 4, argv.end());
  EXPECT_THAT(more, ::testing::ElementsAre("-netdev", "tap,id=net,vhost=off,fd=12", "-device",
                                           "virtio-net-device,netdev=net,mac=02:66:73:00:00:02"));
  argv.resize(argv.size() - 4);
  EXPECT_EQ(lines(argv), kGolden);
}

}  // namespace
}  // namespace firestop::vmm
