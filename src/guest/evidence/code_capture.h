// What is run as code and is not from the image: its bytes, before it runs.
//
// Programs and scripts with "#!" are caught when the kernel opens them to execute, and what interpreters open
// (language.h says which programs are ones) when they do; both wait until the bytes are had. Text among the
// arguments (-c, -e) comes with audit's record. An executable that nobody was asked about, one in anonymous
// memory or on a file system that root mounted later, is read when its process is seen to run it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "guest/evidence/audit_notice.h"
#include "guest/evidence/code_readers.h"
#include "guest/evidence/contents.h"
#include "guest/evidence/file_watch.h"
#include "guest/evidence/processes.h"
#include "guest/evidence/script_input.h"
#include "guest/evidence/teller.h"

namespace firestop::guest {

class CodeCapture {
 public:
  CodeCapture(Teller& teller, Contents& contents, FileWatch& files, Processes& processes, ScriptInput& input,
              AuditNotice& notice)
      : teller_(teller),
        contents_(contents),
        files_(files),
        processes_(processes),
        input_(input),
        notice_(notice) {}

  void executes(const FileEvent& event);
  void opens(const FileEvent& event);
  void written(const FileEvent& event);
  // The connector's word that a process runs another program now.
  void runs(Process& process);
  // Audit's record of an execution; the Exec of it is told here, too.
  void executed(const AuditEvent& event);
  // A part of a program that came by a pipe, a file or a terminal (script_input.h).
  void read(Process& process, const char* how, std::string_view bytes, std::string note);
  uint64_t take_lost();

 private:
  static constexpr size_t kMostFiles = 1u << 16;
  static constexpr uint64_t kMostOpened = 1u << 20, kMostOpenedBytes = 64u << 20, kMostOpenedFiles = 10'000;
  static Inode inode_of(const struct stat& what) { return {what.st_dev, what.st_ino}; }
  void forget_readers(const Inode& inode);  // those that have ended, or run another program
  bool has_room_for_opened(Process& process);
  void say(Process& process, std::string how, std::string path, std::string interpreter, Captured captured,
           uint32_t writer);
  void look_at(Process& process);
  void tell(Process& process, std::string how, std::string path, std::string interpreter, Captured captured,
            uint32_t writer);
  uint32_t writer_of(const struct stat& what) const;
  void read_unwatched(Process& process, const CodeArguments& arguments);
  void read_unasked(Process& process, const std::string& link, const char* how);

  Teller& teller_;
  Contents& contents_;
  FileWatch& files_;
  Processes& processes_;
  ScriptInput& input_;
  AuditNotice& notice_;
  std::map<Inode, uint32_t> writers_;  // who wrote it last
  CodeReaders readers_;
  uint64_t opened_bytes_ = 0, opened_files_ = 0;
  bool opened_full_ = false;  // and said so
  uint64_t lost_ = 0;
};

}  // namespace firestop::guest
