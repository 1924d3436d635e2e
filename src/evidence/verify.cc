#include "evidence/verify.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/path.h"
#include "codec/utf8.h"
#include "evidence/completeness.h"
#include "evidence/findings.h"
#include "evidence/line_reader.h"
#include "evidence/verify_chain.h"
#include "evidence/verify_contents.h"
#include "evidence/verify_signatures.h"

namespace firestop::evidence {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kMostShown = 80;
constexpr size_t kMostContentsTold = 1000;  // each digest once, as long as there are no more

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options)
      : options_(options), findings_(out_), chain_(findings_), signatures_(options.signers, findings_) {}

  Result<Verification> run(const std::string& directory);

 private:
  Result<ReadEvent> read(LineReader& reader) const;
  Result<void> take(const ReadEvent& read, const ReadEvent& next);
  void begin(const ReadEvent& read);
  void whose();
  void contents(const Event& event);
  Result<void> match(const ReadEvent& read, const ReadEvent& next);
  void rewritten(const Checkpoint& checkpoint);
  void end(const ReadEvent& last);
  Result<void> truncated();

  const VerifyOptions& options_;
  Verification out_;
  Findings findings_;
  ChainCheck chain_;
  SignatureCheck signatures_;
  ContentCheck contents_;
  Completeness completeness_;
  std::set<std::string> told_contents_;
  bool begun_ = false, ended_ = false, after_end_ = false, rewritten_ = false;
  uint64_t covered_ = 0;  // events under the last checkpoint that fits
};

Result<ReadEvent> Verifier::read(LineReader& reader) const {
  ReadEvent out;
  TRY_ASSIGN(const auto got, reader.next());
  out.line = reader.number();
  if (got == LineReader::Got::kEnd) return out;
  if (got == LineReader::Got::kHalf) {
    out.kind = ReadEvent::Kind::kHalf;
    return out;
  }
  out.kind = ReadEvent::Kind::kBad;
  if (got == LineReader::Got::kTooLong) {
    out.why = "it is longer than " + std::to_string(kMostLine) + " bytes";
    return out;
  }
  auto event = parse_event(reader.line());
  if (!event) {
    out.why = event.error().message;
    return out;
  }
  out.kind = ReadEvent::Kind::kEvent;
  out.event = std::move(*event);
  out.hash = sha256_hex(reader.line());
  return out;
}

Result<Verification> Verifier::run(const std::string& directory) {
  TRY(signatures_.open(directory));
  TRY_ASSIGN(LineReader reader, LineReader::open(join_path(directory, "events.jsonl"), kMostLine));
  TRY_ASSIGN(contents_, ContentCheck::read(directory));
  if (options_.anchor) signatures_.expect_anchored(*options_.anchor);
  out_.contents = contents_.files();
  TRY_ASSIGN(ReadEvent current, read(reader));
  while (current.kind == ReadEvent::Kind::kEvent || current.kind == ReadEvent::Kind::kBad) {
    TRY_ASSIGN(ReadEvent next, read(reader));
    if (!begun_) {
      begin(current);
      TRY(signatures_.next());
      whose();
    }
    TRY(take(current, next));
    current = std::move(next);
  }
  // Nobody began, so nobody signed: what signatures there are belong to something else.
  if (!begun_) {
    signatures_.expect_any();
    TRY(signatures_.next());
    whose();
  }
  chain_.end();
  TRY(truncated());
  end(current);
  signatures_.end();
  out_.integrity = findings_.integrity();
  out_.checkpoints = signatures_.good();
  out_.signer = signatures_.signer();
  out_.anchored = signatures_.anchored();
  out_.gaps = completeness_.gaps();
  out_.complete = out_.gaps.empty();
  return std::move(out_);
}

void Verifier::begin(const ReadEvent& read) {
  begun_ = true;
  const Event& event = read.event;
  const auto broken = [&](const char* code, std::string message) {
    findings_.broken({.code = code, .message = std::move(message), .line = read.line});
  };
  if (read.is(0)) {
    if (event.kind != "record.begin")
      broken("evidence.bad_begin", "the first record is no record.begin");
    else if (event.data.int_or("format", 0) != kFormat)
      broken("evidence.bad_begin", "the record has another format than 1, which this version reads");
    signatures_.expect(event.data.string_or("run", ""), event.data.string_or("key", ""));
  } else {
    // Its begin is missing or unreadable, which the chain says.
    signatures_.expect_any();
  }
}

void Verifier::whose() {
  out_.run = signatures_.run();
  if (options_.run.empty() || out_.run.empty() || out_.run == options_.run) return;
  findings_.broken({.code = "evidence.other_run",
                    .message = "this is the record of run " + codec::printable(out_.run, kMostShown) +
                               ", and not of " + options_.run});
}

Result<void> Verifier::take(const ReadEvent& read, const ReadEvent& next) {
  chain_.take(read, next);
  if (read.kind != ReadEvent::Kind::kEvent) return {};
  ++out_.events;
  const Event& event = read.event;
  if (ended_ && !after_end_) {
    after_end_ = true;
    findings_.broken({.code = "evidence.after_end",
                      .message = "record " + std::to_string(event.seq) + " comes after record.end",
                      .seq = event.seq,
                      .line = read.line});
  }
  if (event.kind == "record.end") ended_ = true;
  completeness_.take(event);
  contents(event);
  return match(read, next);
}

void Verifier::contents(const Event& event) {
  if (event.kind != "process.exec" && event.kind != "code") return;
  const std::string digest = event.data.string_or("digest", "");
  if (digest.empty() || event.data.bool_or("image", false)) return;
  const auto state = contents_.of(digest);
  if (state == ContentCheck::State::kGood) return;
  if (told_contents_.size() < kMostContentsTold && !told_contents_.insert(digest).second) return;
  const bool missing = state == ContentCheck::State::kMissing;
  Finding finding{.code = missing ? "evidence.content_missing" : "evidence.content_changed",
                  .message = "record " + std::to_string(event.seq) + " refers to content " +
                             codec::printable(digest, kMostShown) +
                             (missing ? ", which is missing" : ", which was changed"),
                  .seq = event.seq,
                  .digest = digest};
  // Contents are on the disk before a checkpoint speaks of them; after the last one, power may have failed.
  if (missing && !signatures_.current())
    findings_.unfinished(std::move(finding));
  else
    findings_.content(std::move(finding));
}

// Compares with the checkpoint that signs this event as the last, if there is one.
Result<void> Verifier::match(const ReadEvent& read, const ReadEvent& next) {
  while (const Checkpoint* current = signatures_.current()) {
    if (current->count > chain_.expected()) return {};
    const Checkpoint checkpoint = *current;
    if (checkpoint.count == read.event.seq + 1) {
      if (checkpoint.head == read.hash) {
        covered_ = std::max(covered_, checkpoint.count);
        if (!findings_.any_broken() && chain_.clean()) out_.trusted = checkpoint;
      } else if (!(next.is(checkpoint.count) && next.event.prev == checkpoint.head)) {
        // Unless the next event says what the signature says: then the chain names the one that was changed.
        rewritten(checkpoint);
      }
    }
    TRY(signatures_.next());
  }
  return {};
}

void Verifier::rewritten(const Checkpoint& checkpoint) {
  if (std::exchange(rewritten_, true)) return;
  const uint64_t last = checkpoint.count - 1, first = std::min(covered_, last);
  findings_.broken({.code = "evidence.rewritten",
                    .message = "checkpoint " + std::to_string(checkpoint.number) + " signed other events: " +
                               (first == last ? "record " + std::to_string(last) + " is not what"
                                              : "records " + std::to_string(first) + " to " +
                                                    std::to_string(last) + " are not what") +
                               " was written",
                    .seq = first,
                    .last_seq = last,
                    .checkpoint = checkpoint.number});
}

// Checkpoints that speak of events that are not there.
Result<void> Verifier::truncated() {
  std::optional<Checkpoint> furthest;
  while (const Checkpoint* current = signatures_.current()) {
    if (current->count > chain_.expected()) furthest = *current;
    TRY(signatures_.next());
  }
  if (!furthest) return {};
  const uint64_t there = chain_.expected();
  findings_.broken({.code = "evidence.truncated",
                    .message = "checkpoint " + std::to_string(furthest->number) + " signed " +
                               std::to_string(furthest->count) + " records, and there are " +
                               std::to_string(there) + ": records " + std::to_string(there) + " to " +
                               std::to_string(furthest->count - 1) + " were cut off",
                    .seq = there,
                    .last_seq = furthest->count - 1,
                    .checkpoint = furthest->number});
  return {};
}

void Verifier::end(const ReadEvent& last) {
  const uint64_t there = chain_.expected();
  if (last.kind == ReadEvent::Kind::kHalf) {
    findings_.unfinished({.code = "evidence.cut",
                          .message = "the last line is half a record: it was being written",
                          .line = last.line});
  }
  if (signatures_.good() == 0) {
    // The first event is signed before there is a second one; until then a killed host leaves no signature.
    Finding finding{.code = "evidence.unsigned", .message = "no good signature covers any of it"};
    if (there <= 1 && !findings_.any_broken())
      findings_.unfinished(std::move(finding));
    else
      findings_.broken(std::move(finding));
  } else if (covered_ < there && !rewritten_) {
    findings_.unfinished({.code = "evidence.uncovered",
                          .message = "the last " + std::to_string(there - covered_) + " of " +
                                     std::to_string(there) + " records are not covered by a signature",
                          .seq = covered_,
                          .last_seq = there - 1});
  }
  if (!ended_)
    findings_.unfinished({.code = "evidence.not_ended",
                          .message =
                              "there is no record.end: the run lives, its host died, or the record was "
                              "cut back with its signatures"});
}

}  // namespace

std::string_view to_string(Integrity integrity) {
  switch (integrity) {
    case Integrity::kIntact:
      return "intact";
    case Integrity::kPrefix:
      return "prefix";
    case Integrity::kBroken:
      return "broken";
  }
  return "broken";
}

Result<std::string> run_of(const std::string& directory) {
  TRY_ASSIGN(LineReader reader, LineReader::open(join_path(directory, "events.jsonl"), kMostLine));
  TRY_ASSIGN(const auto got, reader.next());
  if (got != LineReader::Got::kLine) return std::string();
  const auto event = parse_event(reader.line());
  return event ? event->data.string_or("run", "") : std::string();
}

Result<Verification> verify(const std::string& directory, const VerifyOptions& options) {
  return Verifier(options).run(directory);
}

}  // namespace firestop::evidence
