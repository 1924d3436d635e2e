#include "sandbox/run.h"

#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "image/image.h"
#include "jail/cgroup.h"
#include "jail/container_filter.h"
#include "sandbox/caps.h"
#include "sandbox/memory_store.h"
#include "sandbox/network.h"
#include "sandbox/recorder.h"
#include "sandbox/results.h"
#include "sandbox/session.h"
#include "vmm/vmm.h"

namespace firestop::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

int64_t wall_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

// Where the time goes, for the record and for bench/start.
class Steps {
 public:
  explicit Steps(std::vector<std::pair<std::string, int64_t>>& steps) : steps_(steps) {}
  void done(const std::string& name) {
    const auto now = Clock::now();
    steps_.emplace_back(name, std::chrono::duration_cast<std::chrono::microseconds>(now - since_).count());
    since_ = now;
  }
  void restart() { since_ = Clock::now(); }

 private:
  std::vector<std::pair<std::string, int64_t>>& steps_;
  Clock::time_point since_ = Clock::now();
};

Result<void> check_room(const std::string& directory, uint64_t needed) {
  struct statvfs fs{};
  if (::statvfs(directory.c_str(), &fs) != 0)
    return fail_errno("disk.unknown", "cannot ask for free space at " + directory);
  const uint64_t free = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
  if (free >= needed) return {};
  return fail("disk.full",
              directory + " has " + format_bytes(free) + " free; limits.disk and limits.result may need " +
                  format_bytes(needed),
              "free some space, lower the limits, or set XDG_STATE_HOME to a larger disk");
}

int plan_failure_status(const Error& error) {
  if (error.code.starts_with("signature.")) return static_cast<int>(ExitStatus::kSignature);
  const bool usage = error.code.starts_with("usage.") || error.code == "manifest.unreadable";
  return static_cast<int>(usage ? ExitStatus::kUsage : ExitStatus::kCannotStart);
}

Result<std::vector<workspace::PackedFile>> write_memory(const Plan& plan, const OwnedMemory& memory,
                                                        const workspace::Owner& owner,
                                                        const std::string& path) {
  auto written = workspace::write_memory_image(memory.content(), owner, memory_cap(plan.manifest), path);
  if (written) return written;
  return fail(
      "memory.unusable",
      "what is kept under the name '" + memory.name() + "' cannot be used: " + written.error().message,
      "raise limits.memory_directory or limits.memory_files if they are lower than they were, look "
      "into the folder, or remove it: firestop memory forget " +
          memory.name());
}

// The disks of one run, made below its directory where they are not shared from the cache.
Result<std::vector<vmm::Disk>> make_disks(const Plan& plan, const std::string& directory,
                                          const OwnedMemory& memory, Recorder& recorder) {
  const auto uid = plan.manifest.uid_of(plan.manifest.run_as);
  const workspace::Owner owner{uid, uid};
  std::vector<vmm::Disk> disks;
  for (const auto& disk : plan.disks) {
    std::string path = directory + "/" + disk.serial + ".erofs";
    std::vector<workspace::PackedFile> files;
    switch (disk.content) {
      case PlannedDisk::Content::kEntries: {
        TRY_ASSIGN(files, workspace::write_entries_image(plan.manifest, plan.binds, path));
        break;
      }
      case PlannedDisk::Content::kRepository: {
        TRY_ASSIGN(path, workspace::repository_image(plan.repositories[disk.repository], owner));
        break;
      }
      case PlannedDisk::Content::kMount: {
        TRY_ASSIGN(files, workspace::write_mount_image(disk.mount_source, owner, path));
        break;
      }
      case PlannedDisk::Content::kSkills: {
        TRY_ASSIGN(files, workspace::write_skills_image(plan.manifest, plan.binds, path));
        break;
      }
      case PlannedDisk::Content::kMemory: {
        TRY_ASSIGN(files, write_memory(plan, memory, owner, path));
        break;
      }
    }
    recorder.files_in(disk, files);
    disks.push_back({disk.serial, path, true});
  }
  return disks;
}

Result<vmm::Machine> make_machine(const Plan& plan, const OwnedRun& run, const image::BootFiles& boot,
                                  vmm::Accelerator accelerator, const OwnedMemory& memory,
                                  Recorder& recorder) {
  const auto& limits = plan.manifest.limits;
  vmm::Machine machine;
  machine.kernel = boot.kernel;
  machine.initramfs = boot.initramfs;
  machine.image_digest = boot.digest;
  machine.root = {"root", boot.root, true};
  machine.scratch = {"scratch", run.directory() + "/scratch.img", false};
  TRY(workspace::make_scratch_disk(machine.scratch.path, limits.disk));
  TRY_ASSIGN(machine.disks, make_disks(plan, run.directory(), memory, recorder));
  machine.memory = limits.memory;
  machine.cpus = static_cast<unsigned>(std::ceil(limits.cpus));
  machine.io_rate = limits.io;
  machine.run = file_name(run.directory());
  machine.processor_time = limits.cpus;
  machine.accelerator = accelerator;
  machine.unobserved = std::getenv("FIRESTOP_TEST_WITHOUT_COLLECTORS") != nullptr;
  return machine;
}

struct Finished {
  int status = 0;
  std::optional<Error> error;
};

// The number and the reason that a session's end stands for, before its results are looked at.
Finished judge(const SessionEnd& end, const manifest::Manifest& manifest) {
  const auto own = [](ExitStatus status, std::string code, std::string message, std::string hint = {}) {
    return Finished{static_cast<int>(status), Error{std::move(code), std::move(message), std::move(hint), 0}};
  };
  switch (end.cause) {
    case EndCause::kRating:
      return own(ExitStatus::kRating, "rating.reached",
                 "the rating of " + format_duration(manifest.rating) + " was reached; the command was ended",
                 "raise 'rating' in the manifest if it needs longer");
    case EndCause::kIdle:
      return own(ExitStatus::kRating, "idle.reached",
                 "nothing happened for " + format_duration(manifest.idle.value_or(manifest.rating)) +
                     "; the command was ended",
                 "raise 'idle' in the manifest if it needs to wait longer");
    case EndCause::kOutputCap:
      return own(ExitStatus::kCap, "cap.output",
                 "more output than limits.output (" + format_bytes(manifest.limits.output) +
                     "); the command was ended",
                 "raise limits.output, or write to a file");
    case EndCause::kNetworkCap:
      return own(ExitStatus::kCap, "cap.network",
                 "more network traffic than limits.network.bytes (" +
                     format_bytes(manifest.limits.network.bytes.value_or(0)) + "); the command was ended",
                 "raise limits.network.bytes");
    case EndCause::kAlarm:
      return own(
          ExitStatus::kCap, "credential.elsewhere",
          "a credential's placeholder was about to leave for where it does not belong; nothing left, and the "
          "run was ended, as its on_alarm says",
          "`firestop network` says where it was going");
    case EndCause::kInterrupted:
      return Finished{128 + SIGINT, Error{"run.interrupted", "interrupted; the command was ended", {}, 0}};
    case EndCause::kFailed: {
      const Error error = end.error.value_or(Error{"guest.failed", "the machine failed", {}, 0});
      const bool unrecorded = error.code.starts_with("evidence.");
      const auto status = !end.ran     ? ExitStatus::kCannotStart
                          : unrecorded ? ExitStatus::kRecord
                                       : ExitStatus::kHelper;
      return Finished{static_cast<int>(status), error};
    }
    case EndCause::kExited:
      break;
  }
  if (!end.exited)
    return own(ExitStatus::kHelper, "guest.failed", "the session ended without the command's status");
  const auto& exited = *end.exited;
  if (!exited.cannot_start.empty())
    return own(ExitStatus::kCannotStart, "command.cannot_start", exited.cannot_start,
               "the command is looked up in the guest's PATH, below /workspace");
  if (exited.out_of_memory)
    return own(ExitStatus::kCap, "cap.memory",
               "the command was killed for want of memory (limits.memory is " +
                   format_bytes(manifest.limits.memory) + ")",
               "raise limits.memory");
  const int status = exited.status;
  return Finished{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), std::nullopt};
}

void note_what_was_killed(const SessionEnd& end, std::vector<std::string>& notes) {
  if (!end.exited) return;
  if (end.exited->left_behind > 0)
    notes.push_back(std::to_string(end.exited->left_behind) +
                    " processes outlived the command and were ended");
  if (end.exited->oom_kills > 0 && !end.exited->out_of_memory)
    notes.push_back(std::to_string(end.exited->oom_kills) + " processes were killed for want of memory");
}

void note_what_was_refused(const SessionEnd& end, RunRecord& record, std::vector<std::string>& notes) {
  std::string paths;
  uint64_t times = 0;
  for (const auto& denied : end.denied) {
    record.denied.push_back({denied.kind, denied.path, static_cast<int64_t>(denied.count)});
    times += denied.count;
    if (record.denied.size() <= 5)
      paths += (paths.empty() ? "" : ", ") + (denied.path.empty() ? "others" : denied.path);
  }
  if (record.denied.size() > 5) paths += ", ...";
  if (times > 0)
    notes.push_back("`shell` is not granted: " + std::to_string(times) +
                    (times == 1 ? " execution was refused: " : " executions were refused: ") + paths);
}

void take_over(const RunRecord::Network& seen, RunRecord::Network& record) {
  auto connect_to = std::move(record.connect_to);
  auto upstream_ca = std::move(record.upstream_ca);
  record = seen;
  record.connect_to = std::move(connect_to);
  record.upstream_ca = std::move(upstream_ca);
}

class Life {
 public:
  Life(const RunRequest& request, const RunEvents& events) : request_(request), events_(events) {}

  // From a plan to the end of the machine. An error means that nothing ran.
  Result<SessionEnd> live(const Plan& plan, OwnedRun& run, Recorder& recorder) {
    Steps steps(run.record().steps_us);
    TRY(take_memory(plan, run));
    TRY(check_room(run.directory(), room_for(plan)));
    TRY_ASSIGN(const auto boot, image::ensure(plan.manifest.image.recipe, events_.progress));
    TRY(plan.seal.check_image(boot.digest));
    TRY_ASSIGN(auto executables, image::executables_of(boot));
    recorder.executables(std::move(executables));
    steps.done("image");
    TRY_ASSIGN(const auto probe, vmm::probe_accelerator(boot.kernel, boot.initramfs, boot.root));
    if (!probe.why.empty()) notice("running without KVM, some six times slower: " + probe.why);
    steps.done("accelerator");
    run.record().image = boot.name;
    run.record().image_digest = boot.digest;
    run.record().accelerator = probe.accelerator == vmm::Accelerator::kKvm ? "kvm" : "tcg";
    TRY_ASSIGN(auto machine, make_machine(plan, run, boot, probe.accelerator, memory_, recorder));
    steps.done("workspace");
    TRY_ASSIGN(auto filter, jail::container_filter());
    SessionConfig config;
    config.start = make_start(plan, std::move(filter));
    if (std::getenv("FIRESTOP_TEST_GUEST_ROOT")) {
      notice(
          "FIRESTOP_TEST_GUEST_ROOT: the command is root in the machine, without its container (for attack "
          "tests)");
      config.start.test_root = true;
    }
    if (machine.unobserved)
      notice("FIRESTOP_TEST_WITHOUT_COLLECTORS: nothing that happens inside is observed (for measurements)");
    config.exec.argv = plan.command;
    config.exec.terminal = request_.terminal;
    config.exec.term = request_.terminal ? request_.term : "dumb";
    const auto size = LocalIo::window_size();
    config.exec.rows = size.rows;
    config.exec.columns = size.columns;
    config.rating = plan.manifest.rating;
    config.idle = plan.manifest.idle;
    config.output_limit = plan.manifest.limits.output;
    config.result_limit = plan.manifest.limits.result;
    for (size_t i = 0; i < plan.repositories.size(); ++i) config.bundle_paths.push_back(bundle_path(run, i));
    config.outputs_path = archive_path(run);
    config.memory_path = memory_archive_path(run);
    config.memory_limit = memory_archive_limit(memory_cap(plan.manifest));
    TRY(run.save());
    steps.done("record");
    std::unique_ptr<Network> network;
    if (!plan.manifest.egress.empty()) {
      TRY_ASSIGN(network, Network::make(plan.egress, plan.bindings, plan.manifest.limits.network));
      config.start.network = true;
      config.start.authority = network->ready().authority;
      config.start.authority_hash = network->ready().authority_hash;
      config.network = network.get();
      network->on_crossing([&recorder](const egress::Crossing& crossing) { recorder.crossing(crossing); });
      for (const auto& credential : plan.manifest.credentials)
        config.on_alarm[credential.name] = credential.on_alarm;
      config.notice = [this](const std::string& text) { notice(text); };
      machine.tap = network->tap();
      steps.done("network");
    }
    TRY_ASSIGN(auto launched, vmm::launch(machine, [this](const std::string& text) { notice(text); }));
    for (const auto& s : launched.vm.steps())
      run.record().steps_us.emplace_back("vmm: " + s.step, s.took.count());
    if (network) network->tap_is_taken();
    steps.done("launch");
    if (const jail::Cgroup* group = launched.vm.cgroup()) {
      run.record().caps = kept_caps(group->caps(), &plan.manifest);
      run.record().caps_note = group->caps().why;
    }
    TRY_ASSIGN(const auto io, LocalIo::open({.terminal = request_.terminal}));
    run.record().state = RunState::kRunning;
    run.record().started_ms = wall_ms();
    TRY(run.save());
    recorder.plan(plan, run.record());
    recorder.caps(run.record().caps);
    TRY(recorder.check());
    config.recorder = &recorder;
    Session session(launched.vm, *io, std::move(config));
    SessionEnd end = session.run(launched.ready);
    launched.vm.drain_console();
    if (!launched.vm.console().empty())
      (void)write_file_atomic(run.directory() + "/console.log", launched.vm.console());
    launched.vm.kill();
    if (network) {
      network->finish();
      take_over(network->summary(), run.record().network);
      recorder.lost("network", network->summary().lost);
    }
    io->finish();
    io->restore_terminal();
    return end;
  }

  void notice(const std::string& text) const {
    if (events_.notice) events_.notice(text);
  }

  // FIRESTOP_TEST_RECORD_CONTENTS: bytes of programs and scripts that a run keeps, so that tests reach the
  // end.
  evidence::LogLimits record_limits() const {
    evidence::LogLimits limits;
    const char* given = std::getenv("FIRESTOP_TEST_RECORD_CONTENTS");
    if (given == nullptr) return limits;
    notice(std::string("FIRESTOP_TEST_RECORD_CONTENTS: the record keeps ") + given +
           " bytes of what runs (for tests)");
    limits.content_bytes = std::strtoull(given, nullptr, 10);
    return limits;
  }

  // This run's, until it has ended; not valid where `memory` is not granted.
  OwnedMemory& memory() { return memory_; }

 private:
  Result<void> take_memory(const Plan& plan, OwnedRun& run) {
    if (!plan.manifest.capabilities.contains(manifest::Capability::kMemory)) return {};
    TRY_ASSIGN(memory_, MemoryStore(state_directory()).take(plan.manifest.name, run.record().id));
    const auto before = memory_.record();
    run.record().memory = {plan.manifest.name, false, before.files, before.bytes, ""};
    // One name is one memory, wherever the manifest lies: somebody else's is at least said.
    const std::string mine = join_path(plan.manifest.folder, file_name(plan.manifest.file));
    if (!before.manifest_file.empty() && before.manifest_file != mine)
      notice("the memory of '" + plan.manifest.name +
             "' was kept by another manifest: " + before.manifest_file);
    return {};
  }

  static uint64_t room_for(const Plan& plan) {
    const auto& limits = plan.manifest.limits;
    // Its image, its archive, and what is unpacked.
    const bool keeps = plan.manifest.capabilities.contains(manifest::Capability::kMemory);
    return limits.disk + limits.result + (keeps ? 3 * limits.memory_directory : 0);
  }

  OwnedMemory memory_;
  const RunRequest& request_;
  const RunEvents& events_;
};

void conclude(const Plan& plan, OwnedRun& run, const SessionEnd& end, OwnedMemory& memory, RunEnd& out) {
  auto& record = run.record();
  record.steps_us.insert(record.steps_us.end(), end.steps_us.begin(), end.steps_us.end());
  const auto finished = judge(end, plan.manifest);
  out.status = finished.status;
  out.error = finished.error;
  out.errors_open = end.errors_open;
  note_what_was_killed(end, out.notes);
  note_what_was_refused(end, record, out.notes);
  if (!end.ran || end.cause == EndCause::kAlarm) return;
  const auto began = Clock::now();
  auto imported = import_results(plan, run, end, memory, out.notes);
  record.steps_us.emplace_back(
      "import", std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count());
  // What ended the run early says more than a result that could not be had for the same reason.
  if (!imported && (out.status < 240 || end.cause == EndCause::kExited)) {
    out.status = static_cast<int>(ExitStatus::kResult);
    out.error = imported.error();
  } else if (!imported) {
    out.notes.push_back(imported.error().message);
  }
}

void close_record(Recorder& recorder, OwnedRun& run, RunEnd& out) {
  auto& record = run.record();
  if (const std::string cap = cap_behind(record.reason); !cap.empty()) recorder.cap_hit(cap, record.caps);
  recorder.results(record);
  const auto closed = recorder.end(record);
  if (closed) return;
  // What ended the run before says more.
  if (out.status >= 240) {
    if (!out.error || out.error->code != closed.error().code) out.notes.push_back(closed.error().message);
    return;
  }
  out.status = static_cast<int>(ExitStatus::kRecord);
  out.error = closed.error();
  record.exit_status = out.status;
  record.reason = closed.error().code;
  record.message = closed.error().message;
}

}  // namespace

RunEnd run(const RunRequest& request, const RunEvents& events) {
  RunEnd out;
  const auto refuse = [&out](int status, Error error) {
    out.status = status;
    out.error = std::move(error);
    return out;
  };
  RunStore store(state_directory());
  const std::string id = RunStore::new_id();
  auto planned = make_plan(request, id);
  if (!planned) return refuse(plan_failure_status(planned.error()), planned.error());
  if (!planned->faults.empty()) {
    out.status = static_cast<int>(ExitStatus::kUsage);
    out.faults = std::move(planned->faults);
    out.text = std::move(planned->text);
    return out;
  }
  const Plan& plan = planned->plan;
  auto owned = store.create(plan.name, id);
  if (!owned) return refuse(static_cast<int>(ExitStatus::kCannotStart), owned.error());
  auto& record = owned->record();
  record.manifest_file = plan.manifest.file;
  record.manifest_name = plan.manifest.name;
  record.manifest_digest = plan.seal.digest;
  if (plan.seal.signer) {
    record.signer = plan.seal.signer->principal;
    record.signer_key = plan.seal.signer->fingerprint;
  }
  record.command = plan.command;
  record.network.used = !plan.manifest.egress.empty();
  for (const auto& mapping : plan.egress.guard.connect_to)
    record.network.connect_to.push_back(egress::to_string(mapping));
  if (!plan.egress.upstream_ca.empty()) record.network.upstream_ca = sha256_hex(plan.egress.upstream_ca);
  (void)write_file_atomic(owned->directory() + "/manifest.yaml", plan.manifest_text);
  (void)write_file_atomic(owned->directory() + "/manifest.canonical", plan.seal.canonical);

  Life life(request, events);
  auto recorder = Recorder::begin(plan, *owned, request.anchor, life.record_limits());
  Result<SessionEnd> ended = recorder ? life.live(plan, *owned, **recorder) : Unexpected(recorder.error());
  if (ended) {
    conclude(plan, *owned, *ended, life.memory(), out);
  } else {
    const bool refused = ended.error().code.starts_with("signature.");
    out.status = static_cast<int>(refused ? ExitStatus::kSignature : ExitStatus::kCannotStart);
    out.error = ended.error();
  }
  record.state = RunState::kEnded;
  record.ended_ms = wall_ms();
  record.exit_status = out.status;
  if (out.error) {
    record.reason = out.error->code;
    record.message = out.error->message;
  }
  if (!request.keep)
    if (auto removed = owned->remove_work_files(); !removed) out.notes.push_back(removed.error().message);
  if (recorder) close_record(**recorder, *owned, out);
  if (auto saved = owned->save(); !saved) out.notes.push_back(saved.error().message);
  out.record = record;
  return out;
}

}  // namespace firestop::sandbox
