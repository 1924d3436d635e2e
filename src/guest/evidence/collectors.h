// PID 1's side of the collectors: starts them, asks them, and learns that they are gone.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "guest/evidence/collector.h"
#include "guest/evidence/file_watch.h"

namespace firestop::guest {

class Collectors {
 public:
  // Before "ready". They are set up when this returns. Where the kernel's command line says
  // "firestop.unobserved", for measurements, they observe nothing, and say so.
  static Result<std::unique_ptr<Collectors>> start();
  Collectors(const Collectors&) = delete;
  Collectors& operator=(const Collectors&) = delete;
  ~Collectors();

  // After all mounts of a start are made, before anything runs. Waits for the answer.
  Result<void> begin();
  // Begins to say the rest. Until over(), nothing may be taken out of the machine.
  Result<void> finish();
  bool over() const { return over_; }

  // For the event loop: readable when they have something to say, or are gone.
  int fd() const { return control_.get(); }
  Result<void> hear();
  // For the container's first process (watch_place()); -1 where nothing is observed.
  int group() const { return aside_ ? -1 : group_.get(); }

 private:
  Collectors() = default;
  Result<void> say(CollectorWord word);
  Result<void> wait_for(CollectorWord word);

  pid_t pid_ = -1;
  UniqueFd control_, group_;
  bool aside_ = false, finishing_ = false, over_ = false;
};

}  // namespace firestop::guest
