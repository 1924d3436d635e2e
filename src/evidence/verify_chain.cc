#include "evidence/verify_chain.h"

namespace firestop::evidence {
namespace {

constexpr size_t kMostRemembered = 10000;  // gaps and early events; beyond it, names get coarser

std::string records(uint64_t first, uint64_t last) {
  if (first == last) return "record " + std::to_string(first);
  return "records " + std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace

void ChainCheck::take(const ReadEvent& read, const ReadEvent& next) {
  if (read.kind == ReadEvent::Kind::kBad) {
    findings_.broken({.code = "evidence.bad_event",
                      .message = "line " + std::to_string(read.line) + " is no event: " + read.why,
                      .seq = expected_,
                      .line = read.line});
    // In the place of an event, unless that one comes next.
    if (!next.is(expected_)) ++expected_;
    previous_.reset();
    first_ = false;
    return;
  }
  const uint64_t number = place(read, next);
  link(read, next, number);
  first_ = false;
  previous_ = number;
  previous_hash_ = read.hash;
}

uint64_t ChainCheck::place(const ReadEvent& read, const ReadEvent& next) {
  uint64_t seq = read.event.seq;
  // In its place by its hash and by the next one: then only its number was changed, which link() will see.
  if (previous_ && seq != expected_ && read.event.prev == previous_hash_ && next.is(expected_ + 1))
    seq = expected_;
  if (seq < expected_) {
    if (was_missed(seq)) {
      out_of_order(read);
    } else {
      findings_.broken({.code = "evidence.duplicate",
                        .message = "record " + std::to_string(seq) + " is there once more, in line " +
                                   std::to_string(read.line),
                        .seq = seq,
                        .line = read.line});
    }
  } else if (seq == expected_) {
    ++expected_;
  } else if (early_.size() < kMostRemembered && (next.is(expected_) || next.is(expected_ + 1))) {
    // A stranger here: the next goes on where this one should have been.
    out_of_order(read);
    early_.insert(seq);
    if (!next.is(expected_)) {
      miss(expected_, expected_);
      ++expected_;
    }
  } else {
    miss(expected_, seq - 1);
    expected_ = seq + 1;
  }
  while (early_.erase(expected_) > 0) ++expected_;
  return seq;
}

void ChainCheck::link(const ReadEvent& read, const ReadEvent& next, uint64_t number) {
  const Event& event = read.event;
  if (first_ && number == 0 && event.prev != std::string(64, '0')) {
    findings_.broken({.code = "evidence.changed",
                      .message = "record 0 was changed: it names a record before it",
                      .seq = 0,
                      .line = read.line});
  }
  if (!previous_ || number != *previous_ + 1) {
    suspect_.reset();
    return;
  }
  if (event.prev == previous_hash_) {
    suspect_.reset();
    return;
  }
  const uint64_t first = suspect_.value_or(*previous_), last = *previous_;
  if (next.is(number + 1) && next.event.prev != read.hash) {
    // This one was changed itself, so its word against the one before counts little.
    suspect_ = first;
    return;
  }
  suspect_.reset();
  findings_.broken({.code = "evidence.changed",
                    .message = records(first, last) +
                               (first == last ? " was changed: the next one hashes another"
                                              : " were changed, or some of them: the next hash another"),
                    .seq = first,
                    .last_seq = last,
                    .line = read.line - 1});
}

void ChainCheck::out_of_order(const ReadEvent& read) {
  findings_.broken({.code = "evidence.out_of_order",
                    .message = "record " + std::to_string(read.event.seq) + " stands in line " +
                               std::to_string(read.line) + ", out of order",
                    .seq = read.event.seq,
                    .line = read.line});
}

void ChainCheck::miss(uint64_t first, uint64_t last) {
  if (missed_.size() >= kMostRemembered) return;
  missed_[first] = last;
}

bool ChainCheck::was_missed(uint64_t seq) {
  auto at = missed_.upper_bound(seq);
  if (at == missed_.begin()) return false;
  --at;
  const auto [first, last] = *at;
  if (seq > last) return false;
  missed_.erase(at);
  if (first < seq) missed_[first] = seq - 1;
  if (seq < last) missed_[seq + 1] = last;
  return true;
}

void ChainCheck::end() {
  for (const auto& [first, last] : missed_)
    findings_.broken({.code = "evidence.missing",
                      .message = records(first, last) + (first == last ? " is missing" : " are missing"),
                      .seq = first,
                      .last_seq = last});
}

}  // namespace firestop::evidence
