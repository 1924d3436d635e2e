#include "manifest/loader.h"

namespace firestop::manifest {

// The least values are what a guest needs to boot and to run a command; the most are beyond any machine
// that a sandbox would be given.
void load_limits(Loading& loading, const Place& place) {
  constexpr uint64_t kKiB = 1ull << 10, kMiB = 1ull << 20, kGiB = 1ull << 30, kTiB = 1ull << 40;
  Reader& reader = loading.reader;
  Limits& limits = loading.manifest.limits;
  const Fields fields(reader, place, kLimitsKeys, "limits");
  if (!fields.valid()) return;

  const auto bytes = [&](const char* key, auto& value, uint64_t least, uint64_t most) {
    if (const auto field = fields.get(key))
      if (const auto read = reader.bytes(*field, least, most)) value = *read;
  };
  const auto count = [&](const char* key, uint32_t& value, uint32_t least, uint32_t most) {
    if (const auto field = fields.get(key))
      if (const auto read = reader.integer(*field, least, most)) value = static_cast<uint32_t>(*read);
  };
  if (const auto field = fields.get("cpus"))
    if (const auto read = reader.number(*field, 0.1, 64)) limits.cpus = *read;
  bytes("memory", limits.memory, 128 * kMiB, kTiB);
  bytes("disk", limits.disk, 64 * kMiB, 16 * kTiB);
  if (const auto field = fields.get("io")) limits.io = reader.rate(*field, 64 * kKiB, 64 * kGiB);
  count("processes", limits.processes, 16, 65536);
  count("open_files", limits.open_files, 64, 1048576);
  bytes("output", limits.output, 1, kTiB);
  bytes("result", limits.result, 1, 16 * kTiB);
  count("result_files", limits.result_files, 1, 10000000);
  bytes("memory_directory", limits.memory_directory, 1, 16 * kGiB);
  count("memory_files", limits.memory_files, 1, 100000);
  if (!loading.manifest.capabilities.contains(Capability::kMemory))
    for (const char* key : {"memory_directory", "memory_files"})
      if (fields.has(key))
        reader.fault(fields.key_position(key), std::string("limits.") + key,
                     "caps the memory directory, which is not granted",
                     "expected memory among the capabilities");

  const auto network = fields.get("network");
  if (!network) return;
  const Fields parts(reader, *network, kNetworkKeys, "limits.network");
  if (!parts.valid()) return;
  if (const auto field = parts.get("bytes")) limits.network.bytes = reader.bytes(*field, 1, 16 * kTiB);
  if (const auto field = parts.get("rate")) limits.network.rate = reader.rate(*field, kKiB, 64 * kGiB);
  if (const auto field = parts.get("connections"))
    if (const auto read = reader.integer(*field, 1, 65536))
      limits.network.connections = static_cast<uint32_t>(*read);
}

}  // namespace firestop::manifest
