#include "vmm/stub_kernel.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace firestop::vmm {
namespace {

constexpr uint64_t kEntry = 1u << 20;
constexpr uint32_t kPvhEntryNote = 18;  // XEN_ELFNOTE_PHYS32_ENTRY

struct Note {
  uint32_t name_size = 4, value_size = 4, type = kPvhEntryNote;
  char name[4] = {'X', 'e', 'n', '\0'};
  uint32_t entry = kEntry;
};

struct Image {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[2]{};
  Note note{};
  unsigned char code[4] = {0xf4, 0xeb, 0xfd, 0x90};  // hlt; jmp back
};

}  // namespace

std::string stub_kernel() {
  Image image;
  Elf64_Ehdr& header = image.header;
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_entry = kEntry;
  header.e_phoff = offsetof(Image, segments);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  Elf64_Phdr& code = image.segments[0];
  code.p_type = PT_LOAD;
  code.p_flags = PF_R | PF_X;
  code.p_offset = offsetof(Image, code);
  code.p_vaddr = code.p_paddr = kEntry;
  code.p_filesz = code.p_memsz = sizeof image.code;
  code.p_align = 4;
  Elf64_Phdr& note = image.segments[1];
  note.p_type = PT_NOTE;
  note.p_flags = PF_R;
  note.p_offset = offsetof(Image, note);
  note.p_filesz = note.p_memsz = sizeof image.note;
  note.p_align = 4;
  return std::string(reinterpret_cast<const char*>(&image), sizeof image);
}

}  // namespace firestop::vmm
