#include "guest/exec_rules.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "guest/boot.h"

namespace firestop::guest {
namespace {

constexpr size_t kScriptHead = 256;  // BINPRM_BUF_SIZE: what the kernel looks at
constexpr int kDeepest = 5;          // rewrites of a script's interpreter that the kernel goes along with
constexpr char kWhere[] = "/workspace";

bool contains(const std::vector<FileId>& files, const FileId& file) {
  return std::find(files.begin(), files.end(), file) != files.end();
}

void add(std::vector<FileId>& files, const FileId& file) {
  if (!contains(files, file)) files.push_back(file);
}

std::string from_workspace(std::string_view path) {
  return path.starts_with('/') ? std::string(path) : std::string(kWhere) + "/" + std::string(path);
}

// An open regular file that somebody may execute.
struct Program {
  UniqueFd fd;
  struct stat file{};
};

Result<Program> open_program(const Inside& root, const std::string& path) {
  Program program;
  TRY_ASSIGN(program.fd, root.open_at(path, O_RDONLY | O_NONBLOCK));
  if (::fstat(program.fd.get(), &program.file) != 0)
    return fail_errno("guest.exec", "cannot look at " + path);
  if (!S_ISREG(program.file.st_mode) || (program.file.st_mode & 0111) == 0)
    return fail("guest.exec", path + " is no program");
  return program;
}

Result<Program> look_up(const Inside& root, const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) return open_program(root, from_workspace(name));
  while (true) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string folder = from_workspace(path.substr(0, end));
    if (auto program = open_program(root, folder + "/" + name)) return program;
    if (end == path.size()) return fail("guest.exec", name + ": not found in PATH");
    path.remove_prefix(end + 1);
  }
}

// Where an open file lies, inside; "" if that cannot be said.
std::string place_of(const UniqueFd& fd) {
  char place[4096];
  const ssize_t length = ::readlink(path_of(fd).c_str(), place, sizeof place);
  const std::string_view text(place, length > 0 ? static_cast<size_t>(length) : 0);
  if (!text.starts_with(std::string(kRoot) + "/") || text.size() == sizeof place) return "";
  return std::string(text.substr(sizeof kRoot - 1));
}

bool is_env(const std::string& interpreter) {
  return interpreter == "/usr/bin/env" || interpreter == "/bin/env";
}

class Maker {
 public:
  Maker(const Inside& root, const std::string& path) : root_(root), path_(path) {}

  void allow(const std::string& name, int depth = 0) {
    const auto program = look_up(root_, name, path_);
    if (!program || depth > kDeepest) return;
    add(rules_.programs, FileId::of(program->file));
    if (program->file.st_uid != 0)
      if (const std::string place = place_of(program->fd); !place.empty()) rules_.pins.push_back(place);
    char head[kScriptHead];
    const ssize_t got = ::pread(program->fd.get(), head, sizeof head, 0);
    const Shebang shebang = parse_shebang({head, got > 0 ? static_cast<size_t>(got) : 0});
    if (!shebang.interpreter.empty()) {
      allow(from_workspace(shebang.interpreter), depth + 1);
      const std::string behind = is_env(shebang.interpreter) ? program_of_env(shebang.argument) : "";
      if (!behind.empty()) allow(behind, depth + 1);
      return;
    }
    const std::string loader = loader_of(program->fd.get());
    if (loader.empty()) return;
    if (const auto file = open_program(root_, from_workspace(loader)))
      add(rules_.loaders, FileId::of(file->file));
  }

  ExecRules take() { return std::move(rules_); }

 private:
  const Inside& root_;
  const std::string& path_;
  ExecRules rules_;
};

}  // namespace

FileId FileId::of(const struct stat& file) {
  return {file.st_dev, file.st_ino, static_cast<uint64_t>(file.st_size), file.st_ctim.tv_sec,
          file.st_ctim.tv_nsec};
}

bool ExecRules::is_program(const FileId& file) const {
  return contains(programs, file);
}

bool ExecRules::is_loader(const FileId& file) const {
  return contains(loaders, file);
}

ExecRules rules_of_command(const Inside& root, const std::string& name, const std::string& path) {
  Maker maker(root, path);
  maker.allow(name);
  return maker.take();
}

ExecRules rules_of_export(const Inside& root) {
  const std::string path = "/usr/local/bin:/usr/bin:/bin";
  Maker maker(root, path);
  for (const char* name :
       {"/bin/sh", "cp", "find", "git", "grep", "head", "mktemp", "rm", "tail", "tr", "wc", "xargs"})
    maker.allow(name);
  return maker.take();
}

Shebang parse_shebang(std::string_view head) {
  if (!head.starts_with("#!")) return {};
  head.remove_prefix(2);
  const size_t end = head.find('\n');
  // Cut in the middle of the interpreter's name, the kernel refuses it; cut later, it takes what is there.
  head = head.substr(0, std::min({end, head.find('\0'), head.size()}));
  constexpr std::string_view kBlank = " \t";
  head.remove_prefix(std::min(head.find_first_not_of(kBlank), head.size()));
  const size_t last = head.find_last_not_of(kBlank);
  head = head.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const size_t space = std::min(head.find_first_of(kBlank), head.size());
  Shebang shebang{std::string(head.substr(0, space)), ""};
  head.remove_prefix(space);
  head.remove_prefix(std::min(head.find_first_not_of(kBlank), head.size()));
  shebang.argument = head;
  return shebang;
}

std::string program_of_env(std::string_view argument) {
  bool split = false;
  for (const std::string_view option : {"-S", "--split-string="})
    if (!split && argument.starts_with(option)) {
      argument.remove_prefix(option.size());
      split = true;
    }
  // Without -S the whole rest of the line is one word, blanks and all.
  if (!split) return argument.starts_with('-') ? "" : std::string(argument);
  while (!argument.empty()) {
    argument.remove_prefix(std::min(argument.find_first_not_of(" \t"), argument.size()));
    const std::string_view word = argument.substr(0, argument.find_first_of(" \t"));
    argument.remove_prefix(word.size());
    if (!word.starts_with('-') && word.find('=') == std::string_view::npos) return std::string(word);
  }
  return "";
}

std::string loader_of(int fd) {
  Elf64_Ehdr header;
  if (::pread(fd, &header, sizeof header, 0) != sizeof header ||
      ::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const auto at = static_cast<off_t>(header.e_phoff + uint64_t{i} * sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return "";
    if (segment.p_type != PT_INTERP) continue;
    char name[4096];
    if (segment.p_filesz < 2 || segment.p_filesz > sizeof name ||
        ::pread(fd, name, segment.p_filesz, static_cast<off_t>(segment.p_offset)) !=
            static_cast<ssize_t>(segment.p_filesz))
      return "";
    return {name, ::strnlen(name, segment.p_filesz)};
  }
  return "";
}

}  // namespace firestop::guest
