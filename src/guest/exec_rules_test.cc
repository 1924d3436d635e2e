#include "guest/exec_rules.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace firestop::guest {
namespace {

TEST(ExecRules, TheFirstLineOfAScriptAsTheKernelTakesIt) {
  const struct {
    const char* head;
    const char* interpreter;
    const char* argument;
  } kTable[] = {
      {"#!/bin/sh\necho", "/bin/sh", ""},
      {"#! /bin/sh -e  \nx", "/bin/sh", "-e"},
      {"#!/usr/bin/env python3\n", "/usr/bin/env", "python3"},
      {"#!\t/usr/bin/env\t-S python3 -u\n", "/usr/bin/env", "-S python3 -u"},
      {"#!/bin/sh", "/bin/sh", ""},  // a file of one line without an end
      {"#!\n/bin/sh", "", ""},       // the next line is not looked at
      {"#!   \n", "", ""},
      {"#", "", ""},
      {"", "", ""},
      {"\x7f"
       "ELF",
       "", ""},
      {" #!/bin/sh\n", "", ""},
  };
  for (const auto& row : kTable) {
    const Shebang shebang = parse_shebang(row.head);
    EXPECT_EQ(shebang.interpreter, row.interpreter) << row.head;
    EXPECT_EQ(shebang.argument, row.argument) << row.head;
  }
}

TEST(ExecRules, TheProgramBehindEnv) {
  EXPECT_EQ(program_of_env("python3"), "python3");
  EXPECT_EQ(program_of_env("-S python3 -u"), "python3");
  EXPECT_EQ(program_of_env("-S -i A=b python3 -u x"), "python3");
  EXPECT_EQ(program_of_env("python3 -u"), "python3 -u");  // one word: env finds no such program
  EXPECT_EQ(program_of_env("-i"), "");
  EXPECT_EQ(program_of_env("-S A=b"), "");
  EXPECT_EQ(program_of_env(""), "");
}

class ExecRulesOfCommand : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "firestop-exec-rules-" + std::to_string(::getpid());
    for (const char* folder : {"/bin", "/usr/bin", "/workspace/repo", "/lib64"})
      std::filesystem::create_directories(root_ + folder);
    put("/bin/interp", "binary");
    put("/usr/bin/env", "binary too");
    put("/usr/bin/tool", "a tool");
    put("/workspace/repo/run", "#!/usr/bin/env interp\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(write_file_atomic(root_ + path, text, 0755));
  }
  FileId id(const std::string& path) const {
    struct stat file{};
    EXPECT_EQ(::stat((root_ + path).c_str(), &file), 0) << path;
    return FileId::of(file);
  }
  ExecRules rules(const std::string& name) const {
    return rules_of_command(*Inside::open(root_), name, "/nowhere:/usr/bin:/bin");
  }

  std::string root_;
};

TEST_F(ExecRulesOfCommand, TheCommandItsInterpreterAndWhatEnvRuns) {
  const ExecRules found = rules("./repo/run");
  EXPECT_TRUE(found.is_program(id("/workspace/repo/run")));
  EXPECT_TRUE(found.is_program(id("/usr/bin/env")));
  EXPECT_TRUE(found.is_program(id("/bin/interp")));
  EXPECT_FALSE(found.is_program(id("/usr/bin/tool")));
  EXPECT_EQ(found.programs.size(), 3u);
}

TEST_F(ExecRulesOfCommand, ThroughPathAndLinksOfTheImage) {
  std::filesystem::create_symlink("/usr/bin/tool", root_ + "/bin/alias");  // absolute, inside
  EXPECT_TRUE(rules("alias").is_program(id("/usr/bin/tool")));
  EXPECT_TRUE(rules("missing").programs.empty());
  EXPECT_TRUE(rules("").programs.empty());
}

TEST_F(ExecRulesOfCommand, AFileWithOtherBytesIsAnotherFile) {
  const ExecRules before = rules("tool");
  put("/usr/bin/tool", "others");
  EXPECT_FALSE(before.is_program(id("/usr/bin/tool")));
}

TEST_F(ExecRulesOfCommand, ScriptsThatNameEachOtherEnd) {
  put("/usr/bin/a", "#!/usr/bin/b\n");
  put("/usr/bin/b", "#!/usr/bin/a\n");
  EXPECT_EQ(rules("a").programs.size(), 2u);
}

TEST_F(ExecRulesOfCommand, TheLoaderIsNoProgram) {
  const auto self = read_file("/proc/self/exe", 1u << 30);
  ASSERT_TRUE(self);
  put("/usr/bin/elf", *self);
  const UniqueFd file(::open((root_ + "/usr/bin/elf").c_str(), O_RDONLY));
  const std::string loader = loader_of(file.get());
  ASSERT_EQ(loader, "/lib64/ld-linux-x86-64.so.2");
  put(loader, "the loader");
  const ExecRules found = rules("elf");
  EXPECT_TRUE(found.is_loader(id(loader)));
  EXPECT_FALSE(found.is_program(id(loader)));
}

}  // namespace
}  // namespace firestop::guest
