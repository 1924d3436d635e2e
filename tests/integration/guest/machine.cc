#include "integration/guest/machine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "codec/base64.h"
#include "image/image.h"
#include "image/initramfs.h"
#include "jail/container_filter.h"
#include "vmm/tsc.h"

namespace firestop::test {
namespace {

using Clock = std::chrono::steady_clock;

// The last archive of an initramfs wins: the guest of this build replaces the one that the image was made
// with.
Result<std::string> with_this_guest(const std::string& initramfs, const std::string& directory) {
  TRY_ASSIGN(std::string archive, read_file(initramfs, 256u << 20));
  TRY_ASSIGN(const std::string guest, read_file(FIRESTOP_GUEST_PROGRAM));
  image::CpioWriter writer;
  writer.add_file("init", 0755, guest);
  archive.resize((archive.size() + 511) / 512 * 512);
  archive += writer.finish();
  std::string path = directory + "/initramfs";
  TRY(write_file_atomic(path, archive));
  return path;
}

}  // namespace

std::optional<BootFiles> find_boot_files(const std::string& directory) {
  BootFiles files;
  if (const char* given = std::getenv("FIRESTOP_TEST_BOOT")) {
    const std::string folder = given;
    files = {folder + "/vmlinux", folder + "/initramfs", folder + "/root.erofs"};
  } else if (const auto found = image::find("agent-base")) {
    files = {found->kernel, found->initramfs, found->root};
  } else {
    return std::nullopt;
  }
  auto initramfs = with_this_guest(files.initramfs, directory);
  if (!initramfs) return std::nullopt;
  files.initramfs = *initramfs;
  return files;
}

Machine::Machine() {
  mux_ = std::make_unique<channel::Mux>(
      channel::Mux::Callbacks{.on_control = [this](std::string_view json) { control(json); },
                              .on_data =
                                  [this](uint16_t stream, std::string_view bytes) {
                                    data_[stream].append(bytes);
                                    if (!held_.count(stream)) mux_->consumed(stream, bytes.size());
                                  },
                              .on_end = [this](uint16_t stream) { ended_.insert(stream); },
                              .on_writable = {}});
}

Machine::~Machine() {
  if (qemu_.pid > 0) qemu_.kill_and_wait();
}

Result<std::unique_ptr<Machine>> Machine::boot(const BootFiles& files, const MachineOptions& options,
                                               const std::string& directory) {
  std::unique_ptr<Machine> machine(new Machine);
  const std::string scratch = directory + "/scratch", tiny = directory + "/tiny";
  machine->console_path_ = directory + "/console";
  (void)::unlink(scratch.c_str());
  TRY(run_checked({.argv = {"mkfs.ext4", "-q", "-F", "-O", "^has_journal", scratch,
                            std::to_string(options.scratch_mib) + "M"}}));
  TRY(write_file_atomic(tiny, std::string(4096, '\0')));
  TRY(write_file_atomic(machine->console_path_, ""));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("test.machine", "socketpair");
  machine->channel_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  TRY_ASSIGN(const uint64_t khz, vmm::calibrate_tsc_khz());
  Command command;
  // Without erms: TCG does `rep stosb` byte by byte, and clearing a page that held code then takes
  // milliseconds.
  command.argv = {"qemu-system-x86_64",
                  "-M",
                  "microvm,accel=tcg,acpi=on,isa-serial=on",
                  "-cpu",
                  "max,erms=off,fsrm=off",
                  "-m",
                  std::to_string(options.memory_mib),
                  "-smp",
                  std::to_string(options.cpus),
                  "-nodefaults",
                  "-no-user-config",
                  "-display",
                  "none",
                  "-no-reboot",
                  "-kernel",
                  files.kernel,
                  "-initrd",
                  files.initramfs,
                  "-append",
                  "console=ttyS0 quiet reboot=t panic=-1 tsc=reliable tsc_early_khz=" + std::to_string(khz),
                  "-serial",
                  "file:" + machine->console_path_,
                  "-chardev",
                  "socket,id=channel,fd=3",
                  "-device",
                  "virtio-serial-device",
                  "-device",
                  "virtserialport,chardev=channel,name=firestop.0",
                  "-chardev",
                  "file,id=evidence,path=/dev/null",  // what the collectors tell is not this test's
                  "-device",
                  "virtserialport,chardev=evidence,name=firestop.1"};
  const auto add_disk = [&](const std::string& serial, const std::string& path, const char* read_only) {
    command.argv.insert(
        command.argv.end(),
        {"-drive",
         "if=none,format=raw,cache=unsafe,id=" + serial + ",readonly=" + read_only + ",file=" + path,
         "-device", "virtio-blk-device,drive=" + serial + ",serial=" + serial});
  };
  add_disk("root", files.root, "on");
  add_disk("scratch", scratch, "off");
  for (size_t i = 0; i < 16; ++i)
    add_disk("ro" + std::to_string(i), i < options.disks.size() ? options.disks[i] : tiny, "on");
  command.descriptors = {{theirs.get(), 3}};
  TRY_ASSIGN(machine->qemu_, spawn(command));
  Machine* self = machine.get();
  TRY(self->pump([self] { return self->ready_.has_value(); }, Milliseconds(90'000)));
  return machine;
}

channel::Start Machine::usual_start() {
  channel::Start start;
  start.seed.assign(channel::kSeedBytes, '\x5a');
  start.time_ns = 1'800'000'000'000'000'000;  // 2027-01-15
  start.hostname = "sandbox";
  start.accounts = {{"agent", 1000, 1000, {}}};
  start.run_as = "agent";
  start.capabilities = {"shell", "filesystem"};
  start.seccomp = jail::container_filter().value_or("");
  start.memory_max = 300u << 20;
  start.processes_max = 100;
  start.open_files_max = 1024;
  start.cpus = 1;
  return start;
}

Result<channel::Started> Machine::start(const channel::Start& start) {
  say(start);
  TRY(pump([this] { return started_.has_value(); }, Milliseconds(60'000)));
  if (!started_) return fail("test.machine", "not started");
  return *started_;
}

Machine::Streams Machine::streams_of(int id) {
  if (id == 0) return {channel::kStdin, channel::kStdout, channel::kStderr};
  const auto first = static_cast<uint16_t>(1024 + 4 * id);
  return {first, static_cast<uint16_t>(first + 1), static_cast<uint16_t>(first + 2)};
}

int Machine::exec(std::vector<std::string> argv, const ExecOptions& options) {
  const int id = next_id_++;
  const Streams streams = streams_of(id);
  if (!options.read_output) held_.insert({streams.out, streams.err});
  mux_->open_send(streams.in);
  say(channel::Exec{id, std::move(argv), options.terminal, options.term, options.rows, options.columns});
  mux_->open_receive(streams.out);
  mux_->open_receive(streams.err);
  flush();
  return id;
}

void Machine::input(int id, std::string_view bytes) {
  outgoing_[streams_of(id).in].append(bytes);
  flush();
}

void Machine::end_input(int id) {
  closing_.insert(streams_of(id).in);
  flush();
}

void Machine::signal(int id, int number) {
  say(channel::Signal{id, number});
}
void Machine::resize(int id, uint16_t rows, uint16_t columns) {
  say(channel::Resize{id, rows, columns});
}

void Machine::read_all(int id) {
  for (const uint16_t stream : {streams_of(id).out, streams_of(id).err}) {
    held_.erase(stream);
    mux_->consumed(stream, data_[stream].size());
  }
  flush();
}

const std::string& Machine::output(int id) {
  return data_[streams_of(id).out];
}

bool Machine::wait_for_output(int id, std::string_view text, Milliseconds limit) {
  return pump([&] { return output(id).find(text) != std::string::npos; }, limit).has_value();
}

Result<Finished> Machine::finish(int id, Milliseconds limit) {
  TRY(pump([&] { return exited_.count(id) != 0; }, limit));
  const Streams streams = streams_of(id);
  if (!ended_.count(streams.out) || !ended_.count(streams.err))
    return fail("test.machine", "the command has exited, and its streams have not ended");
  return Finished{exited_[id], data_[streams.out], data_[streams.err]};
}

Result<Finished> Machine::run(std::vector<std::string> argv, const ExecOptions& options) {
  const int id = exec(std::move(argv), options);
  if (!options.terminal) end_input(id);
  return finish(id);
}

Result<Finished> Machine::shell(const std::string& script, const ExecOptions& options) {
  return run({"/bin/sh", "-c", script}, options);
}

Result<channel::Exported> Machine::hand_over(const channel::Export& wanted, size_t repositories,
                                             Milliseconds limit) {
  for (size_t i = 0; i < repositories; ++i)
    mux_->open_receive(static_cast<uint16_t>(channel::kFirstBundleStream + i));
  mux_->open_receive(channel::kOutputsStream);
  say(wanted);
  TRY(pump([this] { return exported_.has_value(); }, limit));
  if (!exported_) return fail("test.machine", "not exported");
  return *exported_;
}

void Machine::say(const channel::FromHost& message) {
  const auto json = channel::encode(message);
  if (!json)
    broken_ = json.error().message;
  else if (const auto sent = mux_->send_control(*json); !sent)
    broken_ = sent.error().message;
  flush();
}

void Machine::listen(Milliseconds how_long) {
  (void)pump([] { return false; }, how_long);
}

bool Machine::ended(Milliseconds limit) {
  pollfd state{qemu_.pidfd.get(), POLLIN, 0};
  return ::poll(&state, 1, static_cast<int>(limit.count())) == 1;
}

std::string Machine::console() const {
  return read_file(console_path_).value_or("");
}

void Machine::control(std::string_view json) {
  auto message = channel::decode_from_guest(json);
  if (!message) {
    broken_ = message.error().message;
    return;
  }
  if (auto* ready = std::get_if<channel::Ready>(&*message)) ready_ = *ready;
  if (auto* started = std::get_if<channel::Started>(&*message)) started_ = *started;
  if (auto* exited = std::get_if<channel::Exited>(&*message)) exited_[exited->id] = *exited;
  if (auto* exported = std::get_if<channel::Exported>(&*message)) exported_ = *exported;
  if (auto* failed = std::get_if<channel::Failed>(&*message)) failed_ = *failed;
}

void Machine::flush() {
  for (auto& [stream, bytes] : outgoing_) bytes.erase(0, mux_->send(stream, bytes));
  for (auto it = closing_.begin(); it != closing_.end();) {
    if (!outgoing_[*it].empty()) {
      ++it;
      continue;
    }
    mux_->send_end(*it);
    it = closing_.erase(it);
  }
  while (channel_.valid() && !mux_->pending().empty()) {
    const ssize_t put =
        ::send(channel_.get(), mux_->pending().data(), mux_->pending().size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put <= 0) return;
    mux_->written(static_cast<size_t>(put));
  }
}

Result<void> Machine::pump(const std::function<bool()>& until, Milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!until()) {
    if (failed_) return fail("test.failed", failed_->step + ": " + failed_->message);
    if (!broken_.empty()) return fail("test.broken", broken_);
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return fail("test.timeout", "nothing came in time; console: " + console());
    flush();
    const short events = static_cast<short>(POLLIN | (mux_->pending().empty() ? 0 : POLLOUT));
    pollfd state{channel_.get(), events, 0};
    if (::poll(&state, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000))) <= 0) continue;
    if ((state.revents & (POLLIN | POLLHUP)) == 0) continue;
    char buffer[256 << 10];
    const ssize_t got = ::recv(channel_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN))
      return fail("test.gone", "the machine is gone; console: " + console());
    if (got > 0) TRY(mux_->receive({buffer, static_cast<size_t>(got)}));
  }
  return {};
}

}  // namespace firestop::test
