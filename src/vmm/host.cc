#include "vmm/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"

namespace firestop::vmm {

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id", 256);
  if (!text || text->size() < 36) return "unknown";
  return text->substr(0, 36);
}

Result<std::string> file_identity(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return fail_errno("vmm.file", "cannot look at " + path);
  const auto time = [](const timespec& t) {
    return std::to_string(t.tv_sec) + "." + std::to_string(t.tv_nsec);
  };
  return std::to_string(st.st_dev) + ":" + std::to_string(st.st_ino) + ":" + std::to_string(st.st_size) +
         ":" + time(st.st_mtim) + ":" + time(st.st_ctim);
}

std::string processor_identity_of(std::string_view cpuinfo) {
  static constexpr std::array<std::string_view, 6> kFields = {"vendor_id",  "cpu family", "model",
                                                              "model name", "stepping",   "flags"};
  std::string out;
  while (!cpuinfo.empty()) {
    const size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    if (line.empty()) break;  // the first processor speaks for all
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    std::string_view name = line.substr(0, line.find(':'));
    while (!name.empty() && (name.back() == '\t' || name.back() == ' ')) name.remove_suffix(1);
    for (const auto field : kFields)
      if (name == field) out.append(line).push_back('\n');
  }
  return out;
}

std::string processor_identity() {
  // One read: the kernel formats processor by processor, and there may be hundreds.
  const auto fd = open_file("/proc/cpuinfo", O_RDONLY);
  if (!fd) return "unknown";
  std::string text(8192, '\0');
  const ssize_t n = ::read(fd->get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return processor_identity_of(text);
}

Result<std::string> qemu_program() {
  std::string program = find_program("qemu-system-x86_64");
  if (program.empty())
    return fail("vmm.no_qemu", "qemu-system-x86_64 is not installed", "apt-get install qemu-system-x86");
  return program;
}

}  // namespace firestop::vmm
