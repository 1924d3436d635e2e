#include "guest/evidence/connect_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <string>
#include <utility>

namespace firestop::guest {
namespace {

constexpr uint32_t kMostPorts = 8192;  // UDP ports of which is known what was told last

// What the programs put into the ring. From `pid` to its end but for `protocol` it is also the value of the
// table of what was told.
struct Record {
  uint64_t at_ns;
  uint32_t pid, address;
  uint16_t port, source_port;  // `port` in the network's order
  uint32_t protocol;
};
static_assert(sizeof(Record) == 24);
constexpr uint32_t kToldSize = 12;

// Places in struct sock, which begins with a struct sock_common, and in struct msghdr.
struct Places {
  int16_t address, own_address, port, own_port, name;
};

struct Tables {
  const UniqueFd &ring, &told;
  const BpfCounter& lost;
};

// Registers: 6 the socket, 7 the address, 8 the message.
class Program {
 public:
  Program(const Places& places, const Tables& tables) : places_(places), tables_(tables) {}

  // int tcp_connect(struct sock *sk)
  BpfCode tcp() {
    c_.load(BPF_DW, 6, 1, 0);
    c_.load(BPF_W, 7, 6, places_.address);
    c_.load(BPF_H, 9, 6, places_.port);
    skip_what_stays();
    c_.load(BPF_W, 1, 6, places_.own_address);
    to_end_.push_back(c_.jump_by(BPF_JEQ, 7, 1));
    fill(IPPROTO_TCP);
    put();
    return end();
  }

  // int udp_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
  BpfCode udp() {
    c_.load(BPF_DW, 6, 1, 0), c_.load(BPF_DW, 8, 1, 8);
    c_.load(BPF_DW, 3, 8, places_.name);
    const size_t connected = c_.jump(BPF_JEQ, 3, 0);
    c_.move(1, 10), c_.plus(1, kName), c_.set(2, 8);  // of a sockaddr_in
    c_.call(BPF_FUNC_probe_read_kernel);
    to_end_.push_back(c_.jump(BPF_JNE, 0, 0));
    c_.load(BPF_W, 7, 10, kName + 4), c_.load(BPF_H, 9, 10, kName + 2);
    const size_t named = c_.jump(BPF_JA, 0, 0);
    c_.land(connected);
    c_.load(BPF_W, 7, 6, places_.address), c_.load(BPF_H, 9, 6, places_.port);
    c_.land(named);
    skip_what_stays();
    fill(IPPROTO_UDP);
    skip_what_was_told();
    put();
    remember();
    return end();
  }

 private:
  static constexpr int16_t kRecord = -24, kKey = -28, kName = -40;  // on the stack
  static constexpr int16_t at(size_t offset) {
    return static_cast<int16_t>(kRecord + static_cast<int>(offset));
  }

  // 0 is the machine itself, too, or a socket that is not connected.
  void skip_what_stays() {
    to_end_.push_back(c_.jump(BPF_JEQ, 7, 0));
    c_.move(1, 7), c_.mask(1, 255);
    to_end_.push_back(c_.jump(BPF_JEQ, 1, 127));
  }

  void fill(int protocol) {
    c_.store(BPF_W, 10, at(offsetof(Record, address)), 7);
    c_.store(BPF_H, 10, at(offsetof(Record, port)), 9);
    c_.load(BPF_H, 9, 6, places_.own_port);
    c_.store(BPF_H, 10, at(offsetof(Record, source_port)), 9);
    c_.set(1, protocol), c_.store(BPF_W, 10, at(offsetof(Record, protocol)), 1);
    c_.call(BPF_FUNC_get_current_pid_tgid);
    c_.shift_right(0, 32);
    c_.store(BPF_W, 10, at(offsetof(Record, pid)), 0);
    c_.call(BPF_FUNC_ktime_get_ns);
    c_.store(BPF_DW, 10, at(offsetof(Record, at_ns)), 0);
  }

  void skip_what_was_told() {
    c_.store(BPF_W, 10, kKey, 9);
    c_.map(1, tables_.told), c_.move(2, 10), c_.plus(2, kKey);
    c_.call(BPF_FUNC_map_lookup_elem);
    std::vector<size_t> differs{c_.jump(BPF_JEQ, 0, 0)};
    for (int16_t word = 0; word < static_cast<int16_t>(kToldSize); word = static_cast<int16_t>(word + 4)) {
      c_.load(BPF_W, 1, 0, word);
      c_.load(BPF_W, 2, 10, static_cast<int16_t>(at(offsetof(Record, pid)) + word));
      differs.push_back(c_.jump_by(BPF_JNE, 1, 2));
    }
    to_end_.push_back(c_.jump(BPF_JA, 0, 0));
    for (const size_t jump : differs) c_.land(jump);
  }

  // What does not fit is counted.
  void put() {
    c_.map(1, tables_.ring), c_.move(2, 10), c_.plus(2, kRecord), c_.set(3, sizeof(Record)), c_.set(4, 0);
    c_.call(BPF_FUNC_ringbuf_output);
    const size_t fits = c_.jump(BPF_JEQ, 0, 0);
    tables_.lost.count(c_, kKey);
    to_end_.push_back(c_.jump(BPF_JA, 0, 0));
    c_.land(fits);
  }

  void remember() {
    c_.map(1, tables_.told), c_.move(2, 10), c_.plus(2, kKey);
    c_.move(3, 10), c_.plus(3, at(offsetof(Record, pid))), c_.set(4, BPF_ANY);
    c_.call(BPF_FUNC_map_update_elem);
  }

  BpfCode end() {
    for (const size_t jump : to_end_) c_.land(jump);
    c_.end();
    return std::move(c_);
  }

  const Places& places_;
  const Tables& tables_;
  BpfCode c_;
  std::vector<size_t> to_end_;
};

Result<Places> places_of(const Btf& types) {
  const auto address = types.member("sock_common", "skc_daddr");
  const auto own_address = types.member("sock_common", "skc_rcv_saddr");
  const auto port = types.member("sock_common", "skc_dport");
  const auto own_port = types.member("sock_common", "skc_num");
  const auto name = types.member("msghdr", "msg_name");
  if (!address || !own_address || !port || !own_port || !name)
    return fail("evidence.connections", "the kernel does not say what its sockets look like");
  return Places{*address, *own_address, *port, *own_port, *name};
}

}  // namespace

Result<ConnectProbe> ConnectProbe::make(const Btf& types) {
  TRY_ASSIGN(const Places places, places_of(types));
  const uint32_t connect = types.function("tcp_connect"), send = types.function("udp_sendmsg");
  if (connect == 0 || send == 0)
    return fail("evidence.connections", "the kernel does not say where connections are made");
  ConnectProbe probe;
  TRY_ASSIGN(probe.ring_, BpfRing::make(kRing));
  TRY_ASSIGN(probe.told_, make_bpf_map(BPF_MAP_TYPE_LRU_HASH, 4, kToldSize, kMostPorts));
  TRY_ASSIGN(probe.lost_, BpfCounter::make());
  const Tables tables{probe.ring_.map(), probe.told_, probe.lost_};
  TRY_ASSIGN(probe.udp_, attach_bpf(Program(places, tables).udp(), send, BPF_TRACE_FENTRY));
  TRY_ASSIGN(probe.tcp_, attach_bpf(Program(places, tables).tcp(), connect, BPF_TRACE_FENTRY));
  return probe;
}

void ConnectProbe::take(const std::function<void(const Connection&)>& each) {
  ring_.take([&](std::string_view bytes) {
    Record record{};
    if (bytes.size() < sizeof record) return;
    ::memcpy(&record, bytes.data(), sizeof record);
    each({.at_ns = record.at_ns,
          .pid = record.pid,
          .address = record.address,
          .port = ntohs(record.port),
          .source_port = record.source_port,
          .udp = record.protocol == IPPROTO_UDP});
  });
}

}  // namespace firestop::guest
