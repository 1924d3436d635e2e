// What chosen processes read(2), as they got it: programs that come by a pipe, a socket or a terminal lie in
// no file. A small BPF program behind the system call copies the bytes of processes in a table to a ring.
//
// It is written by hand, since it is short, and since a compiler for it, or a loader, would be much more than
// it: bpf(2), the kernel's BTF to find the function, no headers of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

// The number of the function `name` in the kernel's types (BTF, /sys/kernel/btf/vmlinux); 0: there is none.
uint32_t find_btf_function(std::string_view btf, std::string_view name);

class InputProbe {
 public:
  static Result<InputProbe> make();
  InputProbe() = default;
  InputProbe(InputProbe&& other) noexcept;
  InputProbe& operator=(InputProbe&& other) noexcept;
  ~InputProbe();

  enum class What : uint32_t { kStandardInput = 1, kAll = 2 };
  bool works() const { return link_.valid(); }
  int fd() const { return ring_.get(); }
  void watch(uint32_t pid, What what);
  void forget(uint32_t pid);

  struct Piece {
    uint32_t pid = 0;
    uint32_t descriptor = 0;
    std::string_view bytes;  // empty: the end was read
    bool whole = true;       // false: some of what was read could not be copied
  };
  void take(const std::function<void(const Piece&)>& each);
  // Pieces that did not fit, since this was last asked.
  uint64_t take_lost();

 private:
  static constexpr size_t kRing = 1u << 20;
  UniqueFd watched_, scratch_, ring_, program_, link_;
  char* control_ = nullptr;  // the page of the consumer's position
  char* data_ = nullptr;     // the page of the producer's position, then the ring twice
  uint64_t lost_before_ = 0;
};

}  // namespace firestop::guest
