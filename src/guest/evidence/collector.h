// The process that sees what happens in the container and tells the host: PID 1's child, outside the
// container, ahead of everything else in the scheduler. It waits for nothing but the kernel and the host:
// never for PID 1, and never for what it is itself asked about (it opens no file of a watched file system by
// name).
//
// It begins before "ready", so that a snapshot holds it set up; nothing of before "watch" is told.
#pragma once

#include <cstdint>

#include "guest/evidence/file_watch.h"

namespace firestop::guest {

// What PID 1 asks, and what it is answered, one message each.
enum class CollectorWord : uint32_t {
  kReady = 1,  // answer: set up
  kWatch,      // from now on all counts; answered when nothing can be missed any more
  kFinish,     // all processes have ended: say the rest; answered when the host has it
  kDone,       // answer to the two
};

// Runs until PID 1 is gone. `control` is its end of a SOCK_SEQPACKET pair. When it cannot begin, it says why
// there and ends.
[[noreturn]] void run_collector(int control, FileWatch files);
// In its place, for measurements: it observes nothing, and says so.
[[noreturn]] void run_bystander(int control);

}  // namespace firestop::guest
