// How the collectors' BPF programs wake their process at once. What need not be seen at once lies in a ring
// or a socket until the next look: on a machine without KVM each switch of processes costs some 0.4 ms, more
// than what is done in it.
#pragma once

#include "base/result.h"
#include "guest/evidence/bpf.h"

namespace firestop::guest {

class Wakeup {
 public:
  static Result<Wakeup> make();
  bool works() const { return ring_.fd() >= 0; }
  int fd() const { return ring_.fd(); }
  void take() {
    ring_.take([](std::string_view) {});
  }
  // Puts instructions there that wake; registers 0 to 5 and 8 bytes at `stack` are theirs.
  void wake(BpfCode& code, int16_t stack) const;

 private:
  BpfRing ring_;
};

}  // namespace firestop::guest
