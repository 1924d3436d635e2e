#include "guest/evidence/code_capture.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "guest/boot.h"
#include "guest/evidence/interpreter.h"
#include "guest/evidence/lookup.h"
#include "guest/exec_rules.h"
#include "guest/inside.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

namespace observed = channel::observed;
constexpr size_t kHead = 4096;
constexpr size_t kMostWords = 8u << 20;  // execve(2) takes 6 MiB of arguments and environment at most
constexpr size_t kMostArgumentBytes = 24u << 10;  // of an Exec: base64 and a frame's length bound it

int64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

std::string proc(uint32_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

std::string head_of(int fd) {
  char head[kHead];
  const ssize_t got = ::pread(fd, head, sizeof head, 0);
  return got > 0 ? std::string(head, static_cast<size_t>(got)) : std::string();
}

uint64_t size_of(const struct stat& what) {
  return static_cast<uint64_t>(what.st_size);
}

// A program or a shared library (elf(5)), whatever its name is: no object file, no archive.
bool can_be_loaded(int fd) {
  Elf64_Ehdr head{};
  return ::pread(fd, &head, sizeof head, 0) == sizeof head && ::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
         head.e_type != ET_REL;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out;
}

// "bin/x.py" and "/workspace/bin/x.py": the same, as far as names can say.
bool names(const std::string& word, const std::string& path) {
  std::string_view tail = word;
  while (tail.starts_with("./") || tail.starts_with("../")) tail.remove_prefix(tail.find('/') + 1);
  if (tail.empty() || !path.ends_with(tail)) return false;
  return tail.size() == path.size() || tail[0] == '/' || path[path.size() - tail.size() - 1] == '/';
}

// Whether the file is one that the process's arguments name as code. A link that leads into /proc leads
// nowhere for us.
bool is_named(uint32_t pid, const std::vector<std::string>& words, const std::string& path,
              const struct stat& what) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    if (names(word, path)) return true;
    const UniqueFd found = find_inside(pid, word);
    struct stat there{};
    return found.valid() && ::fstat(found.get(), &there) == 0 && there.st_dev == what.st_dev &&
           there.st_ino == what.st_ino;
  });
}

// The call that a process waits in. It was interrupted on its way to waiting, by us: it is given a moment to
// come there.
std::string call_of(uint32_t pid) {
  for (useconds_t wait = 50; wait <= 3200; wait *= 2) {
    const auto text = read_kernel_file(proc(pid, "syscall"));
    if (!text) break;
    if (*text != "running") return *text;
    ::usleep(wait);
  }
  return "";
}

// Whether the process, which waits for its open(2) to be answered, asked for a descriptor that nothing can be
// read from: what a shell appends to is no code. Only where the kernel says for certain which call it waits
// in (proc(5), "syscall": its number and arguments, in hexadecimal).
bool opens_to_write_only(const Process& process) {
  if (process.threads.size() != 1) return false;  // which of them is it?
  const std::string call = call_of(process.pid);
  unsigned long arguments[3] = {};
  int number = -1;
  if (::sscanf(call.c_str(), "%d %lx %lx %lx", &number, &arguments[0], &arguments[1], &arguments[2]) != 4)
    return false;
  if (number == SYS_creat) return true;
  if (number != SYS_open && number != SYS_openat) return false;
  return (arguments[number == SYS_open ? 1 : 2] & O_ACCMODE) == O_WRONLY;
}

// Variables that are code to interpreters, or options that can be: "NAME=VALUE".
std::vector<std::string> code_variables(uint32_t pid) {
  constexpr std::string_view kNames[] = {"BASH_FUNC_", "PERL5DB=", "PERL5OPT=", "RUBYOPT=", "NODE_OPTIONS="};
  std::vector<std::string> out;
  const auto environment = read_file(proc(pid, "environ"), kMostWords);
  if (!environment) return out;
  for (std::string& variable : words_of(*environment))
    if (std::any_of(std::begin(kNames), std::end(kNames),
                    [&](std::string_view name) { return variable.starts_with(name); }))
      out.push_back(std::move(variable));
  return out;
}

// The arguments that an observation can carry.
void fit(const AuditEvent& event, observed::Exec& exec) {
  exec.argc = event.argc;
  exec.cut = event.cut;
  size_t left = kMostArgumentBytes;
  for (const std::string& word : event.argv) {
    const size_t take = std::min(word.size(), left);
    if (left < 8) break;
    exec.argv.push_back(word.substr(0, take));
    left -= std::min(left, take + 8);
    if (take < word.size()) exec.cut = true;
  }
  if (exec.argv.size() < event.argv.size()) exec.cut = true;
}

}  // namespace

void CodeCapture::executes(const FileEvent& event) {
  Process* process = processes_.find(event.pid);
  if (!process) return;
  ExecutedFile file;
  file.path = place_of(event.fd);
  file.from_image = files_.from_image(event.fd, event.what);
  if (!file.from_image) {
    const std::string head = head_of(event.fd);
    // A text without "#!" is refused by the kernel; a shell that then reads it opens it.
    if (head.starts_with("#!") || head.starts_with("\177ELF")) {
      file.captured = contents_.of_file(event.fd, size_of(event.what), observed::kMostContent);
      const bool script = head.starts_with("#!");
      tell(*process, script ? "script" : "program", file.path,
           script ? parse_shebang(std::string_view(head).substr(0, 256)).interpreter : "", file.captured,
           writer_of(event.what));
    }
  }
  // The loader of a program is opened after it, and changes nothing.
  const Language language = language_of(file.path, "");
  if (language == Language::kNone && file.from_image)
    notice_.can_wait(event.pid, event.what.st_dev);
  else if (language != Language::kLoader)
    notice_.cannot_wait(event.pid);
  if (reads_programs(language))
    input_.begins(event.pid);
  else if (language != Language::kLoader)
    input_.no_interpreter(event.pid);
  process->files.push_back(std::move(file));
  if (process->files.size() > Process::kMostFiles) process->files.pop_front();
}

// What the process runs now, as far as the kernel itself says.
void CodeCapture::look_at(Process& process) {
  if (process.known) return;
  process.known = true;
  // Of one that has ended, audit's word is left.
  if (std::string now = place_at(proc(process.pid, "exe")); !now.empty()) process.executable = std::move(now);
  process.image_program = false;
  for (const ExecutedFile& file : process.files)
    if (file.path == process.executable) process.image_program = file.from_image;
  if (process.argv.empty())
    if (const auto words = read_file(proc(process.pid, "cmdline"), kMostWords))
      process.argv = words_of(*words);
  process.language = language_of(process.executable, process.argv.empty() ? "" : process.argv[0]);
  see_through_loader(process.language, process.argv);
}

void CodeCapture::opens(const FileEvent& event) {
  if (files_.from_image(event.fd, event.what)) return files_.ignore_opens(event.fd);
  Process* process = processes_.find(event.pid);
  if (!process || process->hidden || event.what.st_size == 0) return;
  look_at(*process);
  const bool interprets = process->language != Language::kNone || !process->image_program;
  // Most of what is opened ends here: what a compiler reads, what git writes.
  if (!interprets && !can_be_loaded(event.fd)) return;
  const std::string path = place_of(event.fd);
  const std::string head = head_of(event.fd);
  const CodeArguments arguments = code_arguments(process->language, process->argv);
  const bool named = is_named(process->pid, arguments.files, path, event.what);
  const bool code = named || looks_like_code(process->language, path, head);
  if (opens_to_write_only(*process)) return;
  if (!code && !has_room_for_opened(*process)) return;
  const Captured captured =
      contents_.of_file(event.fd, size_of(event.what), code ? observed::kMostContent : kMostOpened);
  // The kernel opened a script itself; that its interpreter opens it again says nothing new.
  const bool script =
      std::any_of(process->files.begin(), process->files.end(), [&](const ExecutedFile& file) {
        return file.path == path && captured.content != 0 && file.captured.content == captured.content;
      });
  const char* how = script ? "script" : named ? "argument" : code ? "module" : "opened";
  if (code && readers_.count(inode_of(event.what)) >= CodeReaders::kMany)
    forget_readers(inode_of(event.what));
  if (code) readers_.opened(inode_of(event.what), {process->pid, process->program, how, captured.content});
  if (!process->remember_told(event.what.st_ino, captured.content) || script) return;
  tell(*process, how, path, process->executable, captured, writer_of(event.what));
  if (!code) opened_bytes_ += std::min(size_of(event.what), kMostOpened), ++opened_files_;
}

// What does not look like code, and an interpreter may take for it all the same, has bounds of its own: it
// shall not take the room of what surely is.
bool CodeCapture::has_room_for_opened(Process& process) {
  if (opened_files_ < kMostOpenedFiles && opened_bytes_ < kMostOpenedBytes) return true;
  if (!std::exchange(opened_full_, true))
    say(process, "opened", "", process.executable,
        {0, "from here on, what interpreters open and does not look like code is not kept"}, 0);
  return false;
}

void CodeCapture::forget_readers(const Inode& inode) {
  readers_.forget_unless(inode, [this](const CodeReader& reader) {
    const Process* process = processes_.find(reader.pid);
    return process && process->program == reader.program;
  });
}

void CodeCapture::written(const FileEvent& event) {
  if (writers_.size() >= kMostFiles) writers_.clear();
  writers_[inode_of(event.what)] = event.pid;
  // A script may go on in what is appended to it, or be another one by the time that it is read.
  const Inode inode = inode_of(event.what);
  forget_readers(inode);
  if (!readers_.knows(inode) || event.what.st_size == 0) return;
  Captured captured = contents_.of_file(event.fd, size_of(event.what), observed::kMostContent);
  if (captured.note.empty()) captured.note = "written after it was opened";
  for (const CodeReader& reader : readers_.written(inode, captured.content))
    if (Process* process = processes_.find(reader.pid))
      tell(*process, reader.how, place_of(event.fd), process->executable, captured, event.pid);
}

uint32_t CodeCapture::writer_of(const struct stat& what) const {
  const auto found = writers_.find(inode_of(what));
  return found == writers_.end() ? 0 : found->second;
}

void CodeCapture::tell(Process& process, std::string how, std::string path, std::string interpreter,
                       Captured captured, uint32_t writer) {
  if (captured.content == 0) ++lost_;
  say(process, std::move(how), std::move(path), std::move(interpreter), std::move(captured), writer);
}

void CodeCapture::say(Process& process, std::string how, std::string path, std::string interpreter,
                      Captured captured, uint32_t writer) {
  observed::Code code;
  code.pid = process.pid;
  code.at_us = Processes::in_order(process, now_us());
  code.how = std::move(how);
  code.path = std::move(path);
  code.interpreter = std::move(interpreter);
  code.content = captured.content;
  code.writer = writer;
  code.note = std::move(captured.note);
  teller_.say(code);
  teller_.settle();  // before it runs, where somebody waits for an answer
}

// Opening by name is safe only where nobody would be asked: the question would come to us, who wait.
void CodeCapture::read_unasked(Process& process, const std::string& link, const char* how) {
  struct stat what{};
  if (::stat(link.c_str(), &what) != 0) {
    tell(process, how, place_at(link), "", {0, "its process was gone before it could be read"}, 0);
    return;
  }
  if (!S_ISREG(what.st_mode) || files_.watches(what.st_dev)) return;
  ExecutedFile file;
  file.path = place_at(link);
  const UniqueFd fd(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.valid())
    file.captured = contents_.of_file(fd.get(), size_of(what), observed::kMostContent);
  else
    file.captured.note = std::string("cannot be opened: ") + ::strerror(errno);
  tell(process, how, file.path, std::string_view(how) == "program" ? "" : process.executable, file.captured,
       writer_of(what));
  process.files.push_back(std::move(file));
  if (process.files.size() > Process::kMostFiles) process.files.pop_front();
}

void CodeCapture::runs(Process& process) {
  if (process.hidden) return;
  const std::string exe = proc(process.pid, "exe");
  const std::string path = place_at(exe);
  const bool asked = std::any_of(process.files.begin(), process.files.end(),
                                 [&](const ExecutedFile& file) { return file.path == path; });
  if (!asked && !path.empty()) read_unasked(process, exe, "program");
}

void CodeCapture::executed(const AuditEvent& event) {
  Process* process = processes_.of(event);
  if (!process) return;
  const bool late = process->ended || process->executions_due > 1;
  std::vector<std::string> argv = event.argv;
  Language language = language_of(event.exe, argv.empty() ? "" : argv[0]);
  const bool loader = language == Language::kLoader;
  see_through_loader(language, argv);
  if (!late) process->argv = argv;
  observed::Exec exec;
  exec.pid = event.pid;
  exec.at_us = event.at_ms * 1000;
  exec.uid = event.uid;
  exec.gid = event.gid;
  exec.file = event.exe;
  const bool called_so = std::any_of(process->files.begin(), process->files.end(),
                                     [&](const ExecutedFile& one) { return one.path == exec.file; });
  if (exec.file.ends_with(" (deleted)") && !called_so) exec.file.resize(exec.file.size() - 10);
  if (exec.file.starts_with(std::string(kRoot) + "/")) exec.file.erase(0, sizeof kRoot - 1);
  exec.cwd = event.cwd;
  if (exec.cwd.starts_with(std::string(kRoot) + "/")) exec.cwd.erase(0, sizeof kRoot - 1);
  fit(event, exec);
  const auto file = std::find_if(process->files.rbegin(), process->files.rend(),
                                 [&](const ExecutedFile& known) { return known.path == exec.file; });
  if (file != process->files.rend()) {
    exec.from_image = file->from_image;
    exec.content = file->captured.content;
  }
  if (!late && !process->known) process->executable = exec.file;
  processes_.told_executed(*process, exec);
  if (process->hidden) return;
  const CodeArguments arguments = code_arguments(language, argv);
  for (const std::string& text : arguments.commands)
    tell(*process, "command", "", exec.file, contents_.of_bytes(text), 0);
  if (!late && language != Language::kNone)
    for (const std::string& text : code_variables(event.pid))
      tell(*process, "command", "", exec.file, contents_.of_bytes(text), 0);
  if (!late) read_unwatched(*process, arguments);
  if (!reads_programs(language)) return;
  if (loader && !late) {  // nobody knew what it would load
    input_.begins(process->pid);
    input_.executed(process->pid);
  }
  input_.decided(*process, arguments, late);
}

// Files of which nobody asks: in anonymous memory, or where root mounted something later.
void CodeCapture::read_unwatched(Process& process, const CodeArguments& arguments) {
  for (const std::string& word : arguments.files) {
    const UniqueFd found = find_inside(process.pid, word);
    const std::string link = path_of(found);
    struct stat what{};
    if (found.valid() && ::fstat(found.get(), &what) == 0 && S_ISREG(what.st_mode) &&
        !files_.watches(what.st_dev))
      read_unasked(process, link, "argument");
  }
}

void CodeCapture::read(Process& process, const char* how, std::string_view bytes, std::string note) {
  look_at(process);
  Captured captured = contents_.of_bytes(bytes);
  if (captured.note.empty()) captured.note = std::move(note);
  tell(process, how, "", process.executable, std::move(captured), 0);
}

uint64_t CodeCapture::take_lost() {
  return std::exchange(lost_, 0);
}

}  // namespace firestop::guest
