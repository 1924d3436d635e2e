#include "channel/messages.h"

#include "channel/variant.h"

namespace firestop::channel {
namespace {

// Bounds. Those of lists come from what there can be: 16 disks of each kind, see the guest's device slots.
constexpr size_t kMaxName = 256, kMaxSerial = 20, kMaxCommit = 64, kMaxPath = 4096;
constexpr size_t kMaxMemory = 1;
constexpr size_t kMaxMounts = 16, kMaxOutputs = 65, kMaxAccounts = 256, kMaxGroupsOfOne = 64;
constexpr size_t kMaxCapabilities = 64, kMaxSteps = 256, kMaxNotes = 64;
constexpr size_t kMaxStrings = 16384;  // arguments, environment: the frame is the real bound
constexpr size_t kMaxAuthority = 16384, kMaxFiles = 64;
constexpr size_t kMaxFilter = 4096 * 8;  // BPF_MAXINSNS of struct sock_filter
constexpr double kMaxCpus = 4096;
constexpr Range kAny32{0, UINT32_MAX}, kSize{}, kId{0, 4095}, kCells{0, UINT16_MAX};
constexpr Range kSignals{1, 64};         // SIGRTMAX
constexpr Range kWaitStatus{0, 0xffff};  // wait(2)

// The description of every message, for Writer and Reader: name, field, bound. C decides whether M is const.
template <typename C, typename M>
using Ref = typename C::template Ref<M>;

template <typename C>
void describe(C& c, Ref<C, Ready> m) {
  c.integer("version", m.version, {0, INT32_MAX});
  c.token("kernel", m.kernel, kMaxName);
}

template <typename C>
void describe(C& c, Ref<C, Start> m) {
  c.bytes("seed", m.seed, kSeedBytes);
  c.integer("time_ns", m.time_ns, kSize);
  c.token("hostname", m.hostname, 64);
  c.token("entries_serial", m.entries_serial, kMaxSerial);
  c.objects("repositories", m.repositories, kMaxMounts, [](C& e, Ref<C, RepositoryMount> r) {
    e.c_string("path", r.path, kMaxPath);
    e.token("serial", r.serial, kMaxSerial);
    e.token("commit", r.commit, kMaxCommit);
  });
  c.objects("mounts", m.mounts, kMaxMounts, [](C& e, Ref<C, ReadOnlyMount> r) {
    e.c_string("path", r.path, kMaxPath);
    e.token("serial", r.serial, kMaxSerial);
  });
  c.objects("outputs", m.outputs, kMaxOutputs, [](C& e, Ref<C, OutputDirectory> r) {
    e.c_string("path", r.path, kMaxPath);
    e.integer("max_bytes", r.max_bytes, kSize);
  });
  c.objects("memory", m.memory, kMaxMemory, [](C& e, Ref<C, MemoryDirectory> r) {
    e.c_string("path", r.path, kMaxPath);
    e.token("serial", r.serial, kMaxSerial);
    e.integer("max_bytes", r.max_bytes, kSize);
    e.integer("max_files", r.max_files, kAny32);
  });
  c.objects("accounts", m.accounts, kMaxAccounts, [](C& e, Ref<C, Account> r) {
    e.token("name", r.name, kMaxName);
    e.integer("uid", r.uid, kAny32);
    e.integer("gid", r.gid, kAny32);
    e.integers("groups", r.groups, kMaxGroupsOfOne);
  });
  c.objects("groups", m.groups, kMaxAccounts, [](C& e, Ref<C, Group> r) {
    e.token("name", r.name, kMaxName);
    e.integer("gid", r.gid, kAny32);
  });
  c.token("run_as", m.run_as, kMaxName);
  c.c_strings("environment", m.environment, kMaxStrings, codec::kMaxPayload);
  c.tokens("capabilities", m.capabilities, kMaxCapabilities, kMaxName);
  c.bytes("seccomp", m.seccomp, kMaxFilter);
  c.integer("memory_max", m.memory_max, kSize);
  c.integer("processes_max", m.processes_max, kAny32);
  c.integer("open_files_max", m.open_files_max, kAny32);
  c.real("cpus", m.cpus, kMaxCpus);
  c.boolean("network", m.network);
  c.bytes("authority", m.authority, kMaxAuthority);
  c.token("authority_hash", m.authority_hash, kMaxSerial);
  c.objects("files", m.files, kMaxFiles, [](C& e, Ref<C, StartFile> f) {
    e.c_string("path", f.path, kMaxPath);
    e.bytes("bytes", f.bytes, codec::kMaxPayload);
    e.integer("mode", f.mode, {0, 0777});
  });
  c.boolean("test_root", m.test_root);
}

template <typename C>
void describe(C& c, Ref<C, Started> m) {
  c.objects("steps", m.steps, kMaxSteps, [](C& e, Ref<C, Started::Step> s) {
    e.token("name", s.name, kMaxName);
    e.integer("us", s.us, kSize);
  });
}

template <typename C>
void describe(C& c, Ref<C, Exec> m) {
  c.integer("id", m.id, kId);
  c.c_strings("argv", m.argv, kMaxStrings, codec::kMaxPayload);
  c.boolean("terminal", m.terminal);
  c.c_string("term", m.term, kMaxName);
  c.integer("rows", m.rows, kCells);
  c.integer("columns", m.columns, kCells);
}

template <typename C>
void describe(C& c, Ref<C, Signal> m) {
  c.integer("id", m.id, kId);
  c.integer("signal", m.signal, kSignals);
}

template <typename C>
void describe(C& c, Ref<C, Resize> m) {
  c.integer("id", m.id, kId);
  c.integer("rows", m.rows, kCells);
  c.integer("columns", m.columns, kCells);
}

template <typename C>
void describe(C& c, Ref<C, Exited> m) {
  c.integer("id", m.id, kId);
  c.integer("status", m.status, kWaitStatus);
  c.boolean("out_of_memory", m.out_of_memory);
  c.integer("oom_kills", m.oom_kills, kAny32);
  c.integer("left_behind", m.left_behind, kAny32);
  c.text("cannot_start", m.cannot_start);
}

template <typename C>
void describe(C& c, Ref<C, Denied> m) {
  c.token("kind", m.kind, kMaxName);
  c.text("path", m.path);
  c.integer("count", m.count, kSize);
}

template <typename C>
void describe(C& c, Ref<C, Export> m) {
  c.boolean("repositories", m.repositories);
  c.boolean("outputs", m.outputs);
}

template <typename C>
void describe(C& c, Ref<C, Exported> m) {
  c.objects("repositories", m.repositories, kMaxMounts, [](C& e, Ref<C, Exported::Repository> r) {
    e.c_string("path", r.path, kMaxPath);
    e.boolean("changed", r.changed);
    e.boolean("uncommitted", r.uncommitted);
    e.text("error", r.error);
  });
  c.integer("output_files", m.output_files, kAny32);
  c.text("outputs_error", m.outputs_error);
  c.text("memory_error", m.memory_error);
  c.objects("notes", m.notes, kMaxNotes, [](C& e, Ref<C, Exported::Note> n) { e.text("text", n.text); });
}

template <typename C>
void describe(C&, Ref<C, Shutdown>) {}

template <typename C>
void describe(C& c, Ref<C, Failed> m) {
  c.text("step", m.step);
  c.text("message", m.message);
}

// The member "type", in the order of the variants' alternatives.
constexpr const char* kGuestTypes[] = {"ready", "started", "exited", "exported", "failed", "denied"};
constexpr const char* kHostTypes[] = {"start", "exec", "signal", "resize", "export", "shutdown"};
static_assert(std::size(kGuestTypes) == std::variant_size_v<FromGuest>);
static_assert(std::size(kHostTypes) == std::variant_size_v<FromHost>);

// What ranges alone do not say.
template <typename M>
const char* fault_of(const M&) {
  return nullptr;
}
const char* fault_of(const Start& m) {
  // A clone without fresh entropy shares its keys with every other clone.
  if (m.seed.size() != kSeedBytes) return "seed: of the wrong length";
  return m.seccomp.size() % 8 != 0 ? "seccomp: not a whole number of instructions" : nullptr;
}
const char* fault_of(const Exec& m) {
  return m.argv.empty() ? "argv: empty" : nullptr;
}

struct Description {
  template <typename C, typename M>
  void members(C& c, M& m) const {
    describe<C>(c, m);
  }
  template <typename M>
  const char* fault(const M& m) const {
    return fault_of(m);
  }
};

}  // namespace

Result<std::string> encode(const FromGuest& message) {
  return encode_variant(message, kGuestTypes, Description());
}
Result<std::string> encode(const FromHost& message) {
  return encode_variant(message, kHostTypes, Description());
}

Result<FromGuest> decode_from_guest(std::string_view json) {
  return decode_variant<FromGuest>(json, kGuestTypes, Unknown::kRefuse, Description());
}

Result<FromHost> decode_from_host(std::string_view json) {
  return decode_variant<FromHost>(json, kHostTypes, Unknown::kIgnore, Description());
}

}  // namespace firestop::channel
