// A command line as a shell reads it (POSIX.1-2017, XCU section 2), as far as it takes to compare it with
// what ran: words without their quotes, simple commands, bodies of here-documents. Nothing is expanded and
// nothing is refused: what is no shell at all still gives some words, always the same ones for the same text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace firestop::story {

inline constexpr size_t kMostShellText = 1u << 20;  // bytes that are read of one command line
inline constexpr size_t kMostShellWords = 65536;    // of one command line

struct ShellWord {
  std::string text;
  bool op = false;    // an operator: "&&", ">", a newline is ";"
  bool open = false;  // an expansion or a pattern is in it: it may have become any words
};

struct SimpleCommand {
  std::vector<ShellWord> words;  // without assignments and redirections
  bool conditional = false;      // behind && or ||, in a loop, a branch or a function: need not have run
};

struct ShellText {
  std::vector<ShellWord> words;  // all, in order
  std::vector<SimpleCommand> commands;
  std::vector<std::string> documents;  // bodies of here-documents, as they are written
};

ShellText read_shell(std::string_view text);

// The same for two texts that differ in quoting, white space and trailing ";" only.
std::string normal_form(const std::vector<ShellWord>& words);

// Without "cd DIRECTORY &&" (or ";") at the beginning; the directory, where there was one.
std::vector<ShellWord> without_cd(const std::vector<ShellWord>& words, std::string* directory = nullptr);

// The text of `sh -c TEXT`, whatever options stand before it, of a shell's arguments; nullptr if it is none.
const std::string* shell_text_of(const std::vector<std::string>& argv);
bool is_shell(std::string_view program);        // "bash", "/bin/sh", ...
bool is_interpreter(std::string_view program);  // a shell, python3, node, perl, ruby, env, ...
bool is_builtin(std::string_view word);         // leaves no process behind when a shell runs it
// The last component; "python3.11" and "python" are "python3", since the one is a link to the other.
std::string program_name(std::string_view path);

// For people: arguments as a shell would take them.
std::string quote_command(const std::vector<std::string>& argv);

}  // namespace firestop::story
