// Which files may be executed where `shell` is not granted: the declared command, what its "#!" lines name,
// and the loaders that the kernel itself opens for them. Files are told by identity, not by name, and are
// looked up once, before the command starts; what changes afterwards is another file.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guest/inside.h"

namespace firestop::guest {

// A file as it is now: with other bytes, or another name of it made, the change time differs, and an account
// without privileges cannot set that.
struct FileId {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t changed_s = 0, changed_ns = 0;
  static FileId of(const struct stat& file);
  bool operator==(const FileId&) const = default;
};

struct ExecRules {
  std::vector<FileId> programs;  // may be executed by name, and as interpreters of "#!" lines
  std::vector<FileId> loaders;   // may be opened by the kernel for an ELF program, and are no programs
  // Those that the account owns, absolute, inside: to be made read-only, so that they stay what they are.
  std::vector<std::string> pins;

  bool is_program(const FileId& file) const;
  bool is_loader(const FileId& file) const;
};

// `name` as execvp(3) finds it with `path` as PATH, from /workspace. A command that is not there has no
// rules: its execution fails by itself.
ExecRules rules_of_command(const Inside& root, const std::string& name, const std::string& path);

// What the export's script calls (export_script.h), as the image has it.
ExecRules rules_of_export(const Inside& root);

// The two words of a "#!" line, as the kernel takes them (binfmt_script); no interpreter: not a script.
struct Shebang {
  std::string interpreter, argument;
};
Shebang parse_shebang(std::string_view head);
// The program that `env ARGUMENT` would run; "" if there is none to be seen.
std::string program_of_env(std::string_view argument);
// PT_INTERP of a 64-bit ELF program, from an open file; "" without one.
std::string loader_of(int fd);

}  // namespace firestop::guest
