// Bytes by their SHA-256: `content/ab/abcdef...`, each once, 0400, made under another name and renamed.
// Bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/fd.h"
#include "base/result.h"

namespace firestop::evidence {

class ContentStore {
 public:
  // Of an existing or new directory `directory`/content.
  static Result<ContentStore> open(const std::string& directory, uint64_t most_bytes);
  ContentStore(ContentStore&&) noexcept;
  ContentStore& operator=(ContentStore&&) noexcept;
  ~ContentStore();

  struct Stored {
    std::string digest;  // of what was kept
    uint64_t size = 0;   // bytes kept; less than was given when the store is full and has not the whole yet
    bool cut = false;
  };
  // One at a time: begin, bytes in pieces, end. "evidence.write".
  Result<void> begin();
  Result<void> write(std::string_view bytes);
  Result<Stored> end();
  Result<Stored> put(std::string_view bytes);
  // Returns when all that was stored is on the disk (fdatasync). Log does it before each checkpoint.
  Result<void> sync();

 private:
  struct State;
  explicit ContentStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Where the bytes of `digest` lie below the record's `directory`; "" for what is no digest.
std::string content_path(const std::string& directory, const std::string& digest);

}  // namespace firestop::evidence
