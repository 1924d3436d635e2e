#include "image/fake_debian.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "base/file.h"
#include "base/path.h"
#include "base/process.h"

namespace firestop::image::testing {

namespace {

template <typename T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

std::string ar_member(const std::string& name, const std::string& bytes) {
  char head[61];
  std::snprintf(head, sizeof head, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name.c_str(), 0, 0, 0, "100644",
                bytes.size());
  return head + bytes + (bytes.size() % 2 != 0 ? "\n" : "");
}

}  // namespace

std::string legacy_lz4(const std::string& data) {
  std::string block(1, static_cast<char>((data.size() < 15 ? data.size() : 15) << 4));
  if (data.size() >= 15) {
    size_t rest = data.size() - 15;
    for (; rest >= 255; rest -= 255) block += '\xff';
    block += static_cast<char>(rest);
  }
  block += data;
  return std::string("\x02\x21\x4c\x18") + little(static_cast<uint32_t>(block.size())) + block;
}

std::string bzimage(const std::string& payload, uint32_t unpacked) {
  constexpr size_t kSetup = 1024, kOffset = 64;
  std::string image(kSetup + kOffset, 'S');
  const auto put = [&image](size_t at, const std::string& bytes) { image.replace(at, bytes.size(), bytes); };
  put(0x1F1, std::string(1, '\x01'));  // setup_sects, so the rest begins at 1024
  put(0x202, "HdrS");
  put(0x206, little(uint16_t{0x20F}));
  put(0x248, little(static_cast<uint32_t>(kOffset)));
  put(0x24C, little(static_cast<uint32_t>(payload.size() + 4)));
  return image + payload + little(unpacked) + "what follows the payload";
}

std::string elf(size_t size) {
  std::string file =
      "\x7f"
      "ELF\x02\x01\x01";
  for (size_t i = file.size(); i < size; ++i) file += static_cast<char>('a' + i % 23);
  return file;
}

std::string module(const std::string& needs) {
  using namespace std::string_literals;
  return "\x7f"
         "ELF"s +
         "\0license=GPL\0depends="s + needs + "\0name=x\0"s;
}

std::string deb(const std::string& folder, const std::vector<PackageFile>& files) {
  const std::string tree = folder + "/package";
  must(remove_tree(tree));
  for (const auto& [path, bytes] : files) {
    must(make_directories(parent_path(tree + "/" + path), 0755));
    must(write_file_atomic(tree + "/" + path, bytes, 0644));
  }
  const auto data = run_checked({.argv = {"tar", "-C", tree, "-cJf", "-", "."}});
  if (!data) throw std::runtime_error(data.error().message);
  return "!<arch>\n" + ar_member("debian-binary", "2.0\n") + ar_member("control.tar", "none") +
         ar_member("data.tar.xz", *data);
}

std::vector<PackageFile> kernel_files() {
  const std::string vmlinux = elf(5000), top = "lib/modules/6.1.0-1-test/";
  const std::string kernel = bzimage(legacy_lz4(vmlinux), static_cast<uint32_t>(vmlinux.size()));
  return {{"boot/vmlinuz-6.1.0-1-test", kernel},
          {top + "modules.builtin", "kernel/fs/ext4/ext4.ko\nkernel/crypto/crc32c_generic.ko\n"},
          {top + "kernel/drivers/virtio/virtio.ko", module("virtio_ring")},
          {top + "kernel/drivers/virtio/virtio_ring.ko", module("")},
          {top + "kernel/drivers/virtio/virtio_mmio.ko", module("virtio,virtio_ring")},
          {top + "kernel/drivers/block/virtio_blk.ko", module("virtio,virtio_ring")},
          {top + "kernel/drivers/char/virtio_console.ko", module("virtio,virtio_ring")},
          {top + "kernel/drivers/char/hw_random/virtio-rng.ko", module("virtio,virtio_ring")},
          {top + "kernel/drivers/net/virtio_net.ko", module("virtio_ring,virtio,net_failover")},
          {top + "kernel/drivers/net/net_failover.ko", module("failover")},
          {top + "kernel/net/core/failover.ko", module("")},
          {top + "kernel/lib/libcrc32c.ko", module("")},
          {top + "kernel/fs/erofs/erofs.ko", module("libcrc32c")},
          {top + "kernel/fs/overlayfs/overlay.ko", module("")},
          {top + "kernel/fs/xfs/xfs.ko", module("libcrc32c")}};
}

void fake_programs(const std::string& folder, const std::string& root_tar, const std::string& kernel_deb) {
  const auto script = [&folder](const std::string& name, const std::string& body) {
    must(write_file_atomic(folder + "/bin/" + name,
                           "#!/bin/sh\necho \"" + name + " $*\" >> " + folder + "/calls\n" + body, 0755));
  };
  must(make_directories(folder + "/bin"));
  must(write_file_atomic(folder + "/root.tar", root_tar));
  must(write_file_atomic(folder + "/kernel.deb", kernel_deb));
  script("mmdebstrap",
         "echo 'I: running apt-get update...' >&2\n[ ! -e " + folder + "/mmdebstrap-extra ] || . " + folder +
             "/mmdebstrap-extra\necho 'I: creating tarball...' >&2\ncat " + folder + "/root.tar\n");
  script("apt-get", "[ ! -e " + folder + "/apt-extra ] || . " + folder +
                        "/apt-extra\n[ \"$1\" != download ] || cp " + folder +
                        "/kernel.deb linux-image_1_amd64.deb\n");
  script("apt-cache", "echo linux-image-cloud-amd64; echo '  Depends: linux-image-6.1.0-1-test'\n");
  script("apt-config", "echo 'Acquire::http::Proxy \"http://proxy.example:3128\";'\n");
}

}  // namespace firestop::image::testing
