// What a verification found, bounded. For verify.cc and its parts.
#pragma once

#include <utility>

#include "evidence/verify.h"

namespace firestop::evidence {

class Findings {
 public:
  explicit Findings(Verification& out) : out_(out) {}
  // Somebody changed the record.
  void broken(Finding finding) {
    broken_ = true;
    add(std::move(finding));
  }
  // The events are as they were; what one of them refers to is not.
  void content(Finding finding) {
    content_ = true;
    add(std::move(finding));
  }
  // It ends early, as one does whose writer was killed.
  void unfinished(Finding finding) {
    unfinished_ = true;
    add(std::move(finding));
  }
  bool any_broken() const { return broken_; }
  Integrity integrity() const {
    return broken_ || content_ ? Integrity::kBroken : unfinished_ ? Integrity::kPrefix : Integrity::kIntact;
  }

 private:
  void add(Finding finding) {
    if (out_.findings.size() == kMostFindings)
      ++out_.more_findings;
    else
      out_.findings.push_back(std::move(finding));
  }

  Verification& out_;
  bool broken_ = false, content_ = false, unfinished_ = false;
};

}  // namespace firestop::evidence
