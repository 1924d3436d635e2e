#include "vmm/host.h"

#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "base/file.h"
#include "vmm/builder.h"
#include "vmm/memory.h"
#include "vmm/probe.h"
#include "vmm/stub_kernel.h"
#include "vmm/template.h"
#include "vmm/tsc.h"

namespace firestop::vmm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Host, TheProcessorIsKnownByWhatDoesNotChange) {
  const std::string at_rest =
      "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 1200.0\nflags\t\t: "
      "fpu vme\n\n"
      "processor\t: 1\nvendor_id\t: other\n";
  std::string busy = at_rest;
  busy.replace(busy.find("1200.0"), 6, "3100.9");
  EXPECT_EQ(processor_identity_of(at_rest), processor_identity_of(busy));
  EXPECT_THAT(processor_identity_of(at_rest), HasSubstr("AMD EPYC"));
  EXPECT_THAT(processor_identity_of(at_rest), Not(HasSubstr("other"))) << "the first processor only";
  std::string fewer = at_rest;
  fewer.erase(fewer.find(" vme"), 4);
  EXPECT_NE(processor_identity_of(at_rest), processor_identity_of(fewer));
  EXPECT_FALSE(processor_identity().empty());
}

TEST(Host, AChangedFileHasAnotherIdentity) {
  const std::string path = ::testing::TempDir() + "/identity";
  ASSERT_TRUE(write_file_atomic(path, "one"));
  const auto one = file_identity(path);
  ASSERT_TRUE(write_file_atomic(path, "two"));  // the same size
  const auto two = file_identity(path);
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  EXPECT_EQ(file_identity(path + "-missing").error().code, "vmm.file");
}

TEST(Tsc, TwoCalibrationsAgreeAndTheCacheIsUsed) {
  const auto one = calibrate_tsc_khz(), two = calibrate_tsc_khz();
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(same_tsc_rate(*one, *two)) << *one << " " << *two;
  const std::string cache = ::testing::TempDir() + "/tsc.json";
  ::unlink(cache.c_str());
  const auto measured = tsc_khz(cache);
  ASSERT_TRUE(measured);
  EXPECT_EQ(tsc_khz(cache).value(), *measured);
  // Another boot's number, a foolish number, and no JSON are measured again.
  for (const std::string& bad :
       {std::string("{\"boot_id\":\"x\",\"khz\":12345678}"), "{\"boot_id\":\"" + boot_id() + "\",\"khz\":7}",
        "{\"boot_id\":\"" + boot_id() + "\",\"khz\":-5}", std::string("nonsense")}) {
    ASSERT_TRUE(write_file_atomic(cache, bad));
    const auto again = tsc_khz(cache);
    ASSERT_TRUE(again) << bad;
    EXPECT_TRUE(same_tsc_rate(*again, *measured)) << bad;
  }
}

TEST(Tsc, RatesAreTheSameWithinOneInAThousand) {
  EXPECT_TRUE(same_tsc_rate(2'400'000, 2'400'000));
  EXPECT_TRUE(same_tsc_rate(2'401'000, 2'400'000));
  EXPECT_FALSE(same_tsc_rate(2'410'000, 2'400'000));
  EXPECT_FALSE(same_tsc_rate(0, 2'400'000));
}

TEST(TemplateKey, DependsOnEachPartAndOnNothingElse) {
  const TemplateKey key{"digest", "qemu", "processor", "-M microvm"};
  EXPECT_EQ(key.name(), TemplateKey(key).name());
  EXPECT_EQ(key.name().size(), 32u);
  std::vector<TemplateKey> others(4, key);
  others[0].image_digest = "other";
  others[1].qemu = "other";
  others[2].processor = "other";
  others[3].machine = "other";
  for (const auto& other : others) EXPECT_NE(other.name(), key.name());
  // What stands at the end of one field is not taken for the beginning of the next.
  TemplateKey left = key, right = key;
  left.image_digest = "a\n1:b", left.qemu = "";
  right.image_digest = "a", right.qemu = "b\n0:";
  EXPECT_NE(left.name(), right.name());
}

TEST(TemplateKey, IsOneForAllRunsOfAnImageAndSize) {
  if (!qemu_program()) GTEST_SKIP() << "no QEMU";
  Machine one;
  one.image_digest = "d";
  one.memory = 256u << 20;
  Machine two = one;
  two.scratch = {"scratch", "/elsewhere", false};
  two.disks = {{"ro0", "/x", true}};
  two.io_rate = 1u << 20;
  const auto key = [](const Machine& m) { return template_key(m).value().name(); };
  EXPECT_EQ(key(one), key(one));
  EXPECT_EQ(key(one), key(two));
  std::vector<Machine> others(4, one);
  others[0].memory = 257u << 20;
  others[1].cpus = 2;
  others[2].accelerator = Accelerator::kTcg;
  others[3].image_digest = "e";
  for (const auto& other : others) EXPECT_NE(key(other), key(one));
}

TEST(Memory, SavesOnlyWhatIsThereAndLoadsTheSame) {
  constexpr uint64_t kSize = 8u << 20;
  const auto memory = make_memory("test", kSize);
  ASSERT_TRUE(memory);
  ASSERT_EQ(::pwrite(memory->get(), "first", 5, 0), 5);
  ASSERT_EQ(::pwrite(memory->get(), "x", 1, (3 << 20) + 4095), 1);  // only the last byte of its page
  ASSERT_EQ(::pwrite(memory->get(), std::string(8192, '\0').data(), 8192, 1 << 20),
            8192);  // zeros are no data
  ASSERT_EQ(::pwrite(memory->get(), "last", 4, kSize - 4), 4);
  const std::string path = ::testing::TempDir() + "/memory";
  const auto file = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
  ASSERT_TRUE(file);
  EXPECT_EQ(save_memory(memory->get(), file->get(), kSize).value(), 3u * 4096);
  const auto copy = make_memory("copy", kSize);
  ASSERT_TRUE(copy);
  EXPECT_GE(load_memory(file->get(), copy->get(), kSize).value(), 3u * 4096);
  std::string a(kSize, '?'), b(kSize, '!');
  ASSERT_EQ(::pread(memory->get(), a.data(), kSize, 0), static_cast<ssize_t>(kSize));
  ASSERT_EQ(::pread(copy->get(), b.data(), kSize, 0), static_cast<ssize_t>(kSize));
  EXPECT_EQ(a, b);
}

TEST(Memory, ASealedFileCannotBeChanged) {
  const auto sealed = make_sealed("test", "bytes");
  ASSERT_TRUE(sealed);
  const std::string path = "/proc/self/fd/" + std::to_string(sealed->get());
  EXPECT_EQ(::write(sealed->get(), "x", 1), -1) << "open for reading";
  const UniqueFd again(::open(path.c_str(), O_RDWR));
  if (again.valid()) {
    EXPECT_EQ(::write(again.get(), "x", 1), -1) << "also when opened again";
  }
  EXPECT_EQ(*read_all(sealed->get()), "bytes");
}

TEST(StubKernel, IsAnElfWithTheNoteOfPvh) {
  const std::string bytes = stub_kernel();
  Elf64_Ehdr header;
  ASSERT_GE(bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  EXPECT_EQ(0, std::memcmp(header.e_ident, ELFMAG, SELFMAG));
  bool found = false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    EXPECT_LE(segment.p_offset + segment.p_filesz, bytes.size());
    if (segment.p_type != PT_NOTE) continue;
    found = bytes.substr(segment.p_offset, 16) == std::string("\4\0\0\0\4\0\0\0\22\0\0\0Xen\0", 16);
  }
  EXPECT_TRUE(found);
}

TEST(Machine, WhatCannotBeStartedIsRefusedWithAReason) {
  Machine good;
  good.image_digest = "d";
  good.root = {"root", "/r", true};
  good.scratch = {"scratch", "/s", false};
  good.memory = 256u << 20;
  EXPECT_TRUE(check_machine(good));
  struct Row {
    const char* reason;
    std::function<void(Machine&)> change;
  };
  const Row rows[] = {
      {"too little memory", [](Machine& m) { m.memory = 1u << 20; }},
      {"no whole MiB", [](Machine& m) { m.memory += 4096; }},
      {"absurd memory", [](Machine& m) { m.memory = UINT64_MAX & ~0xfffffULL; }},
      {"no processor", [](Machine& m) { m.cpus = 0; }},
      {"too many processors", [](Machine& m) { m.cpus = 65; }},
      {"a template of nothing known", [](Machine& m) { m.image_digest.clear(); }},
      {"a shared root that can be written", [](Machine& m) { m.root.read_only = false; }},
      {"scratch that cannot be written", [](Machine& m) { m.scratch.read_only = true; }},
      {"options in a serial", [](Machine& m) { m.disks = {{"ro0,drive=disk1", "/x", true}}; }},
      {"the wrong slot", [](Machine& m) { m.disks = {{"ro1", "/x", true}}; }},
      {"a writable entry", [](Machine& m) { m.disks = {{"ro0", "/x", false}}; }},
      {"too many disks", [](Machine& m) { m.disks.assign(kMaxDisks + 1, {"ro0", "/x", true}); }},
      {"no I/O at all", [](Machine& m) { m.io_rate = 0; }},
  };
  for (const auto& row : rows) {
    Machine m = good;
    row.change(m);
    const auto checked = check_machine(m);
    ASSERT_FALSE(checked) << row.reason;
    EXPECT_EQ(checked.error().code, "vmm.bad_machine") << row.reason;
  }
}

TEST(PrintableTail, ShowsTheEndAndNothingThatATerminalObeys) {
  EXPECT_EQ(printable_tail("one\ntwo\nthree\n\n", 2), "two\nthree");
  EXPECT_EQ(printable_tail("a\033[2Jb\x9b\x07\r\n", 4), "a?[2Jb??");
  EXPECT_EQ(printable_tail("", 3), "");
  EXPECT_EQ(printable_tail(std::string(100000, 'x'), 3).size(), 4096u);
}

TEST(Probe, TheReasonIsQemusFirstComplaint) {
  EXPECT_EQ(
      why_kvm_failed(
          "qemu-system-x86_64: error: failed to set MSR 0x10a to 0x69\nqemu: ../kvm.c: Assertion\n", ""),
      "QEMU with KVM ended: failed to set MSR 0x10a to 0x69");
  EXPECT_EQ(why_kvm_failed("", "the guest did not come up within 10000 ms\nThe guest's console is empty."),
            "no guest starts with KVM: the guest did not come up within 10000 ms");
}

}  // namespace
}  // namespace firestop::vmm
