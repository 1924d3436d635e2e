#include "manifest/explain_facts.h"

#include <cstdio>

#include "base/units.h"
#include "codec/utf8.h"

namespace firestop::manifest {
namespace {

std::string plain(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%g", value);
  return out;
}

const char* meaning_of_absence(Capability capability) {
  switch (capability) {
    case Capability::kShell:
      return "no program runs but the declared command";
    case Capability::kFilesystem:
      return "the workspace is read-only but for outputs";
    case Capability::kSkills:
      return "no skill folders";
    case Capability::kMemory:
      return "nothing is kept for the next run";
    case Capability::kCompaction:
      return "no place for a summary of the session";
  }
  return "";
}

}  // namespace

const char* meaning_of(Capability capability) {
  switch (capability) {
    case Capability::kShell:
      return "run any program of the image and the workspace";
    case Capability::kFilesystem:
      return "write in the workspace";
    case Capability::kSkills:
      return "read the declared skill folders";
    case Capability::kMemory:
      return "keep one folder for the next run of this name";
    case Capability::kCompaction:
      return "hand back a summary of the session";
  }
  return "";
}

std::string one_line(std::string_view text, size_t most) {
  std::string out = codec::printable(text, most);
  for (char& c : out)
    if (c == '\n' || c == '\t' || c == '\r') c = ' ';
  if (text.size() > most) out += "...";
  return out;
}

std::vector<std::string> variables_set_by_firestop(const Manifest& manifest) {
  std::vector<std::string> out{"HOME", "USER", "TERM"};
  if (!manifest.environment.contains("PATH")) out.insert(out.begin(), "PATH");
  return out;
}

std::vector<Cap> caps_of(const Manifest& manifest) {
  const Limits& limits = manifest.limits;
  std::vector<Cap> out;
  const auto add = [&](const char* field, const char* label, std::string text, codec::Json value,
                       const char* unit) {
    out.push_back({field, label, std::move(text), std::move(value), unit, manifest.declared.contains(field)});
  };
  const auto bytes = [&](const char* field, const char* label, uint64_t value, const char* note = "") {
    add(field, label, format_bytes(value) + note, codec::Json(value), "bytes");
  };
  const auto rate = [&](const char* field, const char* label, std::optional<uint64_t> value) {
    add(field, label, value ? format_bytes(*value) + "/s" : "not capped",
        value ? codec::Json(*value) : codec::Json(), "bytes a second");
  };
  const auto count = [&](const char* field, const char* label, uint32_t value, const char* unit) {
    add(field, label, std::to_string(value), codec::Json(static_cast<int64_t>(value)), unit);
  };
  add("rating", "time", format_duration(manifest.rating),
      codec::Json(static_cast<int64_t>(manifest.rating.count())), "milliseconds");
  add("idle", "idle time", manifest.idle ? format_duration(*manifest.idle) : "not capped",
      manifest.idle ? codec::Json(static_cast<int64_t>(manifest.idle->count())) : codec::Json(),
      "milliseconds");
  add("limits.cpus", "processors", plain(limits.cpus), codec::Json(limits.cpus), "processors");
  bytes("limits.memory", "memory", limits.memory);
  bytes("limits.disk", "disk", limits.disk);
  rate("limits.io", "disk I/O", limits.io);
  count("limits.processes", "processes", limits.processes, "processes");
  count("limits.open_files", "open files", limits.open_files, "files a process");
  bytes("limits.output", "stdout, stderr", limits.output);
  bytes("limits.result", "result", limits.result);
  count("limits.result_files", "result files", limits.result_files, "files");
  if (manifest.capabilities.contains(Capability::kMemory)) {
    bytes("limits.memory_directory", "memory folder", limits.memory_directory);
    count("limits.memory_files", "its files", limits.memory_files, "files");
  }
  if (manifest.egress.empty()) return out;
  add("limits.network.bytes", "network",
      limits.network.bytes ? format_bytes(*limits.network.bytes) : "not capped",
      limits.network.bytes ? codec::Json(*limits.network.bytes) : codec::Json(), "bytes");
  rate("limits.network.rate", "network rate", limits.network.rate);
  add("limits.network.connections", "connections",
      limits.network.connections ? std::to_string(*limits.network.connections) : "not capped",
      limits.network.connections ? codec::Json(static_cast<int64_t>(*limits.network.connections))
                                 : codec::Json(),
      "connections");
  return out;
}

std::vector<Denied> denied_by(const Manifest& manifest) {
  std::vector<Denied> out;
  if (manifest.egress.empty())
    out.push_back({"network", "no device but lo, no route, no name resolves"});
  else
    out.push_back({"other hosts", "no route: what no rule allows ends at the sandbox's own proxy"});
  if (manifest.credentials.empty())
    out.push_back({"credentials", "no secret of yours is inside, and none is used for it"});
  else
    out.push_back({"secrets", "placeholders are inside; the real values never enter"});
  out.push_back({"host files", "nothing but copies of what comes in"});
  out.push_back({"your checkout", "HEAD, index, files, configuration and hooks stay as they are"});
  out.push_back({"host services", "no SSH agent, container socket, display, keyring or process"});
  out.push_back({"root", "no uid 0, no Linux capabilities, no new privileges"});
  out.push_back({"devices", "no KVM (nested machines), GPU, USB or disk of the host"});
  for (const auto capability : kAllCapabilities)
    if (!manifest.capabilities.contains(capability))
      out.push_back({to_string(capability), std::string("capability: ") + meaning_of_absence(capability)});
  return out;
}

}  // namespace firestop::manifest
