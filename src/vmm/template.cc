#include "vmm/template.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "vmm/arguments.h"
#include "vmm/builder.h"
#include "vmm/host.h"
#include "vmm/memory.h"
#include "vmm/tsc.h"

namespace firestop::vmm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFormat = 2;
constexpr uint64_t kMaxState = 16u << 20;  // bytes; some 70 kB are usual
constexpr uint64_t kMaxReady = 128u << 10;
constexpr time_t kUnusableSeconds = 24 * 3600;
constexpr auto kSaveLimit = std::chrono::seconds(60);

std::string path_of(const std::string& key, std::string_view suffix = {}) {
  return join_path(templates_directory(), key + std::string(suffix));
}

Unexpected damaged(const std::string& key, const std::string& what) {
  return fail("vmm.template", "the snapshot template " + key + " is damaged: " + what);
}

// Lets QEMU write its device state; on return the machine has stopped for good.
Result<void> save_state(Started& started, int state) {
  Qmp& qmp = started.qmp;
  const Deadline deadline = Clock::now() + kSaveLimit;
  TRY(qmp.send("qmp_capabilities"));
  // Memory lies in a file already. The guest is not paused before: the state then says "running", and a
  // clone runs at once without being told.
  codec::JsonObject ignore{{"capability", "x-ignore-shared"}, {"state", true}};
  TRY(qmp.send("migrate-set-capabilities", {{"capabilities", codec::JsonArray{std::move(ignore)}}}));
  TRY(qmp.send("getfd", {{"fdname", "state"}}, state));
  TRY(qmp.execute("migrate", {{"uri", "fd:state"}}, deadline));
  for (;;) {
    TRY_ASSIGN(const codec::Json answer, qmp.execute("query-migrate", {}, deadline));
    const std::string status = answer.string_or("status", "");
    if (status == "completed") return {};
    if (status == "failed" || status == "cancelled")
      return fail("vmm.template", "QEMU could not save the guest: " + answer.string_or("error-desc", status));
    if (Clock::now() > deadline) return fail("vmm.template", "saving the guest took too long");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<UniqueFd> create(const std::string& directory, std::string_view name) {
  return open_file(join_path(directory, name), O_RDWR | O_CREAT | O_EXCL, 0600);
}

Result<void> write_synced(const std::string& directory, std::string_view name, std::string_view bytes) {
  TRY_ASSIGN(UniqueFd file, create(directory, name));
  TRY(write_all(file.get(), bytes));
  if (::fsync(file.get()) != 0) return fail_errno("vmm.template", "cannot sync the snapshot template");
  return {};
}

Result<void> write_files(const std::string& directory, const Machine& machine, uint64_t tsc_khz, int memory,
                         int state_fd, const std::string& ready) {
  if (::lseek(state_fd, 0, SEEK_SET) != 0) return fail_errno("vmm.template", "cannot read the guest's state");
  TRY_ASSIGN(const std::string state, read_all(state_fd, kMaxState));
  TRY_ASSIGN(UniqueFd memory_file, create(directory, "memory"));
  TRY_ASSIGN(const uint64_t data, save_memory(memory, memory_file.get(), machine.memory));
  if (::fsync(memory_file.get()) != 0) return fail_errno("vmm.template", "cannot sync the snapshot template");
  TRY(write_synced(directory, "state", state));
  TRY(write_synced(directory, "ready", ready));
  const codec::JsonObject meta{{"format", kFormat},
                               {"image_digest", machine.image_digest},
                               {"memory", machine.memory},
                               {"cpus", machine.cpus},
                               {"tsc_khz", tsc_khz},
                               {"data_bytes", data},
                               {"state_sha256", sha256_hex(state)},
                               {"created", static_cast<int64_t>(::time(nullptr))}};
  return write_synced(directory, "meta.json", codec::write_json_pretty(meta));
}

}  // namespace

std::string templates_directory() {
  return join_path(cache_directory(), "templates");
}

std::string TemplateKey::name() const {
  // Lengths keep the fields apart, whatever is in them.
  std::string text = "firestop template " + std::to_string(kFormat) + "\n";
  const auto add = [&text](std::string_view field) {
    text += std::to_string(field.size()) + ":" + std::string(field) + "\n";
  };
  add(image_digest);
  add(qemu);
  add(processor);
  add(machine);
  return sha256_hex(text).substr(0, 32);
}

Result<TemplateKey> template_key(const Machine& machine) {
  TRY_ASSIGN(const std::string program, qemu_program());
  TRY_ASSIGN(const std::string identity, file_identity(program));
  Plan plan;
  plan.accelerator = machine.accelerator;
  plan.memory = machine.memory;
  plan.cpus = machine.cpus;
  plan.unobserved = machine.unobserved;
  plan.disks = {{"root", -1, true}, {"scratch", -1, false}};
  for (size_t i = 0; i < kMaxDisks; ++i) plan.disks.push_back({"ro" + std::to_string(i), -1, true});
  if (machine.tap >= 0) plan.tap_fd = -1;
  std::string words;
  for (const auto& word : qemu_arguments(program, plan)) words += word + "\n";
  return TemplateKey{machine.image_digest, identity, processor_identity(), std::move(words)};
}

Result<std::optional<Template>> open_template(const std::string& key, uint64_t memory, uint64_t tsc_khz) {
  const UniqueFd directory(::open(path_of(key).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return std::nullopt;
  // Through the directory's descriptor: all files are of one template, also while it is being replaced.
  const auto open = [&](const char* name) {
    return UniqueFd(::openat(directory.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  };
  const auto read = [&](const char* name, uint64_t limit) -> Result<std::string> {
    const UniqueFd file = open(name);
    if (!file.valid()) return damaged(key, std::string(name) + " is missing");
    auto text = read_all(file.get(), limit);
    if (!text) return damaged(key, std::string(name) + ": " + text.error().message);
    return text;
  };
  TRY_ASSIGN(const std::string meta_text, read("meta.json", 64u << 10));
  const auto meta = codec::parse_json(meta_text);
  if (!meta || meta->int_or("format", 0) != kFormat) return damaged(key, "meta.json is unreadable");
  if (!same_tsc_rate(static_cast<uint64_t>(meta->int_or("tsc_khz", 0)), tsc_khz)) return std::nullopt;

  Template found;
  found.key = key;
  found.data_bytes = static_cast<uint64_t>(std::max<int64_t>(meta->int_or("data_bytes", 0), 0));
  TRY_ASSIGN(found.state, read("state", kMaxState));
  if (sha256_hex(found.state) != meta->string_or("state_sha256", ""))
    return damaged(key, "state has other bytes");
  TRY_ASSIGN(found.ready, read("ready", kMaxReady));
  found.memory = open("memory");
  struct stat st{};
  if (!found.memory.valid() || ::fstat(found.memory.get(), &st) != 0 ||
      static_cast<uint64_t>(st.st_size) != memory)
    return damaged(key, "memory is missing or has another size");
  ::futimens(directory.get(), nullptr);  // "used"; a cache that cannot be written still serves
  return std::optional(std::move(found));
}

Result<UniqueFd> lock_template(const std::string& key) {
  TRY(make_directories(templates_directory()));
  for (;;) {
    TRY_ASSIGN(UniqueFd file, open_file(path_of(key, ".lock"), O_RDWR | O_CREAT, 0600));
    while (::flock(file.get(), LOCK_EX) != 0)
      if (errno != EINTR) return fail_errno("vmm.template", "cannot lock the snapshot template " + key);
    struct stat st{};
    if (::fstat(file.get(), &st) == 0 && st.st_nlink > 0) return file;
    // Pruned while we waited: another file has the name now.
  }
}

Result<void> build_template(const std::string& key, const Machine& machine, uint64_t tsc_khz) {
  Machine bare = machine;  // nothing of this run
  bare.scratch = {};
  bare.disks.clear();
  bare.io_rate.reset();
  bare.run.clear();
  TRY_ASSIGN(const UniqueFd state, make_memory("state", 0));
  StartOptions options;
  options.tsc_khz = tsc_khz;
  TRY_ASSIGN(Started started, VmBuilder::start(bare, options));
  TRY_ASSIGN(const std::string ready, VmBuilder::wait_ready(started.vm, boot_limit(bare.accelerator)));
  if (auto saved = save_state(started, state.get()); !saved)
    return fail("vmm.template", saved.error().message + ": " + printable_tail(started.vm.qemu_errors(), 4));
  started.vm.kill();

  const std::string unfinished = path_of(key, ".new");
  TRY(remove_tree(unfinished));
  TRY(make_directories(unfinished));
  auto written = write_files(unfinished, bare, tsc_khz, started.memory.get(), state.get(), ready);
  if (written) {
    TRY(remove_template(key));  // one that fits no more
    if (::rename(unfinished.c_str(), path_of(key).c_str()) == 0) return {};
    written = fail_errno("vmm.template", "cannot keep the snapshot template " + path_of(key));
  }
  (void)remove_tree(unfinished);
  return written;
}

void mark_unusable(const std::string& key, const std::string& why) {
  (void)write_file_atomic(path_of(key, ".unusable"), why + "\n");
}

std::optional<std::string> why_unusable(const std::string& key) {
  const std::string path = path_of(key, ".unusable");
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || ::time(nullptr) - st.st_mtime > kUnusableSeconds) return std::nullopt;
  const auto text = read_file(path, 64u << 10);
  if (!text) return std::nullopt;
  return printable_tail(*text, 1);
}

}  // namespace firestop::vmm
