#include "image/initramfs.h"

#include <sys/stat.h>

#include <cstdio>
#include <utility>

namespace firestop::image {

void CpioWriter::add_directory(std::string_view path) {
  add(path, S_IFDIR | 0755, {}, 0, 0);
}

void CpioWriter::add_file(std::string_view path, mode_t permissions, std::string_view bytes) {
  add(path, S_IFREG | permissions, bytes, 0, 0);
}

void CpioWriter::add_character_device(std::string_view path, mode_t permissions, unsigned major,
                                      unsigned minor) {
  add(path, S_IFCHR | permissions, {}, major, minor);
}

std::string CpioWriter::finish() {
  add("TRAILER!!!", 0, {}, 0, 0);
  serial_ = 0;
  return std::exchange(out_, {});
}

void CpioWriter::add(std::string_view path, mode_t mode, std::string_view bytes, unsigned major,
                     unsigned minor) {
  // magic, serial, mode, uid, gid, links, mtime, size, device, device of a special file, name length, check
  char head[111];
  std::snprintf(head, sizeof head, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", ++serial_,
                static_cast<unsigned>(mode), 0u, 0u, S_ISDIR(mode) ? 2u : 1u, 0u,
                static_cast<unsigned>(bytes.size()), 0u, 0u, major, minor,
                static_cast<unsigned>(path.size() + 1), 0u);
  const auto pad = [this] { out_.append((4 - out_.size() % 4) % 4, '\0'); };
  out_ += head;
  out_ += path;
  out_ += '\0';
  pad();
  out_ += bytes;
  pad();
}

std::string make_initramfs(std::string_view init, const std::vector<Module>& modules) {
  CpioWriter cpio;
  for (const char* folder : {"dev", "proc", "sys", "run", "mnt", "modules"}) cpio.add_directory(folder);
  cpio.add_character_device("dev/console", 0600, 5, 1);
  cpio.add_file("init", 0755, init);
  std::string order;
  for (const Module& module : modules) {
    cpio.add_file("modules/" + module.file, 0644, module.bytes);
    order += module.file + "\n";
  }
  cpio.add_file("modules.order", 0644, order);
  return cpio.finish();
}

}  // namespace firestop::image
