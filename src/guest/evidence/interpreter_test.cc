#include "guest/evidence/interpreter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace firestop::guest {
namespace {

using Words = std::vector<std::string>;

TEST(Interpreter, IsToldByItsNameWhateverItsVersion) {
  struct Row {
    const char* path;
    const char* first_word;
    Language language;
  };
  for (const Row& row :
       std::vector<Row>{{"/usr/bin/dash", "sh", Language::kShell},
                        {"/usr/bin/bash", "-bash", Language::kShell},
                        {"/bin/busybox", "sh", Language::kShell},
                        {"/bin/busybox", "awk", Language::kAwk},
                        {"/bin/busybox", "busybox", Language::kShell},
                        {"/usr/bin/python3.11", "python3", Language::kPython},
                        {"/usr/bin/pypy3", "pypy3", Language::kPython},
                        {"/usr/local/bin/node", "node", Language::kNode},
                        {"/usr/bin/perl5.36.0", "perl", Language::kPerl},
                        {"/usr/bin/perl5.36-x86_64-linux-gnu", "perl", Language::kPerl},
                        {"/usr/bin/ruby3.1", "ruby", Language::kRuby},
                        {"/usr/bin/php8.2", "php", Language::kPhp},
                        {"/usr/bin/lua5.4", "lua", Language::kLua},
                        {"/usr/bin/tclsh8.6", "tclsh", Language::kTcl},
                        {"/usr/bin/mawk", "awk", Language::kAwk},
                        {"/usr/bin/make", "make", Language::kMake},
                        {"/usr/lib/R/bin/exec/R", "R", Language::kR},
                        {"/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "java", Language::kJava},
                        {"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "ld.so", Language::kLoader},
                        {"/usr/bin/ls", "python3", Language::kNone},  // argv[0] is the caller's to choose
                        {"/usr/bin/shred", "shred", Language::kNone},
                        {"/usr/bin/perlbug", "perlbug", Language::kNone},
                        {"/usr/bin/makeinfo", "makeinfo", Language::kNone}})
    EXPECT_EQ(language_of(row.path, row.first_word), row.language) << row.path;
}

TEST(Interpreter, ArgumentsSayWhereTheCodeIs) {
  struct Row {
    Language language;
    Words argv, commands, files;
    bool from_stdin;
  };
  const std::vector<Row> rows = {
      {Language::kShell, {"sh", "x.sh", "-c", "y"}, {}, {"x.sh"}, false},
      {Language::kShell, {"sh", "-c", "echo hi", "name", "arg"}, {"echo hi"}, {}, false},
      {Language::kShell, {"bash", "-lc", "echo hi"}, {"echo hi"}, {}, false},
      {Language::kShell, {"sh", "-c", "-e", "echo hi"}, {"echo hi"}, {}, false},
      {Language::kShell, {"bash", "-o", "pipefail", "-ec", "x"}, {"x"}, {}, false},
      {Language::kShell, {"bash", "-eo", "pipefail", "x.sh"}, {}, {"x.sh"}, false},
      {Language::kShell, {"bash", "--norc", "x.sh"}, {}, {"x.sh"}, false},
      {Language::kShell, {"bash", "--rcfile", "rc", "-i"}, {}, {"rc"}, true},
      {Language::kShell, {"sh"}, {}, {}, true},
      {Language::kShell, {"sh", "-s", "arg"}, {}, {}, true},
      {Language::kShell, {"sh", "-"}, {}, {}, true},
      {Language::kShell, {"sh", "--", "x.sh"}, {}, {"x.sh"}, false},
      {Language::kShell, {"bash", "/dev/fd/63"}, {}, {"/dev/fd/63"}, false},
      {Language::kShell, {"busybox", "sh", "-c", "x"}, {"x"}, {}, false},
      {Language::kPython, {"python3", "x.py", "-c", "y"}, {}, {"x.py"}, false},
      {Language::kPython, {"python3", "-c", "print(1)", "x.py"}, {"print(1)"}, {}, false},
      {Language::kPython, {"python3", "-cprint(1)"}, {"print(1)"}, {}, false},
      {Language::kPython, {"python3", "-Ic", "print(1)"}, {"print(1)"}, {}, false},
      {Language::kPython, {"python3", "-W", "error", "-X", "dev", "x.py"}, {}, {"x.py"}, false},
      {Language::kPython, {"python3", "-u", "-"}, {}, {}, true},
      {Language::kPython, {"python3"}, {}, {}, true},
      {Language::kPython, {"python3", "-m", "http.server"}, {}, {}, true},  // or the one named "code"
      {Language::kPython, {"python3", "-Ximporttime"}, {}, {}, true},
      {Language::kPython, {"python3", "-Wignore::ImportWarning", "x"}, {}, {"x"}, false},
      {Language::kPython, {"python3", "-i", "-c", "pass"}, {"pass"}, {}, true},
      {Language::kPython, {"python3", "-i", "x.py"}, {}, {"x.py"}, true},
      {Language::kShell, {"bash", "-norc"}, {}, {}, true},
      {Language::kShell, {"bash", "-rcfile", "rc", "x"}, {}, {"rc", "x"}, false},
      {Language::kShell, {"bash", "+s", "x"}, {}, {}, true},
      {Language::kAwk, {"awk", "-f", "-"}, {}, {}, true},
      {Language::kSed, {"sed", "file", "-f", "-"}, {}, {}, true},
      {Language::kSed, {"sed", "--fil=x.sed", "file"}, {}, {"x.sed"}, false},
      {Language::kPerl, {"perl", "-d", "-e", "0"}, {"0"}, {}, true},
      {Language::kNode, {"node", "x.js", "-e", "y"}, {}, {"x.js"}, false},
      {Language::kNode, {"node", "-e", "1+1"}, {"1+1"}, {}, false},
      {Language::kNode, {"node", "--eval=1+1"}, {"1+1"}, {}, false},
      {Language::kNode, {"node", "-p", "1"}, {"1"}, {}, false},
      {Language::kNode, {"node", "-r", "./a.js", "x.js"}, {}, {"./a.js"}, false},
      {Language::kNode, {"deno", "run", "x.ts"}, {}, {"x.ts"}, false},
      {Language::kNode, {"deno", "eval", "1"}, {"1"}, {}, false},
      {Language::kPerl, {"perl", "-e", "print 1", "-e", "print 2"}, {"print 1", "print 2"}, {}, false},
      {Language::kPerl, {"perl", "-lane", "print", "data"}, {"print"}, {}, false},
      {Language::kPerl, {"perl", "-pi.bak", "-e", "s/a/b/", "f"}, {"s/a/b/"}, {}, false},
      {Language::kPerl, {"perl", "-Ilib", "-Mstrict", "x.pl"}, {}, {"x.pl"}, false},
      {Language::kRuby, {"ruby", "-rjson", "-e", "p 1"}, {"p 1"}, {}, false},
      {Language::kPhp, {"php", "-d", "a=1", "-r", "echo 1;"}, {"echo 1;"}, {}, false},
      {Language::kPhp, {"php", "-f", "x.php"}, {}, {"x.php"}, false},
      {Language::kLua, {"lua", "-e", "x=1", "x.lua"}, {"x=1"}, {}, false},
      {Language::kAwk, {"awk", "-F:", "{print}", "data"}, {"{print}"}, {}, false},
      {Language::kAwk, {"awk", "-v", "a=1", "-f", "x.awk", "data"}, {}, {"x.awk"}, false},
      {Language::kSed, {"sed", "-e", "s/a/b/", "file"}, {}, {}, false},
      {Language::kSed, {"sed", "-f", "x.sed", "file"}, {}, {"x.sed"}, false},
      {Language::kMake, {"make", "-C", "dir", "-j4", "all"}, {}, {}, false},
      {Language::kMake, {"make", "-f", "build.txt", "all"}, {}, {"build.txt"}, false},
      {Language::kMake, {"make", "-f", "-"}, {}, {}, true},
      {Language::kMake, {"make", "--eval=x:;id"}, {"x:;id"}, {}, false},
      {Language::kJava, {"java", "-cp", "lib", "-jar", "x.jar"}, {}, {"x.jar"}, false},
      {Language::kLoader, {"ld.so", "--library-path", "lib", "./prog"}, {}, {"./prog"}, false},
      {Language::kNone, {"ls", "-c", "x"}, {}, {}, false},
  };
  for (const Row& row : rows) {
    const CodeArguments got = code_arguments(row.language, row.argv);
    std::string line;
    for (const std::string& word : row.argv) line += word + " ";
    EXPECT_EQ(got.commands, row.commands) << line;
    EXPECT_EQ(got.files, row.files) << line;
    EXPECT_EQ(got.from_stdin, row.from_stdin) << line;
  }
}

TEST(Interpreter, TheLoaderIsSeenThrough) {
  Language language = Language::kLoader;
  Words argv = {"ld.so", "--library-path", "lib", "/usr/bin/dash", "x.sh", "y"};
  see_through_loader(language, argv);
  EXPECT_EQ(language, Language::kShell);
  EXPECT_EQ(argv, (Words{"/usr/bin/dash", "x.sh", "y"}));
  for (const Words& other : std::vector<Words>{{"ld.so"}, {"ld.so", "--list"}, {"ld.so", "./own", "x"}, {}}) {
    language = Language::kLoader;
    argv = other;
    see_through_loader(language, argv);
    EXPECT_EQ(language, Language::kLoader);
    EXPECT_EQ(argv, other);
  }
}

TEST(Interpreter, OddArgumentsAreNoEnd) {
  for (int language = 0; language <= static_cast<int>(Language::kOther); ++language)
    for (const Words& argv : std::vector<Words>{{},
                                                {""},
                                                {"x", ""},
                                                {"x", "-"},
                                                {"x", "--"},
                                                {"x", "-e"},
                                                {"x", "-c"},
                                                {"x", "-o"},
                                                {"x", "--eval"},
                                                {"busybox", "sh"}})
      (void)code_arguments(static_cast<Language>(language), argv);
}

TEST(Interpreter, CodeIsToldFromData) {
  EXPECT_TRUE(looks_like_code(Language::kPython, "/w/x.py", "print(1)"));
  EXPECT_TRUE(looks_like_code(Language::kPython, "/w/run", "#!/usr/bin/python3\n"));
  EXPECT_FALSE(looks_like_code(Language::kPython, "/w/data.csv", "a,b\n"));
  EXPECT_TRUE(looks_like_code(Language::kShell, "/w/anything", "echo hi"));
  EXPECT_FALSE(looks_like_code(Language::kShell, "/w/picture", std::string_view("\x89PNG\0", 5)));
  EXPECT_TRUE(looks_like_code(Language::kMake, "/w/Makefile", "all:"));
  EXPECT_FALSE(looks_like_code(Language::kPython, "/w/x.py", ""));
}

}  // namespace
}  // namespace firestop::guest
