#include "evidence/verify_signatures.h"

#include <utility>

#include "base/path.h"
#include "codec/utf8.h"

namespace firestop::evidence {
namespace {

constexpr size_t kMostTold = 8;  // unknown keys named
constexpr size_t kMostShown = 80;

std::string shown(const std::string& text) {
  return codec::printable(text, kMostShown);
}

std::string named(uint64_t number) {
  return "checkpoint " + std::to_string(number);
}

}  // namespace

Result<void> SignatureCheck::open(const std::string& directory) {
  auto reader = LineReader::open(join_path(directory, "checkpoints.jsonl"), kMostCheckpoint);
  if (reader) {
    reader_ = std::make_unique<LineReader>(std::move(*reader));
  } else if (reader.error().code != "evidence.not_found") {
    return tl::unexpected(reader.error());
  }
  return {};
}

void SignatureCheck::expect(const std::string& run, const std::string& key_id) {
  run_ = run;
  key_id_ = key_id;
}

void SignatureCheck::expect_anchored(const std::vector<Checkpoint>& checkpoints) {
  anchor_.emplace();
  for (const auto& checkpoint : checkpoints) anchor_->emplace(checkpoint.number, checkpoint);
}

Result<void> SignatureCheck::next() {
  current_.reset();
  while (reader_ && !current_) {
    TRY_ASSIGN(const auto got, reader_->next());
    if (got == LineReader::Got::kEnd) reader_.reset();
    if (got == LineReader::Got::kHalf) {
      findings_.unfinished({.code = "evidence.cut",
                            .message = "the last checkpoint is half a line: it was being written",
                            .line = reader_->number()});
    }
    if (got == LineReader::Got::kTooLong)
      broken("evidence.bad_checkpoint",
             "line " + std::to_string(reader_->number()) + " of checkpoints.jsonl is too long for one");
    if (got == LineReader::Got::kLine) current_ = judge(reader_->line());
  }
  return {};
}

std::optional<Checkpoint> SignatureCheck::judge(std::string_view line) {
  const std::string where = "line " + std::to_string(reader_->number()) + " of checkpoints.jsonl";
  const auto envelope = parse_envelope(line);
  const auto checkpoint = envelope ? checkpoint_of(*envelope) : tl::unexpected(envelope.error());
  if (!checkpoint) {
    broken("evidence.bad_checkpoint", where + " is no checkpoint: " + checkpoint.error().message);
    return {};
  }
  const PublicKey* key = judge_signature(*envelope);
  if (!key) return {};
  // What the signature does not cover, such as the key's id, has one form too.
  if (envelope->signatures.size() != 1 || envelope->signatures.front().key_id != key->id() ||
      write_envelope(*envelope) != line) {
    broken("evidence.bad_checkpoint", where + " is signed, but not as it was written", checkpoint->number);
    return {};
  }
  if (std::exchange(any_, false)) expect(checkpoint->run, key->id());
  if (checkpoint->run != run_) {
    broken("evidence.other_run",
           where + " is a checkpoint of run " + shown(checkpoint->run) + ", and the events are of run " +
               shown(run_),
           checkpoint->number);
    return {};
  }
  if (key->id() != key_id_)
    broken("evidence.other_key",
           named(checkpoint->number) + " is signed by key " + key->id() + ", and the record was begun with " +
               shown(key_id_),
           checkpoint->number);
  if (!in_order(*checkpoint)) return {};
  compare_with_anchor(*checkpoint);
  signer_ = key->id();
  ++good_;
  return *checkpoint;
}

const PublicKey* SignatureCheck::judge_signature(const Envelope& envelope) {
  if (const PublicKey* key = signer_of(envelope, signers_)) return key;
  const std::string& id = envelope.signatures.front().key_id;
  for (const auto& key : signers_) {
    if (key.id() != id) continue;
    broken("evidence.bad_signature", "line " + std::to_string(reader_->number()) +
                                         " of checkpoints.jsonl names key " + id +
                                         ", and that key did not sign it");
    return nullptr;
  }
  if (told_.size() < kMostTold && told_.insert(id).second)
    broken("evidence.unknown_key", "signed by an unknown key " + shown(id));
  return nullptr;
}

bool SignatureCheck::in_order(const Checkpoint& checkpoint) {
  if (checkpoint.number < expected_ || checkpoint.count <= last_count_) {
    broken("evidence.checkpoint_order",
           named(checkpoint.number) + " stands in line " + std::to_string(reader_->number()) +
               " of checkpoints.jsonl, where " + named(expected_) + " or one after it belongs",
           checkpoint.number);
    return false;
  }
  if (checkpoint.number > expected_) {
    const uint64_t last = checkpoint.number - 1;
    broken("evidence.checkpoint_missing",
           expected_ == last
               ? named(last) + " is missing"
               : "checkpoints " + std::to_string(expected_) + " to " + std::to_string(last) + " are missing",
           expected_);
  }
  expected_ = checkpoint.number + 1;
  last_count_ = checkpoint.count;
  return true;
}

void SignatureCheck::compare_with_anchor(const Checkpoint& checkpoint) {
  if (!anchor_) return;
  const auto known = anchor_->find(checkpoint.number);
  if (known == anchor_->end()) {
    ++without_anchor_;
    return;
  }
  if (known->second == checkpoint) {
    ++anchored_;
  } else {
    broken("evidence.rewritten",
           named(checkpoint.number) + " is another one than the anchor has: the record was written anew",
           checkpoint.number);
  }
  anchor_->erase(known);
}

void SignatureCheck::end() {
  if (!anchor_) return;
  if (!anchor_->empty()) {
    const auto& [first, checkpoint] = *anchor_->begin();
    const Checkpoint& last = anchor_->rbegin()->second;
    const bool behind = first >= expected_;
    broken(behind ? "evidence.cut_back" : "evidence.checkpoint_missing",
           "the anchor has " + named(last.number) + " of " + std::to_string(last.count) +
               " events, and the record has " +
               (behind ? "none after " + std::to_string(last_count_) + " events: it was cut back"
                       : "not " + named(first)),
           first);
  }
  // The host may die between writing a checkpoint and giving it to the anchor.
  if (anchored_ == 0 || without_anchor_ > 1)
    broken("evidence.not_anchored",
           "of " + std::to_string(good_) + " checkpoints the anchor has " + std::to_string(anchored_));
}

void SignatureCheck::broken(const char* code, std::string message, std::optional<uint64_t> number) {
  Finding finding{.code = code, .message = std::move(message), .checkpoint = number};
  if (reader_) finding.line = reader_->number();
  findings_.broken(std::move(finding));
}

}  // namespace firestop::evidence
