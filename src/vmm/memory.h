// A guest's memory as files. A running machine has it in an anonymous file of its own (memfd), a template in
// a sparse file on disk that QEMU never gets to see: a machine that was taken over cannot change what the
// next one starts from. QEMU 7.2 opens memory files for writing, even to map them privately; hence the copy,
// which runs while QEMU sets itself up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::vmm {

// An anonymous file of `size` bytes, all holes. `name` is for /proc only.
Result<UniqueFd> make_memory(const char* name, uint64_t size);
// An anonymous file with these bytes that nobody can change any more, open for reading.
Result<UniqueFd> make_sealed(const char* name, std::string_view bytes);

// Writes the non-zero pages of `memory` (`size` bytes) to the empty file `file`, holes elsewhere. Returns the
// number of bytes written.
Result<uint64_t> save_memory(int memory, int file, uint64_t size);
// Writes the data of `file` to `memory`, which is all holes. Returns the number of bytes written.
Result<uint64_t> load_memory(int file, int memory, uint64_t size);

}  // namespace firestop::vmm
