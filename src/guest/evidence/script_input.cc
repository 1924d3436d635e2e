#include "guest/evidence/script_input.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "channel/observation.h"
#include "guest/evidence/lookup.h"

namespace firestop::guest {
namespace {

constexpr int64_t kPartMs = 250, kTypedPartMs = 1000;  // so long a part waits for more
constexpr size_t kMostReaders = 4096, kMostLate = 256;

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

std::string descriptors_of(uint32_t pid) {
  return "/proc/" + std::to_string(pid) + "/fd/";
}

// "pipe:[1]", "socket:[1]", "/dev/pts/0", a file's path; "" when there is none.
std::string target(const std::string& link) {
  char text[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), text, sizeof text);
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : std::string();
}

// A character device that is not the memory's (null, zero, random, ...).
bool is_terminal(const struct stat& what) {
  constexpr unsigned kMemory = 1;
  return S_ISCHR(what.st_mode) && major(what.st_rdev) != kMemory;
}

bool is_stream(const std::string& link) {
  struct stat what{};  // of a pipe with a name, the link is its path
  return ::stat(link.c_str(), &what) == 0 &&
         (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode) || is_terminal(what));
}

// It has ended, be it waited for or not.
bool is_gone(uint32_t pid) {
  return target("/proc/" + std::to_string(pid) + "/exe").empty();
}

bool has_other_streams(uint32_t pid) {
  const std::string folder = descriptors_of(pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return false;
  while (const dirent* entry = ::readdir(entries.get()))
    if (entry->d_name[0] > '2' || (entry->d_name[0] != '.' && entry->d_name[1] != '\0'))
      if (is_stream(folder + entry->d_name)) return true;
  return false;
}

// A word that stands for one of the interpreter's own descriptors.
bool names_stream(const CodeArguments& arguments) {
  return std::any_of(arguments.files.begin(), arguments.files.end(), [](const std::string& word) {
    return word == "/dev/stdin" || word.starts_with("/dev/fd/") || word.starts_with("/proc/self/fd/");
  });
}

// Or for a pipe with a name, or a terminal.
bool names_pipe(uint32_t pid, const CodeArguments& arguments) {
  return std::any_of(arguments.files.begin(), arguments.files.end(), [pid](const std::string& word) {
    const UniqueFd found = find_inside(pid, word);
    struct stat what{};
    return found.valid() && ::fstat(found.get(), &what) == 0 && (S_ISFIFO(what.st_mode) || is_terminal(what));
  });
}

UniqueFd duplicate(uint32_t pid, int descriptor) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return {};
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), descriptor, 0)));
}

std::string rest_of(int fd) {
  std::string bytes;
  const off_t from = std::max<off_t>(0, ::lseek(fd, 0, SEEK_CUR));
  char piece[16 << 10];
  while (bytes.size() < channel::observed::kMostContent) {
    const ssize_t got = ::pread(fd, piece, sizeof piece, from + static_cast<off_t>(bytes.size()));
    if (got <= 0) break;
    bytes.append(piece, static_cast<size_t>(got));
  }
  return bytes;
}

}  // namespace

std::string ScriptInput::prepare(const Btf& types, const Wakeup& wakeup) {
  auto probe = InputProbe::make(types, wakeup);
  if (!probe) return probe.error().message;
  probe_ = std::move(*probe);
  return "";
}

void ScriptInput::begins(uint32_t pid) {
  if (readers_.size() >= kMostReaders || next_.size() >= kMostReaders) {
    ++lost_;
    return;
  }
  Reader reader;
  const std::string link = descriptors_of(pid) + "0";
  struct stat what{};
  const bool there = ::stat(link.c_str(), &what) == 0;
  if (there && S_ISREG(what.st_mode)) reader.file = duplicate(pid, 0);
  reader.typed = there && S_ISCHR(what.st_mode) && target(link) != "/dev/null";
  reader.all = has_other_streams(pid);
  reader.stream = there && (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode));
  if (reader.all || reader.stream || reader.typed)
    probe_.watch(pid, reader.all ? InputProbe::What::kAll : InputProbe::What::kStandardInput);
  next_[pid] = std::move(reader);
}

void ScriptInput::no_interpreter(uint32_t pid) {
  if (next_.erase(pid) > 0 && !readers_.contains(pid)) probe_.forget(pid);
}

void ScriptInput::executed(uint32_t pid) {
  auto next = next_.extract(pid);
  ends(pid);
  if (next.empty()) return;
  const Reader& reader = next.mapped();
  if (reader.all || reader.stream || reader.typed)  // ends() has forgotten it
    probe_.watch(pid, reader.all ? InputProbe::What::kAll : InputProbe::What::kStandardInput);
  readers_.insert(std::move(next));
}

void ScriptInput::tell_rest(Process& process, Reader& reader) {
  if (reader.file.valid()) {
    reader.bytes = rest_of(reader.file.get());
    reader.total = reader.bytes.size();
    reader.cut = reader.total >= channel::observed::kMostContent;
    reader.file.reset();
  }
  // That it was cut is told also where the part before was the last that there was room for.
  const bool cut = reader.cut && !reader.cut_told;
  reader.cut_told = reader.cut;
  if (!reader.bytes.empty() || cut)
    tell_(process, reader.typed ? "typed" : "stdin", reader.bytes,
          reader.cut ? "cut after " + std::to_string(reader.total) + " bytes" : "");
  reader.bytes.clear();
}

void ScriptInput::decide_late(Process& process, const CodeArguments& arguments) {
  const auto found =
      std::find_if(late_.begin(), late_.end(), [&](const auto& one) { return one.first == process.pid; });
  if (found == late_.end()) return;
  // Which of its descriptors was the program, nobody can look at any more.
  if (arguments.from_stdin || names_stream(arguments)) tell_rest(process, found->second);
  late_.erase(found);
}

void ScriptInput::decided(Process& process, const CodeArguments& arguments, bool late) {
  take();
  if (late) return decide_late(process, arguments);
  const auto found = readers_.find(process.pid);
  if (found == readers_.end()) return;
  Reader& reader = found->second;
  const bool stream = names_stream(arguments) || names_pipe(process.pid, arguments);
  if (!arguments.from_stdin && !stream) {
    probe_.forget(process.pid);
    readers_.erase(found);
    return;
  }
  reader.decided = true;
  if (stream || reader.all) {
    reader.all = stream;
    probe_.watch(process.pid, stream ? InputProbe::What::kAll : InputProbe::What::kStandardInput);
  }
  if (reader.file.valid()) tell_rest(process, reader);
}

void ScriptInput::take() {
  probe_.take([this](const InputProbe::Piece& piece) { add(piece); });
}

void ScriptInput::add(const InputProbe::Piece& piece) {
  const auto found = readers_.find(piece.pid);
  if (found == readers_.end()) return;
  Reader& reader = found->second;
  if (reader.all && piece.descriptor != 0) {
    const auto [known, fresh] = reader.pipes.try_emplace(piece.descriptor, false);
    // What nobody can look at any more is rather told than left out.
    if (fresh)
      known->second =
          is_stream(descriptors_of(piece.pid) + std::to_string(piece.descriptor)) || is_gone(piece.pid);
    if (!known->second) {
      reader.pipes.erase(known);  // the number may be a pipe's later
      return;
    }
  }
  if (!piece.whole) reader.cut = true;
  if (piece.bytes.empty()) return flush(piece.pid, reader);
  if (reader.bytes.empty()) reader.since_ms = now_ms();
  const size_t room = kMostBytes - std::min(kMostBytes, reader.total);
  if (piece.bytes.size() > room || (piece.bytes.size() == room && piece.left > 0)) reader.cut = true;
  reader.bytes += piece.bytes.substr(0, room);
  reader.total += std::min(room, piece.bytes.size());
  if (reader.cut) probe_.forget(piece.pid);
  if (reader.bytes.size() >= kMostPart || reader.cut) flush(piece.pid, reader);
}

void ScriptInput::flush(uint32_t pid, Reader& reader) {
  Process* process = processes_.find(pid);
  if (reader.decided && process) tell_rest(*process, reader);
}

void ScriptInput::tell_due() {
  const int64_t now = now_ms();
  for (auto& [pid, reader] : readers_)
    if (!reader.bytes.empty() && now - reader.since_ms >= (reader.typed ? kTypedPartMs : kPartMs))
      flush(pid, reader);
}

void ScriptInput::ends(uint32_t pid) {
  no_interpreter(pid);
  if (!readers_.contains(pid)) return;
  take();
  auto found = readers_.find(pid);
  probe_.forget(pid);
  flush(pid, found->second);
  if (!found->second.decided) {
    late_.emplace_back(pid, std::move(found->second));
    if (late_.size() > kMostLate) {
      late_.pop_front();
      ++lost_;
    }
  }
  readers_.erase(found);
}

uint64_t ScriptInput::take_lost() {
  return std::exchange(lost_, 0) + probe_.take_lost();
}

}  // namespace firestop::guest
