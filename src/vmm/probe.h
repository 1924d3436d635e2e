// The parts of probe_accelerator() (vmm.h) that can be tested without KVM.
#pragma once

#include <string>
#include <string_view>

namespace firestop::vmm {

// One line for people, from QEMU's stderr and the error of waiting for the guest.
std::string why_kvm_failed(std::string_view qemu_errors, std::string_view boot_error);

}  // namespace firestop::vmm
