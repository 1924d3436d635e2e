// Programs that an interpreter reads from its standard input, from a pipe that it was given the name of, or
// from a terminal.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/fd.h"
#include "guest/evidence/input_probe.h"
#include "guest/evidence/interpreter.h"
#include "guest/evidence/processes.h"

namespace firestop::guest {

class ScriptInput {
 public:
  // `tell` gets each part of a program: the process, "stdin" or "typed", the bytes, a note.
  using Tell = std::function<void(Process&, const char* how, std::string_view bytes, std::string note)>;
  ScriptInput(Processes& processes, Tell tell) : processes_(processes), tell_(std::move(tell)) {}

  // "" when it works; otherwise why not.
  std::string prepare(const Btf& types, const Wakeup& wakeup);
  bool works() const { return probe_.works(); }
  int fd() const { return probe_.fd(); }

  // An interpreter is about to be executed, with the descriptors that the process has now; or something else.
  void begins(uint32_t pid);
  void no_interpreter(uint32_t pid);
  // It was executed. What an interpreter reads from now on is kept until it is known whether it is its
  // program.
  void executed(uint32_t pid);
  // Its arguments are known; `late`: the process has ended since, or runs something else.
  void decided(Process& process, const CodeArguments& arguments, bool late);
  // Takes what was read.
  void take();
  // Tells parts that have waited long enough.
  void tell_due();
  // The process runs something else now, or has ended: tells what is left.
  void ends(uint32_t pid);
  uint64_t take_lost();

 private:
  static constexpr size_t kMostBytes = 1u << 20;  // of a process's program
  static constexpr size_t kMostPart = 256u << 10;
  struct Reader {
    bool decided = false, typed = false, stream = false, all = false, cut = false, cut_told = false;
    UniqueFd file;  // standard input, when it is a file
    int64_t since_ms = 0;
    size_t total = 0;
    std::string bytes;
    std::map<uint32_t, bool> pipes;  // by descriptor
  };
  void add(const InputProbe::Piece& piece);
  void flush(uint32_t pid, Reader& reader);
  void tell_rest(Process& process, Reader& reader);
  void decide_late(Process& process, const CodeArguments& arguments);

  Processes& processes_;
  Tell tell_;
  InputProbe probe_;
  std::map<uint32_t, Reader> readers_;
  std::map<uint32_t, Reader> next_;               // of executions that may yet fail
  std::deque<std::pair<uint32_t, Reader>> late_;  // went before their arguments were known
  uint64_t lost_ = 0;
};

}  // namespace firestop::guest
