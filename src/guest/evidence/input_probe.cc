#include "guest/evidence/input_probe.h"

#include <string.h>

#include <utility>
#include <vector>

namespace firestop::guest {
namespace {

constexpr size_t kPiece = 4096;
constexpr int32_t kMostPieces = 256;  // of one read(2): 1 MiB
constexpr uint32_t kMostWatched = 8192;
constexpr int32_t kMuch = 256 << 10;  // bytes in the ring

struct Head {
  uint32_t pid, descriptor, length;
  int32_t fault;
  uint64_t left;  // of the same read, behind this piece
};
struct Scratch {
  Head head;
  char bytes[kPiece];
};

// long __x64_sys_read(const struct pt_regs *regs): the context is regs, then what was returned.
BpfCode program(const UniqueFd& watched, const UniqueFd& scratch, const UniqueFd& ring,
                const BpfCounter& lost, const Wakeup& wakeup) {
  constexpr int16_t kSi = 104, kDi = 112;  // in pt_regs: buffer, descriptor
  constexpr auto kAt = [](size_t offset) { return static_cast<int16_t>(offset); };
  BpfCode c;
  std::vector<size_t> to_end;
  c.move(6, 1);
  c.call(BPF_FUNC_get_current_pid_tgid);
  c.shift_right(0, 32);
  c.store(BPF_W, 10, -4, 0);
  c.map(1, watched);
  c.move(2, 10), c.plus(2, -4);
  c.call(BPF_FUNC_map_lookup_elem);
  to_end.push_back(c.jump(BPF_JEQ, 0, 0));
  c.load(BPF_W, 2, 0, 0);  // InputProbe::What
  c.store(BPF_W, 10, -48, 2);
  c.load(BPF_DW, 7, 6, 0), c.load(BPF_DW, 6, 6, 8);
  to_end.push_back(c.jump(BPF_JSLT, 6, 0));
  c.load(BPF_DW, 1, 7, kDi);
  const size_t all = c.jump(BPF_JNE, 2, static_cast<int32_t>(InputProbe::What::kStandardInput));
  to_end.push_back(c.jump(BPF_JNE, 1, 0));
  c.land(all);
  c.store(BPF_DW, 10, -24, 1);
  c.load(BPF_DW, 9, 7, kSi);
  c.set(1, 0), c.store(BPF_W, 10, -8, 1);
  c.map(1, scratch);
  c.move(2, 10), c.plus(2, -8);
  c.call(BPF_FUNC_map_lookup_elem);
  to_end.push_back(c.jump(BPF_JEQ, 0, 0));
  c.move(8, 0);
  c.load(BPF_W, 1, 10, -4), c.store(BPF_W, 8, kAt(offsetof(Head, pid)), 1);
  c.load(BPF_DW, 1, 10, -24), c.store(BPF_W, 8, kAt(offsetof(Head, descriptor)), 1);
  c.set(7, 0);
  const size_t again = c.here();
  // r6 bytes are left, at r9: the next piece
  c.move(2, 6);
  const size_t short_one = c.jump(BPF_JLE, 2, kPiece);
  c.set(2, kPiece);
  c.land(short_one);
  c.store(BPF_DW, 10, -32, 2);
  c.store(BPF_W, 8, kAt(offsetof(Head, length)), 2);
  c.move(1, 6), c.add(BPF_ALU64 | BPF_SUB | BPF_X, 1, 2, 0, 0);
  c.store(BPF_DW, 8, kAt(offsetof(Head, left)), 1);
  c.set(0, 0);
  const size_t at_end = c.jump(BPF_JEQ, 2, 0);
  c.move(1, 8), c.plus(1, offsetof(Scratch, bytes)), c.move(3, 9);
  c.call(BPF_FUNC_probe_read_user);
  c.land(at_end);
  c.store(BPF_W, 8, kAt(offsetof(Head, fault)), 0);
  c.load(BPF_DW, 3, 10, -32);
  const size_t bounded = c.jump(BPF_JLE, 3, kPiece);
  c.set(3, kPiece);
  c.land(bounded);
  c.plus(3, offsetof(Scratch, bytes));
  c.map(1, ring);
  c.move(2, 8), c.set(4, 0);
  c.call(BPF_FUNC_ringbuf_output);
  const size_t fits = c.jump(BPF_JEQ, 0, 0);
  lost.count(c, -40);
  c.land(fits);
  c.load(BPF_DW, 2, 10, -32);
  c.add(BPF_ALU64 | BPF_SUB | BPF_X, 6, 2, 0, 0), c.add(BPF_ALU64 | BPF_ADD | BPF_X, 9, 2, 0, 0);
  c.plus(7, 1);
  const size_t all_pieces = c.jump(BPF_JGE, 7, kMostPieces);
  c.back(BPF_JSGT, 6, 0, again);
  c.land(all_pieces);
  // Whether a descriptor is a pipe can be seen as long as its process lives.
  c.load(BPF_W, 1, 10, -48);
  const size_t at_once = c.jump(BPF_JEQ, 1, static_cast<int32_t>(InputProbe::What::kAll));
  c.map(1, ring), c.set(2, BPF_RB_AVAIL_DATA);
  c.call(BPF_FUNC_ringbuf_query);
  to_end.push_back(c.jump(BPF_JLE, 0, kMuch));
  c.land(at_once);
  wakeup.wake(c, -40);
  for (const size_t jump : to_end) c.land(jump);
  c.end();
  return c;
}

}  // namespace

Result<InputProbe> InputProbe::make(const Btf& types, const Wakeup& wakeup) {
  InputProbe probe;
  TRY_ASSIGN(probe.watched_, make_bpf_map(BPF_MAP_TYPE_HASH, 4, 4, kMostWatched));
  TRY_ASSIGN(probe.scratch_, make_bpf_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(Scratch), 1));
  TRY_ASSIGN(probe.ring_, BpfRing::make(kRing));
  TRY_ASSIGN(probe.lost_, BpfCounter::make());
  const uint32_t function = types.function("__x64_sys_read");
  if (function == 0) return fail("evidence.input", "the kernel does not say where read(2) is");
  TRY_ASSIGN(probe.link_,
             attach_bpf(program(probe.watched_, probe.scratch_, probe.ring_.map(), probe.lost_, wakeup),
                        function, BPF_TRACE_FEXIT));
  return probe;
}

void InputProbe::watch(uint32_t pid, What what) {
  if (works()) update_bpf(watched_, &pid, &what);
}

void InputProbe::forget(uint32_t pid) {
  if (works()) remove_bpf(watched_, &pid);
}

void InputProbe::take(const std::function<void(const Piece&)>& each) {
  ring_.take([&](std::string_view record) {
    Head head{};
    if (record.size() < sizeof head) return;
    ::memcpy(&head, record.data(), sizeof head);
    record.remove_prefix(sizeof head);
    each({head.pid, head.descriptor, record.substr(0, head.length), head.left, head.fault == 0});
  });
}

}  // namespace firestop::guest
