// For tests of what comes back: a source repository with a private branch, and a guest that sends bundles.
#pragma once

#include "base/digest.h"
#include "workspace/testing.h"

namespace firestop::workspace::testing {

// Shell functions: what the guest sends, honest or not.
inline constexpr char kTools[] = R"x(
base=$(git rev-parse origin/HEAD 2>/dev/null || git rev-parse HEAD)
header() { printf '# v2 git bundle\n-%s\n%s HEAD\n\n' "$base" "$1"; }
bundle() { header "$1"; printf '%s\n^%s\n' "$1" "$base" | git pack-objects --revs --stdout -q; }   # whole and honest
objects() { tip=$1; header "$tip"; printf '%s\n' "$@" | git pack-objects --stdout -q; }            # just these
commit() { git commit-tree -p "$base" -m "${2:-hostile}" "$1"; }
tree() { git ls-tree HEAD > ../tree; printf "$@" >> ../tree; git mktree --missing < ../tree; }   # HEAD's and one more
raw() { git hash-object -t tree -w --stdin --literally; }
file=$(git rev-parse HEAD:file)
)x";

class ImportBundle : public Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    make_repository("src");
    shell(
        "git checkout -q -b private; echo secret > secret; git add .; git commit -qm secret; git checkout -q "
        "main",
        "src");
    shell("git clone -q --single-branch src guest");
  }
  void in_guest(const std::string& script) { shell(kTools + script, "guest"); }
  Result<std::optional<ImportedBranch>> import(const std::string& name = "job", uint64_t bytes = 16u << 20,
                                               uint32_t files = 1000) {
    auto source = resolve("src");
    EXPECT_TRUE(is_ok(source));
    return import_bundle(*source, path("bundle"), path("scratch"), "run-" + name, name,
                         ImportLimits{bytes, files});
  }
  // Everything of the source that must not change, by content, mode and time.
  std::string fingerprint(const std::string& folder = "src") {
    return sha256_hex(
        shell("find . -path ./.git/objects -prune -o -path ./.git/refs/heads/agent -prune -o -path "
              "./.git/refs/firestop -prune "
              "-o -path ./.git/logs/refs -prune -o -path ./.git/refs -prune -o -path ./.git/logs -prune -o "
              "-path ./.git -prune "
              "-o -print0 | sort -z | xargs -0 stat -c '%n %a %s %y %z'; "
              "find . -type f -not -path './.git/objects/*' -not -path './.git/refs/heads/agent/*' "
              "-not -path './.git/refs/firestop/*' -not -path './.git/logs/refs/heads/agent/*' "
              "-not -path './.git/logs/refs/firestop/*' -print0 | sort -z | xargs -0 sha256sum",
              folder));
  }
};

}  // namespace firestop::workspace::testing
