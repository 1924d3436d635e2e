#include "guest/evidence/bpf.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

namespace firestop::guest {
namespace {

constexpr size_t kPage = 4096;

long bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

bpf_attr element(const UniqueFd& map, const void* key, const void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<uint32_t>(map.get());
  attributes.key = reinterpret_cast<uintptr_t>(key);
  attributes.value = reinterpret_cast<uintptr_t>(value);
  return attributes;
}

}  // namespace

Result<UniqueFd> make_bpf_map(uint32_t type, uint32_t key, uint32_t value, uint32_t entries) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = key;
  attributes.value_size = value;
  attributes.max_entries = entries;
  UniqueFd map(static_cast<int>(bpf(BPF_MAP_CREATE, attributes)));
  if (!map.valid()) return fail_errno("evidence.bpf", "cannot make a BPF map");
  return map;
}

bool look_up_bpf(const UniqueFd& map, const void* key, void* value) {
  auto attributes = element(map, key, value);
  return bpf(BPF_MAP_LOOKUP_ELEM, attributes) == 0;
}

void update_bpf(const UniqueFd& map, const void* key, const void* value) {
  auto attributes = element(map, key, value);
  (void)bpf(BPF_MAP_UPDATE_ELEM, attributes);
}

void remove_bpf(const UniqueFd& map, const void* key) {
  auto attributes = element(map, key, nullptr);
  (void)bpf(BPF_MAP_DELETE_ELEM, attributes);
}

Result<UniqueFd> attach_bpf(const BpfCode& code, uint32_t function, bpf_attach_type when) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_TRACING;
  attributes.expected_attach_type = when;
  attributes.attach_btf_id = function;
  attributes.insns = reinterpret_cast<uintptr_t>(code.list().data());
  attributes.insn_cnt = static_cast<uint32_t>(code.list().size());
  attributes.license = reinterpret_cast<uintptr_t>("GPL");
  const UniqueFd program(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  if (!program.valid()) {
    const int error = errno;
    std::string words(16u << 10, '\0');  // what the verifier says, its last lines
    attributes.log_level = 1;
    attributes.log_buf = reinterpret_cast<uintptr_t>(words.data());
    attributes.log_size = static_cast<uint32_t>(words.size());
    (void)bpf(BPF_PROG_LOAD, attributes);
    words.resize(::strnlen(words.data(), words.size()));
    if (words.size() > 200) words.erase(0, words.size() - 200);
    errno = error;
    return fail_errno("evidence.bpf", "the kernel refuses the probe: " + words);
  }
  bpf_attr place{};
  place.raw_tracepoint.prog_fd = static_cast<uint32_t>(program.get());
  UniqueFd link(static_cast<int>(bpf(BPF_RAW_TRACEPOINT_OPEN, place)));
  if (!link.valid()) return fail_errno("evidence.bpf", "cannot attach the probe");
  return link;
}

Result<BpfCounter> BpfCounter::make() {
  BpfCounter counter;
  TRY_ASSIGN(counter.map_, make_bpf_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(uint64_t), 1));
  return counter;
}

void BpfCounter::count(BpfCode& code, int16_t stack) const {
  code.set(1, 0), code.store(BPF_W, 10, stack, 1);
  code.map(1, map_), code.move(2, 10), code.plus(2, stack);
  code.call(BPF_FUNC_map_lookup_elem);
  const size_t none = code.jump(BPF_JEQ, 0, 0);
  code.set(1, 1);
  code.add(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD);
  code.land(none);
}

uint64_t BpfCounter::take() {
  const uint32_t key = 0;
  uint64_t now = 0;
  if (!map_.valid() || !look_up_bpf(map_, &key, &now)) return 0;
  return now - std::exchange(before_, now);
}

Result<BpfRing> BpfRing::make(uint32_t bytes) {
  BpfRing ring;
  TRY_ASSIGN(ring.map_, make_bpf_map(BPF_MAP_TYPE_RINGBUF, 0, 0, bytes));
  void* control = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd(), 0);
  if (control == MAP_FAILED) return fail_errno("evidence.bpf", "cannot map the ring");
  ring.control_ = static_cast<char*>(control);
  ring.size_ = bytes;
  void* data = ::mmap(nullptr, kPage + size_t{2} * bytes, PROT_READ, MAP_SHARED, ring.fd(), kPage);
  if (data == MAP_FAILED) return fail_errno("evidence.bpf", "cannot map the ring");
  ring.data_ = static_cast<char*>(data);
  return ring;
}

BpfRing& BpfRing::operator=(BpfRing&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(size_, other.size_);
  std::swap(control_, other.control_);
  std::swap(data_, other.data_);
  return *this;
}

BpfRing::~BpfRing() {
  if (control_) ::munmap(control_, kPage);
  if (data_) ::munmap(data_, kPage + size_t{2} * size_);
}

// Positions only grow; a record is 8 bytes of head, then a multiple of 8.
void BpfRing::take(const std::function<void(std::string_view)>& each) {
  if (!data_) return;
  std::atomic_ref<uint64_t> consumer(*reinterpret_cast<uint64_t*>(control_));
  const auto* producer = reinterpret_cast<const volatile uint64_t*>(data_);
  uint64_t at = consumer.load(std::memory_order_relaxed);
  while (at < *producer) {
    std::atomic_thread_fence(std::memory_order_acquire);
    const char* record = data_ + kPage + (at & (size_ - 1));
    const uint32_t length = *reinterpret_cast<const volatile uint32_t*>(record);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) return;
    const size_t size = length & ~BPF_RINGBUF_DISCARD_BIT;
    if ((length & BPF_RINGBUF_DISCARD_BIT) == 0) each({record + BPF_RINGBUF_HDR_SZ, size});
    at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    consumer.store(at, std::memory_order_release);
  }
}

}  // namespace firestop::guest
