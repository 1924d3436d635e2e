// fanotify(7) on every file system that the container sees: what is executed, opened, and closed after
// writing. Who executes or opens waits until it is answered.
//
// Files of the image are left out as soon as they were seen once: an ignore mark on the inode, which the
// kernel may drop, and which ends when the file is written. So a program that opens a thousand headers costs
// a thousand events once.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

struct FileEvent {
  enum class Kind { kExecute, kOpen, kWritten };
  Kind kind{};
  uint32_t pid = 0;
  int fd = -1;  // reads the file, whatever became of its name
  struct stat what{};
};

class FileWatch {
 public:
  static Result<FileWatch> make();

  int fd() const { return group_.get(); }
  // All that is mounted at and below kRoot, now. What was marked before stays so.
  Result<void> mark_mounts();
  // Takes all marks away.
  void end();
  // What waits now, each answered "go on" after its call. `before` is called once for what was read at once.
  // False: nothing waited.
  bool take(const std::function<void()>& before, const std::function<void(const FileEvent&)>& each);

  // Whether the file is as the image has it: the overlay's, and no copy of it was made for writing.
  bool from_image(int fd, const struct stat& what) const;
  // Opening it is not told any more, until it is written.
  void ignore_opens(int fd);
  // Never tell of this one: a pipe with a name, whose ends an event's descriptor would join.
  void leave_alone(const std::string& path);
  // Whether opening a file of this device by name would be told: to us, who would wait for our own answer.
  bool watches(dev_t device);

 private:
  UniqueFd group_;
  dev_t root_ = 0;
  std::set<dev_t> devices_;
  dev_t not_watched_ = 0;  // the last one asked for that is none of them, and when
  int64_t asked_ms_ = 0;
};

// For the container's first process: also this place of its own, which exists only there.
Result<void> watch_place(int group, const char* path);

// The same for one file on a file system that cannot be watched.
Result<void> watch_file(int group, int fd);
// How many files of the device are watched so, or left out; SIZE_MAX when that cannot be told.
size_t marks_of(int group, dev_t device);

// Where an open file lies as the container sees it, without the " (deleted)" that the kernel puts behind the
// name of one that was removed; "" when that cannot be told.
std::string place_of(int fd);
// The same for a link in /proc.
std::string place_at(const std::string& link);

}  // namespace firestop::guest
