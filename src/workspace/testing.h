// For tests: real git repositories below a directory of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/file.h"
#include "base/process.h"
#include "manifest/manifest.h"
#include "workspace/workspace.h"

namespace firestop::workspace::testing {

// A temporary directory; the cache of the tested code lies in it. Gone at the end.
class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  // Runs a shell script in `folder` (relative to root_); git has a fixed identity and no configuration.
  std::string shell(const std::string& script, const std::string& folder = ".");
  bool shell_ok(const std::string& script, const std::string& folder = ".");
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void write(const std::string& name, const std::string& data);
  // The entry "repo" for `repo` in a manifest in root_.
  Result<RepoSource> resolve(const std::string& repo, const std::string& ref = "",
                             std::optional<uint32_t> depth = std::nullopt);
  // "A test repository with two commits, a tag, a link, an executable" in folder `name`.
  void make_repository(const std::string& name, const std::string& options = "");

  std::string root_;
  manifest::Manifest manifest_;
};

template <typename T>
::testing::AssertionResult is_ok(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().code << ": " << result.error().to_string();
}
template <typename T>
std::string error_code(const Result<T>& result) {
  return result ? "no error" : result.error().code;
}

}  // namespace firestop::workspace::testing
