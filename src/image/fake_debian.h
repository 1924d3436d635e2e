// For tests only: a Debian kernel package and the programs mmdebstrap and apt, made up, so that building
// an image needs no network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace firestop::image::testing {

// The legacy LZ4 frame of kernels, with literals only.
std::string legacy_lz4(const std::string& data);
// A bzImage whose payload is `payload`, said to have `unpacked` bytes when it is unpacked.
std::string bzimage(const std::string& payload, uint32_t unpacked);
std::string elf(size_t size);
// A module that says that it needs others ("virtio,virtio_ring").
std::string module(const std::string& needs);

struct PackageFile {
  std::string path, bytes;
};
// deb(5), with data.tar.xz; `folder` is for temporary files.
std::string deb(const std::string& folder, const std::vector<PackageFile>& files);
// A package as Debian's: kernel "6.1.0-1-test", modules the guest needs, ext4 built in.
std::vector<PackageFile> kernel_files();

// Writes scripts `mmdebstrap`, `apt-get`, `apt-cache`, `apt-config` into `folder`/bin. They count their
// calls in `folder`/calls, and `folder`/mmdebstrap-extra (a shell text), if any, runs in mmdebstrap.
void fake_programs(const std::string& folder, const std::string& root_tar, const std::string& kernel_deb);

}  // namespace firestop::image::testing
