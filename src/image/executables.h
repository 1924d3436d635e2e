// The SHA-256 of every file of a root image that can be executed, so that a record says which bytes a process
// ran without reading anything in the guest. Made from the image itself, on the host, once an image.
//
// A text file: "root DIGEST" names the image that it is of, then lines "DIGEST SIZE PATH" in order of paths.
// A path with a newline is left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace firestop::image {

class Executables {
 public:
  static constexpr uint64_t kMostBytes = 64u << 20;  // of the text

  // The text for the image at `root_path`, whose digest is `root_digest`. "erofs.*", "image.bad_index".
  static Result<std::string> make(const std::string& root_path, const std::string& root_digest);
  // `digest` is that of the text, as it was when it was made. "image.bad_index".
  static Result<Executables> parse(const std::string& text, const std::string& digest,
                                   const std::string& root_digest);

  struct File {
    std::string digest;
    uint64_t size = 0;
  };
  const File* find(const std::string& path) const;  // absolute; null: there is none
  size_t count() const { return files_.size(); }

 private:
  std::unordered_map<std::string, File> files_;
};

}  // namespace firestop::image
