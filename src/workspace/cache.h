// Files of the cache that are expensive to make: made once, found again by name.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::workspace {

// The path of `name` ("workspaces/KEY.erofs") below cache_directory(). If it is not there, `make` is called
// with the path of a temporary file to create beside it, which then takes its name; one maker at a time
// (flock). What is found counts as used now (its access time), for whoever prunes.
Result<std::string> cached_file(const std::string& name,
                                const std::function<Result<void>(const std::string&)>& make);

// A directory that is removed with everything in it when this object goes.
class TemporaryDirectory {
 public:
  // At a path that is ours alone; what a dead process left there goes first.
  static Result<TemporaryDirectory> make_at(const std::string& path);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace firestop::workspace
