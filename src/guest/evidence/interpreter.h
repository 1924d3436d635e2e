// Which programs run code that comes from elsewhere, and what their arguments say about where from. Pure:
// names and words in, a plan out. It says where to look; that a file is captured does not hang on it, since
// what an interpreter opens is looked at whatever its arguments say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firestop::guest {

enum class Language {
  kNone,
  kShell,
  kPython,
  kNode,
  kPerl,
  kRuby,
  kPhp,
  kLua,
  kTcl,
  kAwk,
  kSed,
  kMake,
  kR,
  kJava,
  kLoader,
  kOther
};

// By the executable's path: "/usr/bin/python3.11". `first_word` (argv[0]) counts for programs that are many
// in one (busybox).
Language language_of(std::string_view executable, std::string_view first_word);

// What the arguments name as code.
struct CodeArguments {
  std::vector<std::string> commands;  // program text: -c, -e
  std::vector<std::string> files;     // as they were written
  bool from_stdin = false;            // no file and no text, or "-"
};
CodeArguments code_arguments(Language language, const std::vector<std::string>& argv);

// A program that is handed to the loader (ld.so PROGRAM ARGUMENT...) is what runs: its language, and its
// words.
void see_through_loader(Language& language, std::vector<std::string>& argv);

// Whether programs in it may come by a pipe or a terminal.
bool reads_programs(Language language);

// Whether a file that an interpreter of `language` opened is code to it, as opposed to data: by its name and
// its first bytes. Of shells, whatever is no binary.
bool looks_like_code(Language language, std::string_view path, std::string_view head);

}  // namespace firestop::guest
