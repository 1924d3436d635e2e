#include "jail/needed_files.h"

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/path.h"

namespace firestop::jail {
namespace {

constexpr size_t kMaxFiles = 512;
constexpr uint64_t kMaxTable = 4u << 20;  // bytes of a string table or dynamic section

struct Dynamic {
  std::string loader;
  std::vector<std::string> needed;
  std::vector<std::string> search;  // DT_RUNPATH or DT_RPATH, $ORIGIN resolved
};

Unexpected bad(const std::string& path, const std::string& what) {
  return fail("jail.program", path + ": " + what);
}

class ElfFile {
 public:
  static Result<Dynamic> read(const std::string& path) {
    ElfFile file(path);
    TRY_ASSIGN(file.fd_, open_file(path, O_RDONLY));
    return file.dynamic();
  }

 private:
  explicit ElfFile(const std::string& path) : path_(path) {}

  template <typename T>
  Result<std::vector<T>> table(uint64_t offset, uint64_t bytes) const {
    if (bytes > kMaxTable) return bad(path_, "a table is too large");
    std::vector<T> out(bytes / sizeof(T));
    const uint64_t wanted = out.size() * sizeof(T);
    if (::pread(fd_.get(), out.data(), wanted, static_cast<off_t>(offset)) != static_cast<ssize_t>(wanted))
      return bad(path_, "ends early");
    return out;
  }

  // Where the byte of this address lies in the file.
  std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const auto& segment : segments_)
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    return std::nullopt;
  }

  Result<Dynamic> dynamic() {
    TRY_ASSIGN(const auto header, table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr)));
    const Elf64_Ehdr& elf = header.front();
    if (std::string_view(reinterpret_cast<const char*>(elf.e_ident), SELFMAG) != ELFMAG ||
        elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64 ||
        elf.e_phentsize != sizeof(Elf64_Phdr))
      return bad(path_, "no ELF file for x86-64");
    TRY_ASSIGN(segments_, table<Elf64_Phdr>(elf.e_phoff, uint64_t{elf.e_phnum} * sizeof(Elf64_Phdr)));
    Dynamic out;
    std::vector<Elf64_Dyn> entries;
    for (const auto& segment : segments_) {
      if (segment.p_type == PT_INTERP) {
        TRY_ASSIGN(const auto text, table<char>(segment.p_offset, segment.p_filesz));
        out.loader = std::string(text.data(), strnlen(text.data(), text.size()));
      } else if (segment.p_type == PT_DYNAMIC) {
        TRY_ASSIGN(entries, table<Elf64_Dyn>(segment.p_offset, segment.p_filesz));
      }
    }
    uint64_t strings_at = 0, strings_size = 0;
    for (const auto& entry : entries) {
      if (entry.d_tag == DT_STRTAB) strings_at = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
    }
    if (strings_size == 0) return out;  // static
    const auto offset = offset_of(strings_at);
    if (!offset) return bad(path_, "its string table is nowhere");
    TRY_ASSIGN(const auto strings, table<char>(*offset, strings_size));
    const auto text = [&](uint64_t at) {
      return at < strings.size()
                 ? std::string(strings.data() + at, strnlen(strings.data() + at, strings.size() - at))
                 : std::string();
    };
    for (const auto& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) out.needed.push_back(text(entry.d_un.d_val));
      if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) add_search(text(entry.d_un.d_val), out);
    }
    return out;
  }

  void add_search(const std::string& list, Dynamic& out) const {
    const std::string origin = parent_path(path_);
    for (size_t at = 0; at <= list.size();) {
      const size_t end = std::min(list.find(':', at), list.size());
      std::string directory = list.substr(at, end - at);
      for (const std::string name : {"$ORIGIN", "${ORIGIN}"})
        if (const size_t found = directory.find(name); found != std::string::npos)
          directory.replace(found, name.size(), origin);
      if (directory.starts_with('/')) out.search.push_back(directory);
      at = end + 1;
    }
  }

  std::string path_;
  UniqueFd fd_;
  std::vector<Elf64_Phdr> segments_;
};

std::string real_path(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string out = resolved ? resolved : "";
  ::free(resolved);
  return out;
}

// ld.so.conf(5): a directory a line, and "include PATTERN".
void add_configured(const std::string& file, int depth, std::vector<std::string>& out) {
  const auto text = read_file(file, 1u << 20);
  if (!text || depth > 4) return;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    std::string line = text->substr(at, end - at);
    at = end + 1;
    line.erase(std::min(line.find('#'), line.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
    if (line.starts_with('/')) out.push_back(line);
    if (!line.starts_with("include ")) continue;
    glob_t found{};
    if (::glob(line.c_str() + 8, 0, nullptr, &found) == 0)
      for (size_t i = 0; i < found.gl_pathc; ++i) add_configured(found.gl_pathv[i], depth + 1, out);
    ::globfree(&found);
  }
}

}  // namespace

Result<NeededFiles> needed_files(const std::string& program, const std::vector<std::string>& modules) {
  std::vector<std::string> system;
  add_configured("/etc/ld.so.conf", 0, system);
  for (const char* directory :
       {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    system.emplace_back(directory);

  NeededFiles out;
  std::set<std::string> known;
  std::vector<std::string> todo{program};
  todo.insert(todo.end(), modules.begin(), modules.end());
  for (size_t i = 0; i < todo.size(); ++i) {
    if (todo.size() > kMaxFiles) return bad(program, "needs too many libraries");
    const std::string path = todo[i];
    out.files.push_back(path);
    TRY_ASSIGN(const Dynamic dynamic, ElfFile::read(path));
    if (!dynamic.loader.empty() && known.insert(std::string(file_name(dynamic.loader))).second)
      out.files.push_back(dynamic.loader);
    std::vector<std::string> search = dynamic.search;
    search.insert(search.end(), system.begin(), system.end());
    for (const std::string& name : dynamic.needed) {
      if (!known.insert(name).second) continue;
      std::string found;
      for (const auto& directory : search) {
        if (::access(join_path(directory, name).c_str(), R_OK) != 0) continue;
        const std::string real = real_path(directory);
        found = join_path(real, name);
        if (std::find(out.directories.begin(), out.directories.end(), real) == out.directories.end())
          out.directories.push_back(real);
        break;
      }
      if (found.empty()) return bad(path, "needs " + name + ", which is nowhere");
      todo.push_back(found);
    }
  }
  return out;
}

}  // namespace firestop::jail
