// /init of a guest that only tests the machine around it. It says "ready" in a frame, as Firestop's own init
// does, and then answers lines of text with lines of text. What it does instead is decided by the file /mode:
//   silent   writes to the console and never says ready
//   ends     ends, so that the kernel panics
//   failed   says "failed"
//   garbage  says something that is no frame
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "codec/frame.h"

namespace {

using firestop::UniqueFd;

std::string contents(const std::string& path) {
  auto text = firestop::read_file(path, 1u << 20);
  std::string out = text ? *text : "";
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void put(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)firestop::write_all(file.get(), text);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  ::closedir(dir);
  return names;
}

void load_modules() {
  const std::string order = contents("/modules.order") + "\n";
  for (size_t at = 0; at < order.size();) {
    const size_t end = order.find('\n', at);
    const std::string name = order.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    const UniqueFd file(::open(("/modules/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    if (::syscall(SYS_finit_module, file.get(), "", 0) != 0 && errno != EEXIST)
      std::printf("test init: cannot load %s: errno %d\n", name.c_str(), errno);
  }
}

int open_port() {
  for (;;) {
    for (const auto& port : names_in("/sys/class/virtio-ports")) {
      if (contents("/sys/class/virtio-ports/" + port + "/name") != "firestop.0") continue;
      const int fd = ::open(("/dev/" + port).c_str(), O_RDWR | O_CLOEXEC);
      if (fd >= 0) return fd;
    }
    ::usleep(2000);  // the port is announced a little after the driver is there, and opens a little later
  }
}

std::string disk_with(const std::string& serial) {
  for (const auto& name : names_in("/sys/block"))
    if (contents("/sys/block/" + name + "/serial") == serial) return name;
  return {};
}

// Makes the kernel read the disk's size again.
void probe_again(const std::string& serial) {
  char path[4096];
  const std::string link = "/sys/block/" + disk_with(serial) + "/device";
  const ssize_t n = ::readlink(link.c_str(), path, sizeof path);
  if (n <= 0) return;
  std::string device(path, static_cast<size_t>(n));
  device.erase(0, device.rfind('/') + 1);
  put("/sys/bus/virtio/drivers/virtio_blk/unbind", device);
  put("/sys/bus/virtio/drivers/virtio_blk/bind", device);
}

std::string look_at(const std::string& serial) {
  if (serial != "root") probe_again(serial);
  const UniqueFd disk(::open(("/dev/" + disk_with(serial)).c_str(), O_RDONLY | O_CLOEXEC));
  uint64_t size = 0;
  char head[17] = {};
  if (!disk.valid() || ::ioctl(disk.get(), BLKGETSIZE64, &size) != 0 ||
      ::pread(disk.get(), head, 16, 0) != 16)
    return "cannot read " + serial;
  return serial + " " + std::to_string(size) + " " + head;
}

std::string write_to(const std::string& serial, const std::string& text) {
  probe_again(serial);
  const UniqueFd disk(::open(("/dev/" + disk_with(serial)).c_str(), O_WRONLY | O_CLOEXEC));
  std::string sector = text;
  sector.resize(512);
  if (!disk.valid()) return "cannot open";
  if (::pwrite(disk.get(), sector.data(), sector.size(), 0) != 512 || ::fsync(disk.get()) != 0)
    return "cannot write";
  return "written";
}

// How long it takes to read the whole disk, in milliseconds.
std::string time_reading(const std::string& serial) {
  probe_again(serial);
  const UniqueFd disk(::open(("/dev/" + disk_with(serial)).c_str(), O_RDONLY | O_CLOEXEC));
  timespec begin{}, end{};
  ::clock_gettime(CLOCK_MONOTONIC, &begin);
  static char buffer[65536];
  uint64_t bytes = 0;
  for (ssize_t n; (n = ::read(disk.get(), buffer, sizeof buffer)) > 0;) bytes += static_cast<uint64_t>(n);
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  return std::to_string(bytes) + " " +
         std::to_string((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
}

std::string clock_text() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

std::string answer(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "disk") return look_at(rest);
  if (word == "write") return write_to(rest.substr(0, rest.find(' ')), rest.substr(rest.find(' ') + 1));
  if (word == "read") return time_reading(rest);
  if (word == "clock") return clock_text();
  if (word == "spam") {
    const std::string noise(1023, '#');
    for (int i = 0; i < 96; ++i) std::printf("%s\n", noise.c_str());
    return "spammed";
  }
  return line;
}

}  // namespace

int main() {
  ::mount("dev", "/dev", "devtmpfs", 0, nullptr);
  ::mount("proc", "/proc", "proc", 0, nullptr);
  ::mount("sys", "/sys", "sysfs", 0, nullptr);
  const int console = ::open("/dev/console", O_RDWR | O_CLOEXEC);
  ::dup2(console, 1);
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  load_modules();
  const std::string mode = contents("/mode");
  std::printf("test init: mode '%s'\n", mode.c_str());
  if (mode == "ends") return 1;
  if (mode == "silent") {
    std::printf("test init: saying nothing \033[31mon purpose\033[0m\n");
    for (;;) ::pause();
  }
  const int port = open_port();
  std::string first;
  firestop::codec::append_frame(first, firestop::codec::FrameType::kControl, 0,
                                mode == "failed"
                                    ? R"({"type":"failed","step":"root","message":"no such disk"})"
                                    : R"({"type":"ready","version":1,"kernel":"test"})");
  if (mode == "garbage") first = "Login: Login: Login: ";
  (void)firestop::write_all(port, first);
  std::string pending;
  for (;;) {
    char buffer[4096];
    const ssize_t n = ::read(port, buffer, sizeof buffer);
    if (n <= 0) {
      ::usleep(10000);
      continue;
    }
    pending.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      (void)firestop::write_all(port, answer(pending.substr(0, end)) + "\n");
  }
}
