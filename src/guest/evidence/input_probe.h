// What chosen processes read(2), as they got it: programs that come by a pipe, a socket or a terminal lie in
// no file. A small BPF program behind the system call copies the bytes of processes in a table to a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "guest/evidence/bpf.h"
#include "guest/evidence/btf.h"
#include "guest/evidence/wakeup.h"

namespace firestop::guest {

class InputProbe {
 public:
  // `wakeup` is used for kAll, and when much waits to be taken.
  static Result<InputProbe> make(const Btf& types, const Wakeup& wakeup);

  enum class What : uint32_t { kStandardInput = 1, kAll = 2 };
  bool works() const { return link_.valid(); }
  int fd() const { return ring_.fd(); }
  void watch(uint32_t pid, What what);
  void forget(uint32_t pid);

  struct Piece {
    uint32_t pid = 0;
    uint32_t descriptor = 0;
    std::string_view bytes;  // empty: the end was read
    uint64_t left = 0;       // of the same read(2), behind this piece
    bool whole = true;       // false: some of what was read could not be copied
  };
  void take(const std::function<void(const Piece&)>& each);
  // Pieces that did not fit, since this was last asked.
  uint64_t take_lost() { return lost_.take(); }

 private:
  static constexpr uint32_t kRing = 2u << 20;  // more than one read(2) of kMostPieces, and kMuch
  UniqueFd watched_, scratch_, link_;
  BpfRing ring_;
  BpfCounter lost_;
};

}  // namespace firestop::guest
