#include "workspace/git_index.h"

#include <sys/stat.h>

#include <random>

#include "base/path.h"
#include "workspace/git.h"
#include "workspace/testing.h"

namespace firestop::workspace {
namespace {

using testing::error_code;
using testing::is_ok;

class GitIndex : public testing::Sandbox {
 protected:
  // An index for HEAD of `folder`, with what lstat says of its working files.
  std::string index_of(const std::string& folder, const std::string& format) {
    std::vector<IndexEntry> entries;
    std::vector<IndexTree> trees = {{"", to_binary(shell("git rev-parse HEAD^{tree}", folder))}};
    EXPECT_TRUE(is_ok(git_records("git.read", path(folder + "/.git"), {"ls-tree", "-r", "-t", "-z", "HEAD"},
                                  -1, '\0', 65536, [&](std::string_view record) -> Result<void> {
                                    const size_t tab = record.find('\t');
                                    const std::string id(record.substr(12, tab - 12));
                                    const std::string name(record.substr(tab + 1));
                                    if (record.substr(7, 4) == "tree") {
                                      trees.push_back({name, to_binary(id)});
                                      return {};
                                    }
                                    struct stat status{};
                                    EXPECT_EQ(::lstat(path(folder + "/" + name).c_str(), &status), 0) << name;
                                    IndexEntry entry{name, to_binary(id)};
                                    entry.mode = static_cast<uint32_t>(
                                        std::stoul(std::string(record.substr(0, 6)), nullptr, 8));
                                    entry.inode = static_cast<uint32_t>(status.st_ino);
                                    entry.size = static_cast<uint32_t>(status.st_size);
                                    entries.push_back(entry);
                                    return {};
                                  })));
    const IndexStat stat{1600000000, ::getuid(), ::getgid()};
    auto index = write_index(entries, stat, trees, format);
    EXPECT_TRUE(is_ok(index));
    EXPECT_EQ(index->size(), index_size(entries, trees, format));
    return *index;
  }
};

// Names of every length around the padding, nested and not, and what sorts unlike it looks ("a", "a.b",
// "a/b").
std::string some_tree(unsigned seed) {
  std::mt19937 random(seed);
  std::string script = "set -f\n";
  const char* const parts[] = {"a", "a.b", "a-b", "A", "a b", "\xc3\xa9", "\xe9", "zz", "'", "b\tc"};
  for (int i = 0; i < 25; ++i) {
    std::string name;
    for (unsigned depth = random() % 4; depth > 0; --depth)
      name += std::string("d") + parts[random() % 10] + "/";
    name += std::string(parts[random() % 10]) + std::string(random() % 20, 'x') + std::to_string(i);
    std::string quoted = "\"";
    for (const char c : name) quoted += c;
    quoted += "\"";
    script += "mkdir -p \"$(dirname " + quoted + ")\"; ";
    script += random() % 5 == 0 ? "ln -s x " + quoted + "\n"
                                : "echo " + std::to_string(random() % 9) + " > " + quoted + "\n";
    if (random() % 4 == 0) script += "chmod -f +x " + quoted + " || true\n";
  }
  return script;
}

TEST_F(GitIndex, RealGitTakesItAndHasNothingToRead) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const std::string format = seed % 2 ? "sha1" : "sha256";
    const std::string folder = "tree" + std::to_string(seed);
    shell("git init -q --object-format=" + format + " " + folder);
    shell(
        some_tree(seed) +
            "git add -A; git commit -qm x; find . -path ./.git -prune -o -exec touch -h -d @1600000000 {} +",
        folder);
    write(folder + "/.git/index", index_of(folder, format));
    // diff-files compares only what stat says, and prints what it would have to read.
    EXPECT_EQ(shell("git -c core.trustctime=false diff-files", folder), "");
    EXPECT_EQ(shell("git -c core.trustctime=false status --porcelain", folder), "");
    // With the cache-tree, and without it.
    const std::string tree = shell("git rev-parse HEAD^{tree}", folder);
    EXPECT_EQ(shell("git write-tree", folder), tree);
    shell("touch new; git add new; git rm -q --cached new", folder);
    EXPECT_EQ(shell("git write-tree", folder), tree);
    shell("git fsck --strict", folder);
  }
}

TEST_F(GitIndex, ADifferentFileIsSeen) {
  shell("git init -q t; cd t; echo 1 > a; echo 1 > b; git add .; git commit -qm x; touch -d @1600000000 a b");
  write("t/.git/index", index_of("t", "sha1"));
  shell("echo 2 > a", "t");
  EXPECT_EQ(shell("git -c core.trustctime=false status --porcelain", "t"), " M a");
}

TEST(GitIndexWriter, RefusesWhatGitCouldNotRead) {
  const std::string id(20, 'x');
  const auto write = [&](const std::vector<IndexEntry>& entries) {
    return error_code(write_index(entries, {}, {}, "sha1"));
  };
  EXPECT_EQ(write({{"a", id}, {"b", id}}), "no error");
  EXPECT_EQ(write({{"b", id}, {"a", id}}), "git.index");
  EXPECT_EQ(write({{"a", id}, {"a", id}}), "git.index");
  EXPECT_EQ(write({{"a", std::string(32, 'x')}}), "git.index");
}

}  // namespace
}  // namespace firestop::workspace
