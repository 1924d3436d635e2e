// Snapshot templates: a guest that booted, said "ready" and waits, as files below
// cache_directory()/templates:
//   <key>/memory      its memory, sparse; never given to QEMU, see memory.h
//   <key>/state       its devices (QEMU's migration stream without memory)
//   <key>/ready       what it had said on the channel
//   <key>/meta.json
//   <key>.lock        held while the template is made
//   <key>.new/        being made; renamed when complete
//   <key>.unusable    a fresh template did not start; why. For a day, boots of this key are cold.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "vmm/vmm.h"

namespace firestop::vmm {

// All that a template depends on. None of it is interpreted.
struct TemplateKey {
  std::string image_digest;
  std::string qemu, processor;  // see host.h
  std::string machine;          // QEMU's arguments: accelerator, memory, processors, devices and their order

  std::string name() const;  // 32 hexadecimal digits
};
Result<TemplateKey> template_key(const Machine& machine);

struct Template {
  std::string key;
  UniqueFd memory;
  uint64_t data_bytes = 0;  // that memory must hold, at least
  std::string state, ready;
};

std::string templates_directory();
// The template, or nothing if it is missing or was made for another clock rate. "vmm.template" if it is
// damaged.
Result<std::optional<Template>> open_template(const std::string& key, uint64_t memory, uint64_t tsc_khz);
// Held by whoever makes the template; waits for others.
Result<UniqueFd> lock_template(const std::string& key);
// Boots `machine` with empty disks and keeps it; the lock must be held. Errors: those of VmBuilder,
// "vmm.template".
Result<void> build_template(const std::string& key, const Machine& machine, uint64_t tsc_khz);
void mark_unusable(const std::string& key, const std::string& why);
std::optional<std::string> why_unusable(const std::string& key);

}  // namespace firestop::vmm
