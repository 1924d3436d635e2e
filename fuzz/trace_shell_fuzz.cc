// Any bytes as a command line: it is read within bounds, always in the same way, and what quote_command
// writes is read back as the same words.
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "story/shell_words.h"

using namespace firestop::story;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto shell = read_shell(text);
  FUZZ_CHECK(shell.words.size() <= kMostShellWords);
  FUZZ_CHECK(normal_form(shell.words) == normal_form(read_shell(text).words));
  size_t inside = 0;
  for (const auto& command : shell.commands) {
    FUZZ_CHECK(!command.words.empty());
    inside += command.words.size();
  }
  FUZZ_CHECK(inside <= shell.words.size());
  (void)without_cd(shell.words);

  // Words of a null byte cannot be a program's.
  std::vector<std::string> argv;
  for (size_t at = 0; at < text.size() && argv.size() < 100;) {
    const size_t end = std::min(text.find('\0', at), text.size());
    argv.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  (void)shell_text_of(argv);
  const auto again = read_shell(quote_command(argv)).words;
  FUZZ_CHECK(again.size() == argv.size());
  for (size_t i = 0; i < argv.size(); ++i)
    FUZZ_CHECK(again[i].text == argv[i] && !again[i].op && !again[i].open);
  return 0;
}
