#include "manifest/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/digest.h"
#include "base/file.h"
#include "manifest/load.h"
#include "manifest/needs.h"

namespace firestop::manifest {
namespace {

using testing::HasSubstr;
using testing::Not;

class InitTest : public testing::Test {
 protected:
  ~InitTest() override { EXPECT_TRUE(remove_tree(top_)); }

  // A folder of this name with these files.
  std::string folder(const std::string& name, const std::map<std::string, std::string>& files) {
    const std::string path = top_ + "/" + name;
    std::filesystem::create_directories(path);
    for (const auto& [file, text] : files) {
      std::filesystem::create_directories(std::filesystem::path(path + "/" + file).parent_path());
      EXPECT_TRUE(write_file_atomic(path + "/" + file, text));
    }
    return path;
  }

  // What init writes; it must load without faults and be supported.
  std::string init(const std::string& path) {
    const auto text = init_text(path);
    if (!text) return text.error().to_string();
    const auto loaded = load_text(path + "/firestop.yaml", *text);
    EXPECT_EQ(render(loaded.faults, loaded.text), "") << *text;
    EXPECT_TRUE(check_supported(loaded.manifest));
    return *text;
  }

 private:
  const std::string top_ = std::filesystem::temp_directory_path() / ("firestop-init-" + random_hex(8));
};

TEST_F(InitTest, KnowsTheUsualProjects) {
  const struct {
    std::map<std::string, std::string> files;
    const char* command;
  } table[] = {
      {{{"Makefile", "all:\n\ncheck: all\n"}}, "make check"},
      {{{"Makefile", "test: all\n"}}, "make test"},
      {{{"Makefile", "all:\n"}}, "cd repo && make\""},
      {{{"CMakeLists.txt", ""}}, "ctest --test-dir /tmp/build"},
      {{{"package.json", R"({"scripts": {"test": "jest"}})"}}, "npm test"},
      {{{"package.json", "not json"}}, "node --test"},
      {{{"pyproject.toml", "[tool.pytest.ini_options]\n"}}, "python3 -m pytest"},
      {{{"setup.py", ""}}, "python3 -m unittest"},
      {{{"Cargo.toml", ""}}, "cargo test"},
      {{{"go.mod", ""}}, "go test ./..."},
      {{{"README", ""}}, "ls -la"},
  };
  int n = 0;
  for (auto [files, command] : table) {
    files[".git/HEAD"] = "ref: refs/heads/main\n";
    const std::string text = init(folder("p" + std::to_string(++n), files));
    EXPECT_THAT(text, HasSubstr(command));
    EXPECT_THAT(text, HasSubstr("ref: \"main\""));
    EXPECT_THAT(text, HasSubstr("name: \"p" + std::to_string(n) + "\""));
  }
}

TEST_F(InitTest, NamesComeFromTheFolder) {
  EXPECT_THAT(init(folder("My Project_2", {})), HasSubstr("name: \"my-project-2\""));
  EXPECT_THAT(init(folder("日本", {})), HasSubstr("name: \"sandbox\""));
  EXPECT_THAT(init(folder(std::string(100, 'x'), {})), HasSubstr("name: \"" + std::string(63, 'x')));
  EXPECT_THAT(init(folder("--", {})), HasSubstr("name: \"sandbox\""));
}

TEST_F(InitTest, OddRepositoriesGetNoRef) {
  const std::map<std::string, std::string> heads = {
      {"detached", "0123456789abcdef0123456789abcdef01234567\n"},
      {"empty", ""},
      {"odd", "ref: refs/heads/a b\n"}};
  for (const auto& [name, head] : heads)
    EXPECT_THAT(init(folder(name, {{".git/HEAD", head}})), HasSubstr("# ref: main")) << name;
  EXPECT_THAT(init(folder("worktree", {{".git", "gitdir: /elsewhere\n"}})), HasSubstr("# ref: main"));
}

TEST_F(InitTest, BranchesAreQuoted) {
  const std::string text = init(folder("hostile", {{".git/HEAD", "ref: refs/heads/\"\nrun_as: root\n"}}));
  EXPECT_THAT(text, HasSubstr("ref: \"\\\"\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("run_as")));
  EXPECT_THAT(init(folder("a", {{".git/HEAD", "ref: refs/heads/1.0\n"}})), HasSubstr("ref: \"1.0\""));
  EXPECT_THAT(init(folder("b", {{".git/HEAD", "ref: refs/heads/it's-\"x\"\n"}})),
              HasSubstr("ref: \"it's-\\\"x\\\"\""));
}

TEST_F(InitTest, WithoutARepositoryTheFolderIsBound) {
  const std::string text = init(folder("plain", {}));
  EXPECT_THAT(text, HasSubstr("bind: work"));
  EXPECT_THAT(text, Not(HasSubstr("git_repo")));
}

TEST_F(InitTest, AFolderThatIsNotThereIsAnError) {
  const auto text = init_text("/nonexistent/folder");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, "init.not_a_folder");
}

}  // namespace
}  // namespace firestop::manifest
