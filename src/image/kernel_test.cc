#include "image/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "image/fake_debian.h"
#include "image/unpack.h"

namespace firestop::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Vmlinux, ComesOutOfTheImage) {
  for (const size_t size : {64u, 270u, 100000u}) {
    const std::string elf = testing::elf(size);
    const auto out =
        vmlinux_from_bzimage(testing::bzimage(testing::legacy_lz4(elf), static_cast<uint32_t>(size)));
    ASSERT_TRUE(out.has_value()) << out.error().message;
    EXPECT_TRUE(*out == elf);
  }
}

TEST(Vmlinux, RefusesDamage) {
  const std::string elf = testing::elf(5000), packed = testing::legacy_lz4(elf);
  const std::string good = testing::bzimage(packed, 5000);
  std::string no_magic = good, far = good, long_payload = good;
  no_magic[0x202] = 'x';
  far.replace(0x248, 4, "\xff\xff\xff\x7f");
  long_payload.replace(0x24C, 4, "\xff\xff\xff\xff");
  const struct {
    const char* reason;
    std::string image;
  } rows[] = {
      {"nothing", ""},
      {"cut in the header", good.substr(0, 0x210)},
      {"cut in the payload", good.substr(0, 3000)},
      {"no kernel image", no_magic},
      {"the payload lies beyond the end", far},
      {"the payload is longer than the file", long_payload},
      {"unpacks to another size", testing::bzimage(packed, 4999)},
      {"the payload is not compressed", testing::bzimage(elf, 5000)},
      {"no ELF inside", testing::bzimage(testing::legacy_lz4(std::string(5000, 'x')), 5000)},
  };
  for (const auto& [reason, image] : rows) EXPECT_FALSE(vmlinux_from_bzimage(image).has_value()) << reason;
}

TEST(Modules, SayWhatTheyNeed) {
  EXPECT_THAT(module_needs(testing::module("virtio,virtio-ring")), ElementsAre("virtio", "virtio_ring"));
  EXPECT_THAT(module_needs(testing::module("")), IsEmpty());
  EXPECT_THAT(module_needs("no module"), IsEmpty());
  EXPECT_THAT(module_needs(std::string("\0depends=cut", 12)), ElementsAre("cut"));
  EXPECT_THAT(module_needs(std::string("\0depends=,,a,", 13)), ElementsAre("a"));
}

class KernelPackage : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "kernelXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(folder_)); }

  Result<Kernel> unpack(const std::string& deb) {
    EXPECT_TRUE(write_file_atomic(folder_ + "/k.deb", deb));
    return unpack_kernel(folder_ + "/k.deb");
  }

  std::string folder_;
};

TEST_F(KernelPackage, GivesModulesInTheOrderOfLoading) {
  const auto kernel = unpack(testing::deb(folder_, testing::kernel_files()));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_EQ(kernel->release, "6.1.0-1-test");
  EXPECT_TRUE(kernel->vmlinux == testing::elf(5000));
  std::vector<std::string> files;
  for (const Module& module : kernel->modules) files.push_back(module.file);
  EXPECT_THAT(files, ElementsAre("virtio_ring.ko", "virtio.ko", "virtio_mmio.ko", "virtio_blk.ko",
                                 "virtio_console.ko", "failover.ko", "net_failover.ko", "virtio_net.ko",
                                 "virtio_rng.ko", "libcrc32c.ko", "erofs.ko", "overlay.ko"));
  EXPECT_EQ(kernel->modules[0].bytes, testing::module(""));
}

TEST_F(KernelPackage, NamesTheModuleThatIsMissing) {
  auto files = testing::kernel_files();
  std::erase_if(files, [](const auto& file) { return file.path.ends_with("/failover.ko"); });
  const auto kernel = unpack(testing::deb(folder_, files));
  ASSERT_FALSE(kernel.has_value());
  EXPECT_THAT(kernel.error().message, HasSubstr("'failover'"));
}

TEST_F(KernelPackage, NeedsInACircleEnd) {
  auto files = testing::kernel_files();
  for (auto& file : files) {
    if (file.path.ends_with("/failover.ko")) file.bytes = testing::module("net_failover");
  }
  EXPECT_FALSE(unpack(testing::deb(folder_, files)).has_value());
}

TEST_F(KernelPackage, RefusesWhatIsNoPackage) {
  EXPECT_FALSE(unpack("").has_value());
  EXPECT_FALSE(unpack("!<arch>\n").has_value());
  EXPECT_FALSE(unpack(std::string(10000, 'x')).has_value());
  const std::string good = testing::deb(folder_, testing::kernel_files());
  EXPECT_FALSE(unpack(good.substr(0, good.size() / 2)).has_value());
  EXPECT_FALSE(unpack(testing::deb(folder_, {{"usr/bin/x", "no kernel"}})).has_value());
}

TEST(Decompress, HoldsItsLimit) {
  const std::string packed = testing::legacy_lz4(std::string(10000, 'x'));
  EXPECT_EQ(decompress(packed, 10000)->size(), 10000u);
  EXPECT_EQ(decompress(packed, 9999).error().code, "image.too_large");
  EXPECT_FALSE(decompress("plain text", 100).has_value());
  EXPECT_FALSE(decompress("", 100).has_value());
}

}  // namespace
}  // namespace firestop::image
