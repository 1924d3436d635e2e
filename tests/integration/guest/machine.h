// A machine with the real guest, for its tests: QEMU with plain arguments, and the host's end of the channel
// in a few blocking calls. Knows nothing of how Firestop starts machines.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"
#include "channel/messages.h"
#include "channel/mux.h"

namespace firestop::test {

using Milliseconds = std::chrono::milliseconds;

// Kernel, initramfs with the guest that was just built, and root image. From the image cache, or from the
// folder FIRESTOP_TEST_BOOT (`vmlinux`, `initramfs`, `root.erofs`). nullopt: there are none.
struct BootFiles {
  std::string kernel, initramfs, root;
};
std::optional<BootFiles> find_boot_files(const std::string& directory);

struct MachineOptions {
  uint64_t memory_mib = 512;
  unsigned cpus = 1;
  std::vector<std::string> disks;  // "ro0", "ro1", ...
  uint64_t scratch_mib = 1024;
};

struct Finished {
  channel::Exited exited;
  std::string out, err;
};

struct ExecOptions {
  bool terminal = false;
  std::string term;
  uint16_t rows = 24, columns = 80;
  bool read_output = true;  // otherwise the host grants one window and no more, until read_all()
};

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> boot(const BootFiles& files, const MachineOptions& options,
                                               const std::string& directory);
  ~Machine();

  // A start that works, to be changed where a test needs it.
  static channel::Start usual_start();
  Result<channel::Started> start(const channel::Start& start);

  // Starts a command; its id.
  int exec(std::vector<std::string> argv, const ExecOptions& options = {});
  void input(int id, std::string_view bytes);
  void end_input(int id);
  void signal(int id, int number);
  void resize(int id, uint16_t rows, uint16_t columns);
  void read_all(int id);
  // What came so far, and whether `text` is in it after at most `limit`.
  const std::string& output(int id);
  bool wait_for_output(int id, std::string_view text, Milliseconds limit = Milliseconds(60'000));
  Result<Finished> finish(int id, Milliseconds limit = Milliseconds(120'000));
  // exec without input, and finish.
  Result<Finished> run(std::vector<std::string> argv, const ExecOptions& options = {});
  Result<Finished> shell(const std::string& script, const ExecOptions& options = {});

  Result<channel::Exported> hand_over(const channel::Export& wanted, size_t repositories,
                                      Milliseconds limit = Milliseconds(120'000));
  const std::string& stream(uint16_t number) { return data_[number]; }

  void say(const channel::FromHost& message);
  // Lets the guest talk for a while.
  void listen(Milliseconds how_long);
  // Whether QEMU ended by itself, after at most `limit`.
  bool ended(Milliseconds limit);
  void close_channel() { channel_.reset(); }
  // How the guest failed; "" if it did not.
  std::string failure() const { return failed_ ? failed_->message : ""; }
  std::string console() const;

 private:
  Machine();
  Result<void> pump(const std::function<bool()>& until, Milliseconds limit);
  void control(std::string_view json);
  void flush();

  struct Streams {
    uint16_t in, out, err;
  };
  static Streams streams_of(int id);

  std::string console_path_;
  Child qemu_;
  UniqueFd channel_;
  std::unique_ptr<channel::Mux> mux_;
  std::optional<channel::Ready> ready_;
  std::optional<channel::Started> started_;
  std::optional<channel::Exported> exported_;
  std::optional<channel::Failed> failed_;
  std::map<int, channel::Exited> exited_;
  std::map<uint16_t, std::string> data_;
  std::map<uint16_t, std::string> outgoing_;
  std::set<uint16_t> ended_, held_, closing_;
  std::string broken_;
  int next_id_ = 0;
};

}  // namespace firestop::test
