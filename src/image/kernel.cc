#include "image/kernel.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/path.h"
#include "image/unpack.h"

namespace firestop::image {

namespace {

constexpr uint64_t kVmlinuxLimit = 512u << 20;
constexpr uint64_t kFileLimit = 64u << 20;

// What the guest's init loads; the rest follows from their needs. Others that Debian builds in today
// (ext4) stand here too, in case that a kernel makes modules of them.
constexpr const char* kWanted[] = {"virtio_mmio", "virtio_blk", "virtio_console",
                                   "virtio_net",  "virtio_rng", "crc32c_generic",
                                   "erofs",       "ext4",       "overlay"};

template <typename T>
Result<T> field(std::string_view image, size_t offset) {
  T value;
  if (image.size() < sizeof value || offset > image.size() - sizeof value) {
    return fail("image.bad_kernel", "the kernel image is cut short");
  }
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

// Modules are named with '_' inside the kernel, their files with either.
std::string module_name(std::string_view path) {
  std::string name(file_name(path));
  name = name.substr(0, name.find(".ko"));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_module(const std::string& path) {
  return path.find("lib/modules/") != std::string::npos &&
         (path.ends_with(".ko") || path.ends_with(".ko.xz"));
}

Result<std::string> module_bytes(const std::string& path, std::string bytes) {
  if (path.ends_with(".ko")) return bytes;
  return decompress(bytes, kFileLimit);
}

// What one pass over the package tells.
struct Contents {
  std::string release, vmlinuz;
  std::set<std::string> built_in;
  std::map<std::string, std::vector<std::string>> needs;
};

Result<Contents> survey(const std::string& deb_path) {
  Contents contents;
  const auto want = [](const std::string& path) {
    return is_module(path) || path.starts_with("boot/vmlinuz-") || path.ends_with("/modules.builtin");
  };
  TRY(walk_deb(
      deb_path, want,
      [&contents](const std::string& path, std::string bytes) -> Result<void> {
        if (path.starts_with("boot/vmlinuz-")) {
          contents.release = path.substr(std::strlen("boot/vmlinuz-"));
          contents.vmlinuz = std::move(bytes);
        } else if (is_module(path)) {
          TRY_ASSIGN(const std::string module, module_bytes(path, std::move(bytes)));
          contents.needs[module_name(path)] = module_needs(module);
        } else {
          for (size_t from = 0; from < bytes.size();) {
            const size_t end = std::min(bytes.find('\n', from), bytes.size());
            contents.built_in.insert(module_name(std::string_view(bytes).substr(from, end - from)));
            from = end + 1;
          }
        }
        return {};
      },
      kFileLimit));
  if (contents.vmlinuz.empty()) return fail("image.bad_kernel", deb_path + ": no boot/vmlinuz inside");
  return contents;
}

Result<void> order(const Contents& contents, const std::string& name, int depth,
                   std::vector<std::string>& out) {
  if (contents.built_in.contains(name) || std::find(out.begin(), out.end(), name) != out.end()) return {};
  const auto found = contents.needs.find(name);
  if (found == contents.needs.end() || depth > 16) {
    return fail("image.bad_kernel", "kernel " + contents.release + " has no module '" + name + "'",
                "name another kernel package in the recipe");
  }
  for (const std::string& need : found->second) TRY(order(contents, need, depth + 1, out));
  out.push_back(name);
  return {};
}

}  // namespace

Result<std::string> vmlinux_from_bzimage(std::string_view image) {
  TRY_ASSIGN(const uint32_t magic, field<uint32_t>(image, 0x202));
  TRY_ASSIGN(const uint16_t version, field<uint16_t>(image, 0x206));
  if (magic != 0x53726448 || version < 0x208)
    return fail("image.bad_kernel", "not an x86 kernel image");  // "HdrS"
  TRY_ASSIGN(const uint8_t sectors, field<uint8_t>(image, 0x1F1));
  TRY_ASSIGN(const uint32_t offset, field<uint32_t>(image, 0x248));
  TRY_ASSIGN(const uint32_t length, field<uint32_t>(image, 0x24C));
  const uint64_t start = (uint64_t{sectors == 0 ? 4u : sectors} + 1) * 512 + offset;
  if (length <= 4 || start > image.size() || length > image.size() - start) {
    return fail("image.bad_kernel", "the kernel image is cut short");
  }
  // The payload's last four bytes are the size that it has unpacked.
  TRY_ASSIGN(const uint32_t unpacked, field<uint32_t>(image, start + length - 4));
  TRY_ASSIGN(std::string vmlinux, decompress(image.substr(start, length - 4), kVmlinuxLimit));
  if (vmlinux.size() != unpacked) return fail("image.bad_kernel", "the kernel image unpacks to another size");
  if (vmlinux.size() < sizeof(Elf64_Ehdr) || std::memcmp(vmlinux.data(), ELFMAG, SELFMAG) != 0 ||
      vmlinux[EI_CLASS] != ELFCLASS64) {
    return fail("image.bad_kernel", "the kernel image does not hold an ELF file");
  }
  return vmlinux;
}

std::vector<std::string> module_needs(std::string_view module) {
  // .modinfo is a run of NUL-terminated strings, and no other part of a module has this one.
  constexpr std::string_view kKey("\0depends=", 9);
  std::vector<std::string> needs;
  const size_t at = module.find(kKey);
  if (at == std::string_view::npos) return needs;
  std::string_view list = module.substr(at + kKey.size());
  list = list.substr(0, list.find('\0'));
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (end > 0) needs.push_back(module_name(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return needs;
}

Result<Kernel> unpack_kernel(const std::string& deb_path) {
  TRY_ASSIGN(const Contents contents, survey(deb_path));
  Kernel kernel;
  kernel.release = contents.release;
  TRY_ASSIGN(kernel.vmlinux, vmlinux_from_bzimage(contents.vmlinuz));
  std::vector<std::string> names;
  for (const char* wanted : kWanted) TRY(order(contents, wanted, 0, names));
  kernel.modules.resize(names.size());
  const auto place = [&names](const std::string& path) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), module_name(path)) - names.begin());
  };
  TRY(walk_deb(
      deb_path, [&](const std::string& path) { return is_module(path) && place(path) < names.size(); },
      [&](const std::string& path, std::string bytes) -> Result<void> {
        const size_t index = place(path);
        kernel.modules[index].file = names[index] + ".ko";
        TRY_ASSIGN(kernel.modules[index].bytes, module_bytes(path, std::move(bytes)));
        return {};
      },
      kFileLimit));
  return kernel;
}

}  // namespace firestop::image
