// Small BPF programs, put together by hand: they are short, and a compiler for them, or a loader, would be
// much more than they are. bpf(2), the kernel's own types (btf.h), no headers of a kernel.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::guest {

Result<UniqueFd> make_bpf_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries);
// `value` has the size that the map was made with, of a map by processor as often as there can be processors.
bool look_up_bpf(const UniqueFd& map, const void* key, void* value);
void update_bpf(const UniqueFd& map, const void* key, const void* value);
void remove_bpf(const UniqueFd& map, const void* key);

// Instructions, with jumps to places that come later. Registers are numbers: 0 is what calls return, 1 to 5
// are their arguments, 6 to 9 stay, 10 is the end of 512 bytes of stack.
class BpfCode {
 public:
  void add(uint8_t code, int to, int from, int16_t offset, int32_t value) {
    bpf_insn one{};
    one.code = code;
    one.dst_reg = static_cast<uint8_t>(to & 15);
    one.src_reg = static_cast<uint8_t>(from & 15);
    one.off = offset;
    one.imm = value;
    list_.push_back(one);
  }
  void move(int to, int from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(int to, int32_t value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void plus(int to, int32_t value) { add(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value); }
  void shift_right(int to, int32_t bits) { add(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, bits); }
  void mask(int to, int32_t bits) { add(BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, bits); }
  void load(int size, int to, int from, int16_t offset) {
    add(static_cast<uint8_t>(BPF_LDX | BPF_MEM | size), to, from, offset, 0);
  }
  void store(int size, int to, int16_t offset, int from) {
    add(static_cast<uint8_t>(BPF_STX | BPF_MEM | size), to, from, offset, 0);
  }
  void map(int to, const UniqueFd& map) {
    add(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map.get());
    add(0, 0, 0, 0, 0);
  }
  void call(int helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  // Jumps `if to OP value`; the place is set by land().
  size_t jump(int op, int to, int32_t value) {
    add(static_cast<uint8_t>(BPF_JMP | op | BPF_K), to, 0, 0, value);
    return list_.size() - 1;
  }
  // The same for `if to OP from`.
  size_t jump_by(int op, int to, int from) {
    add(static_cast<uint8_t>(BPF_JMP | op | BPF_X), to, from, 0, 0);
    return list_.size() - 1;
  }
  void land(size_t jump) { list_[jump].off = static_cast<int16_t>(list_.size() - jump - 1); }
  size_t here() const { return list_.size(); }
  void back(int op, int to, int32_t value, size_t place) {
    add(static_cast<uint8_t>(BPF_JMP | op | BPF_K), to, 0,
        static_cast<int16_t>(static_cast<int>(place) - static_cast<int>(list_.size()) - 1), value);
  }
  void end() {
    set(0, 0);
    add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  }
  const std::vector<bpf_insn>& list() const { return list_; }

 private:
  std::vector<bpf_insn> list_;
};

// Runs the program whenever the kernel comes to a function (by its number in the kernel's types), before it
// (BPF_TRACE_FENTRY) or behind it (BPF_TRACE_FEXIT), until the result is closed. "evidence.bpf", with the
// last words of the kernel's verifier.
Result<UniqueFd> attach_bpf(const BpfCode& code, uint32_t function, bpf_attach_type when);

// A number that programs count up.
class BpfCounter {
 public:
  static Result<BpfCounter> make();
  // Puts instructions there that add one; registers 0 to 5 and 4 bytes at `stack` are theirs.
  void count(BpfCode& code, int16_t stack) const;
  // How often, since this was last asked.
  uint64_t take();

 private:
  UniqueFd map_;
  uint64_t before_ = 0;
};

// A ring that programs put records into (BPF_MAP_TYPE_RINGBUF, Documentation/bpf/ringbuf.rst).
class BpfRing {
 public:
  BpfRing() = default;
  static Result<BpfRing> make(uint32_t bytes);  // a power of two, at least a page
  BpfRing(BpfRing&& other) noexcept { *this = std::move(other); }
  BpfRing& operator=(BpfRing&& other) noexcept;
  ~BpfRing();

  const UniqueFd& map() const { return map_; }
  int fd() const { return map_.get(); }  // readable when there is something
  void take(const std::function<void(std::string_view record)>& each);

 private:
  UniqueFd map_;
  uint32_t size_ = 0;
  char* control_ = nullptr;  // the page of the consumer's position
  char* data_ = nullptr;     // the page of the producer's position, then the ring twice
};

}  // namespace firestop::guest
