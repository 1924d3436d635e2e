// The folder of finished parts. Each part (a root image, a kernel, an initramfs) is a folder named by its
// kind and the key of what it is made from; it appears whole, by one rename, and never changes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::image {

using Info = std::map<std::string, std::string>;  // small facts beside the files; no newlines

struct Part {
  std::string folder;  // absolute
  Info info;           // "created" (seconds since 1970) and what the builder noted
};

class Cache {
 public:
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  // The part, or an error ("image.not_built").
  Result<Part> find(const std::string& part_name) const;
  // Fills the folder that it is given and returns what to note.
  using Builder = std::function<Result<Info>(const std::string& folder)>;
  // Finds it, or builds it under a lock of its own: of two that ask at once one builds, the other waits
  // (`waiting` is called then). What an earlier build left half done is removed first.
  Result<Part> ensure(const std::string& part_name, const Builder& builder,
                      const std::function<void()>& waiting) const;
  // All finished parts' names, sorted.
  std::vector<std::string> names() const;
  // Removes all parts but those in `keep`, and what killed builds left; a part that is being built stays.
  // Returns the bytes freed.
  Result<uint64_t> prune(const std::vector<std::string>& keep) const;

 private:
  Result<UniqueFd> lock(const std::string& part_name, const std::function<void()>& waiting) const;
  Result<UniqueFd> try_lock(const std::string& part_name) const;
  std::string building(const std::string& part_name) const;

  std::string folder_;
};

// Blocks on disk of everything below.
uint64_t disk_usage(const std::string& folder);

}  // namespace firestop::image
