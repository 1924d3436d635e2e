// The checkpoints of a record, one after the other, as far as they are good; and what is wrong with the
// others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evidence/checkpoint.h"
#include "evidence/findings.h"
#include "evidence/line_reader.h"

namespace firestop::evidence {

class SignatureCheck {
 public:
  SignatureCheck(const std::vector<PublicKey>& signers, Findings& findings)
      : signers_(signers), findings_(findings) {}
  // Before the events are opened: then no checkpoint speaks of events that were written after they were read.
  // A missing file is a finding.
  Result<void> open(const std::string& directory);
  // Of the record's first event, before the first next().
  void expect(const std::string& run, const std::string& key_id);
  void expect_any() { any_ = true; }  // when it has none: then they need only be of one run and key
  void expect_anchored(const std::vector<Checkpoint>& checkpoints);

  // Goes to the next good one; current() is nullptr when there is none. "evidence.unreadable".
  Result<void> next();
  const Checkpoint* current() const { return current_ ? &*current_ : nullptr; }
  const std::string& run() const { return run_; }
  uint64_t good() const { return good_; }
  uint64_t anchored() const { return anchored_; }
  const std::string& signer() const { return signer_; }
  // After the last: what the anchor has and the record has not.
  void end();

 private:
  std::optional<Checkpoint> judge(std::string_view line);
  const PublicKey* judge_signature(const Envelope& envelope);
  bool in_order(const Checkpoint& checkpoint);
  void compare_with_anchor(const Checkpoint& checkpoint);
  void broken(const char* code, std::string message, std::optional<uint64_t> number = {});

  const std::vector<PublicKey>& signers_;
  Findings& findings_;
  std::unique_ptr<LineReader> reader_;
  std::string run_, key_id_, signer_;
  std::optional<Checkpoint> current_;
  uint64_t expected_ = 0, last_count_ = 0, good_ = 0, anchored_ = 0, without_anchor_ = 0;
  bool any_ = false;
  std::set<std::string, std::less<>> told_;  // that need be told once only, bounded by its few texts
  std::optional<std::map<uint64_t, Checkpoint>> anchor_;  // by number; of those not yet seen
};

}  // namespace firestop::evidence
