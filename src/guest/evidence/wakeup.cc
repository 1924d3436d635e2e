#include "guest/evidence/wakeup.h"

namespace firestop::guest {

Result<Wakeup> Wakeup::make() {
  Wakeup wakeup;
  TRY_ASSIGN(wakeup.ring_, BpfRing::make(4096));
  return wakeup;
}

// When the ring is full, those before this one have woken.
void Wakeup::wake(BpfCode& code, int16_t stack) const {
  code.set(1, 0), code.store(BPF_DW, 10, stack, 1);
  code.map(1, ring_.map());
  code.move(2, 10), code.plus(2, stack);
  code.set(3, 8), code.set(4, BPF_RB_FORCE_WAKEUP);
  code.call(BPF_FUNC_ringbuf_output);
}

}  // namespace firestop::guest
