#include "guest/exec_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "guest/boot.h"
#include "guest/exec_notice.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr size_t kMostPaths = 32;  // told apart, a run

std::string proc(int thread, const char* name) {
  return "/proc/" + std::to_string(thread) + "/" + name;
}

}  // namespace

Result<std::unique_ptr<ExecGuard>> ExecGuard::make(Events& events, uid_t account) {
  std::unique_ptr<ExecGuard> guard(new ExecGuard(events, account));
  guard->group_.reset(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE |
                                          FAN_UNLIMITED_MARKS | FAN_REPORT_TID,
                                      O_RDONLY | O_CLOEXEC));
  if (!guard->group_.valid()) return fail_errno("guest.exec_guard", "the kernel has no fanotify");
  TRY(guard->mark_mounts());
  // Without stacks every loader would look like a program, and nothing could start: say why.
  if (!read_file("/proc/self/stack", 64u << 10))
    return fail("guest.exec_guard", "the kernel does not tell the stacks of threads");
  events.watch(guard->group_.get(), EPOLLIN, [self = guard.get()](uint32_t) { self->judge(); });
  return guard;
}

ExecGuard::~ExecGuard() {
  events_.drop(group_.get());
  if (listener_.valid()) events_.drop(listener_.get());
}

Result<void> ExecGuard::mark_mounts() {
  TRY_ASSIGN(const auto places, mounts_below(kRoot));
  for (const std::string& place : places)
    if (::fanotify_mark(group_.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC_PERM, AT_FDCWD,
                        place.c_str()) != 0)
      return fail_errno("guest.exec_guard", "cannot watch " + place);
  if (places.empty()) return fail("guest.exec_guard", "there is nothing to watch");
  return {};
}

void ExecGuard::judge() {
  alignas(fanotify_event_metadata) char buffer[2048];
  ssize_t got = ::read(group_.get(), buffer, sizeof buffer);
  for (const auto* event = reinterpret_cast<fanotify_event_metadata*>(buffer); FAN_EVENT_OK(event, got);
       event = FAN_EVENT_NEXT(event, got)) {
    const UniqueFd file(event->fd);  // without one the kernel has refused by itself
    if (!file.valid() || (event->mask & FAN_OPEN_EXEC_PERM) == 0) continue;
    const bool allowed = may_execute(file.get(), event->pid);
    if (!allowed) refused(place_inside(file));
    const fanotify_response answer{file.get(), allowed ? FAN_ALLOW : static_cast<uint32_t>(FAN_DENY)};
    (void)!::write(group_.get(), &answer, sizeof answer);  // fails if the thread was killed meanwhile
  }
}

bool ExecGuard::may_execute(int file, int thread) const {
  struct stat what{};
  if (::fstat(file, &what) != 0) return false;
  const FileId id = FileId::of(what);
  // The thread waits in the kernel, so its stack stands still. The innermost handler of a binary format says
  // what the file is opened for; without one, it is what execve(2) was called with.
  const std::string stack = read_file(proc(thread, "stack"), 64u << 10).value_or("");
  if (stack.find("load_elf_binary+") != std::string::npos) return rules_.is_loader(id);
  if (!rules_.is_program(id)) return false;
  if (!exporting_ || stack.find("load_script+") != std::string::npos) return true;
  struct stat by{}, git{};
  if (::stat(proc(thread, "exe").c_str(), &by) != 0) return false;
  const bool by_git =
      ::stat((std::string(kRoot) + "/usr/bin/git").c_str(), &git) == 0 && FileId::of(by) == FileId::of(git);
  return !by_git || id == FileId::of(git);
}

void ExecGuard::listen(UniqueFd listener) {
  if (listener_.valid()) events_.drop(listener_.get());
  listener_ = std::move(listener);
  if (listener_.valid())
    events_.watch(listener_.get(), EPOLLIN, [this](uint32_t events) {
      if ((events & EPOLLIN) != 0) return answer_notice();
      events_.drop(listener_.get());  // the container is gone
      listener_.reset();
    });
}

void ExecGuard::answer_notice() {
  const auto notice = Notice::receive(listener_.get());
  if (!notice) return;  // its thread is gone
  const UniqueFd file = executed_file(*notice, account_);
  struct stat what{};
  // What cannot be looked at, the kernel finds wanting or the wall judges.
  const bool refuse = file.valid() && ::fstat(file.get(), &what) == 0 && S_ISREG(what.st_mode) &&
                      !rules_.is_program(FileId::of(what));
  if (!refuse) return notice->go_on();
  refused(place_inside(file));
  notice->refuse(EACCES);
}

void ExecGuard::refused(std::string path) {
  if (!refusals_.contains(path) && refusals_.size() >= kMostPaths) path.clear();
  ++refusals_[std::move(path)].untold;
}

std::vector<ExecGuard::Refusal> ExecGuard::refusals(bool all) {
  std::vector<Refusal> out;
  for (auto& [path, count] : refusals_) {
    if (count.untold == 0 || (count.told && !all)) continue;
    out.push_back({path, count.untold});
    count = {0, true};
  }
  return out;
}

}  // namespace firestop::guest
