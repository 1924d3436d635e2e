#include "guest/evidence/proc_events.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>

#include <utility>

namespace firestop::guest {

std::optional<ProcEvent> parse_proc_event(std::string_view payload) {
  cn_msg head{};
  proc_event event{};
  if (payload.size() < sizeof head) return std::nullopt;
  ::memcpy(&head, payload.data(), sizeof head);
  payload.remove_prefix(sizeof head);
  if (head.id.idx != CN_IDX_PROC || head.id.val != CN_VAL_PROC || payload.size() < sizeof event)
    return std::nullopt;
  ::memcpy(&event, payload.data(), sizeof event);
  ProcEvent out;
  out.cpu = event.cpu;
  out.number = head.seq;
  out.at_ns = event.timestamp_ns;
  const auto number = [](auto pid) { return static_cast<uint32_t>(pid); };
  switch (event.what) {
    case proc_event::PROC_EVENT_FORK: {
      const auto& fork = event.event_data.fork;
      out.kind = fork.child_pid == fork.child_tgid ? ProcEvent::Kind::kFork : ProcEvent::Kind::kThread;
      out.pid = number(fork.child_tgid);
      out.thread = number(fork.child_pid);
      out.parent = number(fork.parent_tgid);
      break;
    }
    case proc_event::PROC_EVENT_EXEC:
      out.kind = ProcEvent::Kind::kExec;
      out.pid = number(event.event_data.exec.process_tgid);
      break;
    case proc_event::PROC_EVENT_EXIT:
      out.kind = ProcEvent::Kind::kExit;
      out.pid = number(event.event_data.exit.process_tgid);
      out.thread = number(event.event_data.exit.process_pid);
      out.status = event.event_data.exit.exit_code & 0xffff;
      break;
    default:
      break;
  }
  return out;
}

Result<ProcEvents> ProcEvents::open() {
  ProcEvents events;
  TRY_ASSIGN(events.link_, Netlink::open(NETLINK_CONNECTOR, CN_IDX_PROC));
  const proc_cn_mcast_op listen = PROC_CN_MCAST_LISTEN;
  cn_msg head{};
  head.id = {CN_IDX_PROC, CN_VAL_PROC};
  head.len = sizeof listen;
  TRY(events.link_.send(NLMSG_DONE, std::string(bytes_of(head)) + std::string(bytes_of(listen))));
  return events;
}

void ProcEvents::begin() {
  while (next()) {
  }
  lost_ = 0;
}

std::optional<ProcEvent> ProcEvents::next() {
  uint16_t type = 0;
  std::string payload;
  while (true) {
    const auto got = link_.receive(type, payload);
    if (got == Netlink::Got::kNothing) return std::nullopt;
    if (got == Netlink::Got::kOverflow) continue;  // the numbers tell how many
    const auto event = parse_proc_event(payload);
    if (!event) continue;
    // An acknowledgement of "listen" counts as the first of its processor.
    const auto [known, fresh] = next_.try_emplace(event->cpu, event->number);
    if (!fresh) lost_ += event->number - known->second;
    known->second = event->number + 1;
    if (event->kind != ProcEvent::Kind::kOther) return event;
  }
}

uint64_t ProcEvents::take_lost() {
  return std::exchange(lost_, 0);
}

}  // namespace firestop::guest
