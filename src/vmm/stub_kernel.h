// A kernel that is never run. A machine that continues from a snapshot has its kernel in memory already, but
// QEMU still wants a bootable file, since the devices depend on there being one; a whole vmlinux would cost
// each clone 50 MB of memory.
#pragma once

#include <string>

namespace firestop::vmm {

// A 64-bit ELF with the Xen note that marks a PVH kernel, whose code is "hlt; jmp -1".
std::string stub_kernel();

}  // namespace firestop::vmm
