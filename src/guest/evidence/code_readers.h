// Which processes have which files open as code, as far as it is known: what somebody writes there meanwhile
// may be code to them, too.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace firestop::guest {

using Inode = std::pair<uint64_t, uint64_t>;  // device, number

struct CodeReader {
  uint32_t pid = 0;
  uint64_t program = 0;       // Process::program, when it was opened
  const char* how = nullptr;  // as it was told
  uint32_t content = 0;       // that it has been told of last
};

class CodeReaders {
 public:
  static constexpr size_t kMost = 1u << 16;  // beyond it all are forgotten
  static constexpr size_t kMany = 64;        // of one file: time to see who has ended

  void opened(const Inode& inode, const CodeReader& reader) {
    if (count_ >= kMost) {
      readers_.clear();
      count_ = 0;
    }
    auto& all = readers_[inode];
    for (CodeReader& known : all)
      if (known.pid == reader.pid) {
        known = reader;
        return;
      }
    all.push_back(reader);
    ++count_;
  }
  bool knows(const Inode& inode) const { return readers_.contains(inode); }
  size_t count(const Inode& inode) const {
    const auto found = readers_.find(inode);
    return found == readers_.end() ? 0 : found->second.size();
  }
  // Those that know of another content.
  std::vector<CodeReader> written(const Inode& inode, uint32_t content) {
    std::vector<CodeReader> out;
    for (CodeReader& reader : readers_[inode])
      if (std::exchange(reader.content, content) != content) out.push_back(reader);
    return out;
  }
  // The process has ended, or runs another program: it has none of them.
  template <typename Lives>
  void forget_unless(const Inode& inode, const Lives& lives) {
    const auto found = readers_.find(inode);
    if (found == readers_.end()) return;
    count_ -= std::erase_if(found->second, [&](const CodeReader& reader) { return !lives(reader); });
    if (found->second.empty()) readers_.erase(found);
  }

 private:
  std::map<Inode, std::vector<CodeReader>> readers_;
  size_t count_ = 0;
};

}  // namespace firestop::guest
