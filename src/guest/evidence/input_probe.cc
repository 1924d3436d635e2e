#include "guest/evidence/input_probe.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/file.h"

namespace firestop::guest {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPiece = 4096;
constexpr int32_t kMostPieces = 256;  // of one read(2): 1 MiB
constexpr uint32_t kMostWatched = 8192;

struct Head {
  uint32_t pid, descriptor, length;
  int32_t fault;
  uint64_t left;  // of the same read, behind this piece
};
struct Scratch {
  Head head;
  char bytes[kPiece];
  uint64_t lost;
};

long bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

Result<UniqueFd> make_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = key;
  attributes.value_size = value;
  attributes.max_entries = entries;
  UniqueFd map(static_cast<int>(bpf(BPF_MAP_CREATE, attributes)));
  if (!map.valid()) return fail_errno("evidence.input", "cannot make a BPF map");
  return map;
}

// Instructions, with jumps to places that come later.
class Code {
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
  void load(int size, int to, int from, int16_t offset) {
    add(static_cast<uint8_t>(BPF_LDX | BPF_MEM | size), to, from, offset, 0);
  }
  void store(int size, int to, int16_t offset, int from) {
    add(static_cast<uint8_t>(BPF_STX | BPF_MEM | size), to, from, offset, 0);
  }
  void map(int to, int fd) {
    add(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, fd);
    add(0, 0, 0, 0, 0);
  }
  void call(int helper) { add(BPF_JMP | BPF_CALL, 0, 0, 0, helper); }
  // Jumps `if to OP value`; the place is set by land().
  size_t jump(int op, int to, int32_t value) {
    add(static_cast<uint8_t>(BPF_JMP | op | BPF_K), to, 0, 0, value);
    return list_.size() - 1;
  }
  void land(size_t jump) { list_[jump].off = static_cast<int16_t>(list_.size() - jump - 1); }
  size_t here() const { return list_.size(); }
  void back(int op, int to, int32_t value, size_t place) {
    add(static_cast<uint8_t>(BPF_JMP | op | BPF_K), to, 0,
        static_cast<int16_t>(static_cast<int>(place) - static_cast<int>(list_.size()) - 1), value);
  }
  const std::vector<bpf_insn>& list() const { return list_; }

 private:
  std::vector<bpf_insn> list_;
};

// long __x64_sys_read(const struct pt_regs *regs): the context is regs, then what was returned.
Code program(int watched, int scratch, int ring) {
  constexpr int16_t kSi = 104, kDi = 112;  // in pt_regs: buffer, descriptor
  constexpr auto kAt = [](size_t offset) { return static_cast<int16_t>(offset); };
  Code c;
  std::vector<size_t> to_end;
  c.move(6, 1);
  c.call(BPF_FUNC_get_current_pid_tgid);
  c.add(BPF_ALU64 | BPF_RSH | BPF_K, 0, 0, 0, 32);
  c.store(BPF_W, 10, -4, 0);
  c.map(1, watched);
  c.move(2, 10), c.plus(2, -4);
  c.call(BPF_FUNC_map_lookup_elem);
  to_end.push_back(c.jump(BPF_JEQ, 0, 0));
  c.load(BPF_W, 2, 0, 0);  // InputProbe::What
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
  c.load(BPF_DW, 1, 8, kAt(offsetof(Scratch, lost))), c.plus(1, 1);
  c.store(BPF_DW, 8, kAt(offsetof(Scratch, lost)), 1);
  c.land(fits);
  c.load(BPF_DW, 2, 10, -32);
  c.add(BPF_ALU64 | BPF_SUB | BPF_X, 6, 2, 0, 0), c.add(BPF_ALU64 | BPF_ADD | BPF_X, 9, 2, 0, 0);
  c.plus(7, 1);
  to_end.push_back(c.jump(BPF_JGE, 7, kMostPieces));
  c.back(BPF_JSGT, 6, 0, again);
  for (const size_t jump : to_end) c.land(jump);
  c.set(0, 0);
  c.add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  return c;
}

Result<UniqueFd> load(const Code& code, uint32_t function) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_TRACING;
  attributes.expected_attach_type = BPF_TRACE_FEXIT;
  attributes.attach_btf_id = function;
  attributes.insns = reinterpret_cast<uintptr_t>(code.list().data());
  attributes.insn_cnt = static_cast<uint32_t>(code.list().size());
  attributes.license = reinterpret_cast<uintptr_t>("GPL");
  UniqueFd program(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  if (program.valid()) return program;
  const int error = errno;
  std::string words(16u << 10, '\0');  // what the verifier says, its last lines
  attributes.log_level = 1;
  attributes.log_buf = reinterpret_cast<uintptr_t>(words.data());
  attributes.log_size = static_cast<uint32_t>(words.size());
  (void)bpf(BPF_PROG_LOAD, attributes);
  words.resize(::strnlen(words.data(), words.size()));
  if (words.size() > 200) words.erase(0, words.size() - 200);
  errno = error;
  return fail_errno("evidence.input", "the kernel refuses the probe: " + words);
}

template <typename T>
T value_at(std::string_view bytes, size_t at) {
  T value{};
  if (at <= bytes.size() && bytes.size() - at >= sizeof value)
    ::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// What follows a type's 12 bytes (Documentation/bpf/btf.rst), by its kind and its count of members.
size_t more_of_type(uint32_t kind, uint32_t members) {
  switch (kind) {
    case 1:   // INT
    case 14:  // VAR
    case 17:  // DECL_TAG
      return 4;
    case 3:  // ARRAY
      return 12;
    case 4:   // STRUCT
    case 5:   // UNION
    case 15:  // DATASEC
    case 19:  // ENUM64
      return size_t{12} * members;
    case 6:   // ENUM
    case 13:  // FUNC_PROTO
      return size_t{8} * members;
    default:
      return 0;
  }
}

}  // namespace

uint32_t find_btf_function(std::string_view btf, std::string_view name) {
  if (value_at<uint16_t>(btf, 0) != 0xeb9f) return 0;
  const auto part = [&](size_t at) {
    const uint64_t begin = uint64_t{value_at<uint32_t>(btf, 4)} + value_at<uint32_t>(btf, at);
    return begin <= btf.size() ? btf.substr(begin, value_at<uint32_t>(btf, at + 4)) : std::string_view();
  };
  const std::string_view types = part(8), strings = part(16);
  uint32_t number = 1;
  for (size_t at = 0; at + 12 <= types.size(); ++number) {
    const auto text = value_at<uint32_t>(types, at), info = value_at<uint32_t>(types, at + 4);
    const uint32_t kind = info >> 24 & 31;
    if (kind == 12 && text < strings.size() && strings.substr(text).starts_with(name) &&
        strings.size() - text > name.size() && strings[text + name.size()] == '\0')
      return number;
    at += 12 + more_of_type(kind, info & 0xffff);
  }
  return 0;
}

Result<InputProbe> InputProbe::make() {
  InputProbe probe;
  TRY_ASSIGN(probe.watched_, make_map(BPF_MAP_TYPE_HASH, 4, 4, kMostWatched));
  TRY_ASSIGN(probe.scratch_, make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(Scratch), 1));
  TRY_ASSIGN(probe.ring_, make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, kRing));
  uint32_t function = 0;
  {
    TRY_ASSIGN(const std::string btf, read_file("/sys/kernel/btf/vmlinux", 64u << 20));
    function = find_btf_function(btf, "__x64_sys_read");
  }
  if (function == 0) return fail("evidence.input", "the kernel does not say where read(2) is");
  TRY_ASSIGN(probe.program_,
             load(program(probe.watched_.get(), probe.scratch_.get(), probe.ring_.get()), function));
  void* control = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, probe.ring_.get(), 0);
  void* data = ::mmap(nullptr, kPage + 2 * kRing, PROT_READ, MAP_SHARED, probe.ring_.get(), kPage);
  if (control == MAP_FAILED || data == MAP_FAILED) return fail_errno("evidence.input", "cannot map the ring");
  probe.control_ = static_cast<char*>(control);
  probe.data_ = static_cast<char*>(data);
  bpf_attr attributes{};
  attributes.raw_tracepoint.prog_fd = static_cast<uint32_t>(probe.program_.get());
  probe.link_.reset(static_cast<int>(bpf(BPF_RAW_TRACEPOINT_OPEN, attributes)));
  if (!probe.link_.valid()) return fail_errno("evidence.input", "cannot attach the probe");
  return probe;
}

InputProbe::InputProbe(InputProbe&& other) noexcept {
  *this = std::move(other);
}

InputProbe& InputProbe::operator=(InputProbe&& other) noexcept {
  std::swap(watched_, other.watched_);
  std::swap(scratch_, other.scratch_);
  std::swap(ring_, other.ring_);
  std::swap(program_, other.program_);
  std::swap(link_, other.link_);
  std::swap(control_, other.control_);
  std::swap(data_, other.data_);
  std::swap(lost_before_, other.lost_before_);
  return *this;
}

InputProbe::~InputProbe() {
  if (control_) ::munmap(control_, kPage);
  if (data_) ::munmap(data_, kPage + 2 * kRing);
}

void InputProbe::watch(uint32_t pid, What what) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(watched_.get());
  attributes.key = reinterpret_cast<uintptr_t>(&pid);
  attributes.value = reinterpret_cast<uintptr_t>(&what);
  if (works()) (void)bpf(BPF_MAP_UPDATE_ELEM, attributes);
}

void InputProbe::forget(uint32_t pid) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(watched_.get());
  attributes.key = reinterpret_cast<uintptr_t>(&pid);
  if (works()) (void)bpf(BPF_MAP_DELETE_ELEM, attributes);
}

// Documentation/bpf/ringbuf.rst: positions only grow; a record is 8 bytes of head, then a multiple of 8.
void InputProbe::take(const std::function<void(const Piece&)>& each) {
  if (!works()) return;
  std::atomic_ref<uint64_t> consumer(*reinterpret_cast<uint64_t*>(control_));
  const auto* producer = reinterpret_cast<const volatile uint64_t*>(data_);
  uint64_t at = consumer.load(std::memory_order_relaxed);
  while (at < *producer) {
    std::atomic_thread_fence(std::memory_order_acquire);
    const char* record = data_ + kPage + (at & (kRing - 1));
    const uint32_t length = *reinterpret_cast<const volatile uint32_t*>(record);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) return;
    const size_t size = length & ~BPF_RINGBUF_DISCARD_BIT;
    Head head{};
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0 && size >= sizeof head) {
      ::memcpy(&head, record + BPF_RINGBUF_HDR_SZ, sizeof head);
      const size_t got = std::min<size_t>(head.length, size - sizeof head);
      each({head.pid, head.descriptor, {record + BPF_RINGBUF_HDR_SZ + sizeof head, got}, head.fault == 0});
    }
    at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    consumer.store(at, std::memory_order_release);
  }
}

uint64_t InputProbe::take_lost() {
  if (!works()) return 0;
  constexpr size_t kMostProcessors = 256;
  std::vector<char> all(kMostProcessors * ((sizeof(Scratch) + 7) / 8 * 8));
  uint32_t key = 0;
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(scratch_.get());
  attributes.key = reinterpret_cast<uintptr_t>(&key);
  attributes.value = reinterpret_cast<uintptr_t>(all.data());
  if (bpf(BPF_MAP_LOOKUP_ELEM, attributes) != 0) return 0;
  uint64_t lost = 0;
  for (size_t at = 0; at < all.size(); at += (sizeof(Scratch) + 7) / 8 * 8) {
    uint64_t count = 0;
    ::memcpy(&count, all.data() + at + offsetof(Scratch, lost), sizeof count);
    lost += count;
  }
  return lost - std::exchange(lost_before_, lost);
}

}  // namespace firestop::guest
