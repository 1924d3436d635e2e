// What the guest's collectors tell the host, as types. They speak on a port of their own ("firestop.1"), one
// way: frames (codec/frame.h), of which control frames hold one observation each as JSON, and data and end
// frames of kContentStream the bytes of the Content that was announced last. Nothing is ever said to the
// collectors on it; a host that does not read holds them up, and they hold up the agent. Bytes that need not
// be UTF-8 travel as base64. Times are the guest's wall clock, in microseconds since 1970: a claim, like all
// else here. Every number has a range, every list and text a bound.
//
//   hello     once, first, and not before the host said "start" (a template is taken before): which
//   collectors work content   before the first observation that refers to it; ids count up from 1; contents
//   do not interleave final     one a file, after the command's end alive     at least every kAliveEvery
//   while nothing else is said done      once, last: all that was seen has been told
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/frame.h"

namespace firestop::channel::observed {

inline constexpr int kVersion = 1;
inline constexpr uint16_t kContentStream = 1;
inline constexpr uint64_t kMostContent = 8u << 20;  // bytes sent of one file; what is longer is cut
inline constexpr std::chrono::seconds kAliveEvery{5};

struct Hello {
  int version = kVersion;
  std::vector<std::string>
      collectors;  // that work: "processes", "costs", "files", "code", "stdin", "connections"
  std::vector<std::string> missing;  // "stdin: the kernel has no BTF"
};

struct Fork {
  uint32_t pid = 0, parent = 0;
  int64_t at_us = 0;
};

struct Exec {
  uint32_t pid = 0, parent = 0;
  int64_t at_us = 0;
  uint32_t uid = 0, gid = 0;
  std::string file;         // path, as the container sees it
  bool from_image = false;  // and is unchanged
  uint32_t content = 0;     // of the file, where it is not from the image
  std::vector<std::string> argv;
  uint32_t argc = 0;  // more than argv has when that was cut
  bool cut = false;   // arguments were left out or shortened
  std::string cwd;
};

struct Exit {
  uint32_t pid = 0;
  int64_t at_us = 0;
  int status = 0;  // wait(2)
  uint64_t user_us = 0, system_us = 0, max_rss_kib = 0;
};

// `sent` bytes follow as data frames, and an end frame (also after none).
struct Content {
  uint32_t id = 0;
  uint64_t size = 0;  // of the whole; more than `sent` when it was cut
  uint64_t sent = 0;
};

// Something that is not from the image was run as code.
struct Code {
  uint32_t pid = 0;  // who ran it
  int64_t at_us = 0;
  // "program" (executed itself), "script" (executed, with #!), "argument" (named to an interpreter), "module"
  // (opened by one later: import, source, include), "command" (-c, -e), "stdin", "typed" (stdin, a terminal),
  // "opened" (by one, and does not look like code)
  std::string how;
  std::string path;         // as the container sees it; empty where there is none
  std::string interpreter;  // its path; empty for "program"
  uint32_t content = 0;     // 0: could not be had, and `note` says why
  uint32_t writer = 0;      // pid that wrote the file last in this run; 0: nobody, or not known
  std::string note;
};

struct Change {
  uint32_t pid = 0;
  int64_t at_us = 0;
  std::string what;  // "write" (closed after writing), "rename", "delete", "link"
  std::string path, to;
};

// What a file of the workspace that was written is like after the command's end.
struct Final {
  std::string path;
  uint64_t size = 0;
  std::string digest;  // SHA-256, hexadecimal; empty when it was not computed, and `note` says why
  std::string note;
};

// A socket's connect(2) was begun.
struct Connect {
  uint32_t pid = 0;
  int64_t at_us = 0;
  std::string protocol;  // "tcp", "udp"
  uint16_t source_port = 0;
  std::string address;
  uint16_t port = 0;
};

struct Lost {
  std::string what;    // "processes", "costs", "files", "code", "stdin", "connections"
  uint64_t count = 0;  // at least
};

struct Alive {};
struct Done {};

using Observation =
    std::variant<Hello, Fork, Exec, Exit, Content, Code, Change, Final, Connect, Lost, Alive, Done>;

// One frame's payload. "channel.bad_message": a value beyond its range: the caller's mistake.
Result<std::string> encode(const Observation& observation);
// "channel.bad_message", with the member that is wrong.
Result<Observation> decode(std::string_view json);

class Receiver {
 public:
  virtual ~Receiver() = default;
  // A Content is followed by its bytes and its end; other observations may come between.
  virtual Result<void> observed(const Observation& observation) = 0;
  virtual Result<void> content_bytes(std::string_view bytes) = 0;
  virtual Result<void> content_end() = 0;
};

// The host's end of the port: cuts, decodes and holds what comes to the order above. Holds no more than a
// frame and what was fed. After an error ("frame.bad", "channel.bad_message", or the receiver's) it stays
// broken.
class Inbox {
 public:
  explicit Inbox(Receiver& receiver) : receiver_(receiver) {}  // must outlive it
  Result<void> receive(std::string_view bytes);
  bool done() const { return done_; }

 private:
  Result<void> take(std::string_view bytes);
  Result<void> control(std::string_view json);

  Receiver& receiver_;
  codec::FrameDecoder decoder_;
  uint32_t last_content_ = 0;
  uint64_t left_ = 0;  // bytes of the open content
  bool greeted_ = false, open_ = false, done_ = false, broken_ = false;
};

}  // namespace firestop::channel::observed
