// What the guest hands over, written to files of ours under a common bound on bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::sandbox {

class Collector {
 public:
  explicit Collector(uint64_t limit) : left_(limit) {}
  // Streams of this number go to a new file at `path`.
  Result<void> expect(uint16_t stream, const std::string& path);
  bool expects(uint16_t stream) const { return files_.contains(stream); }
  // False when the bound is passed: nothing more is written then.
  Result<bool> data(uint16_t stream, std::string_view bytes);
  void end(uint16_t stream) { files_.erase(stream); }
  bool complete() const { return files_.empty(); }

 private:
  uint64_t left_;
  std::map<uint16_t, UniqueFd> files_;
};

}  // namespace firestop::sandbox
