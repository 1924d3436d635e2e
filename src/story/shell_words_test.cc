#include "story/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firestop::story {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& word : read_shell(text).words) out.push_back(word.text);
  return out;
}

std::vector<std::string> commands_of(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& command : read_shell(text).commands) {
    std::string line = command.conditional ? "?" : "";
    for (const auto& word : command.words) line += (line.empty() || line == "?" ? "" : " ") + word.text;
    out.push_back(line);
  }
  return out;
}

TEST(ShellWords, QuotesGoAwayAndOperatorsStay) {
  EXPECT_THAT(words_of(R"(a 'b c' "d \"e\" $x" f\ g>h)"),
              ElementsAre("a", "b c", "d \"e\" $x", "f g", ">", "h"));
  EXPECT_THAT(words_of("a&&b||c|d;e&"), ElementsAre("a", "&&", "b", "||", "c", "|", "d", ";", "e", "&"));
  EXPECT_THAT(words_of("echo $(ls | wc -l) `id` ${x:-y z} # no more"),
              ElementsAre("echo", "$(ls | wc -l)", "`id`", "${x:-y z}"));
  EXPECT_THAT(words_of("grep 'x$' a\\\nb"), ElementsAre("grep", "x$", "ab"));
}

TEST(ShellWords, EndlessQuotesAndBracketsEnd) {
  for (const char* text :
       {"'", "\"", "`", "$(", "${", "\\", "$", "<<", "<<EOF", "a <<EOF\nb", "$(\"", "((((", "<<<"})
    (void)read_shell(text);
  EXPECT_LE(read_shell(std::string(1 << 20, ';')).words.size(), kMostShellWords);
}

TEST(ShellWords, DocumentsAreTakenOut) {
  const auto shell = read_shell("cat > x.py <<'EOF' && python3 x.py\nprint(1)\n EOF\nEOF\nls");
  EXPECT_THAT(shell.documents, ElementsAre("print(1)\n EOF\n"));
  EXPECT_THAT(commands_of("cat <<-A <<B\n\ta\n\tA\nb\nB\nls -l"), ElementsAre("cat", "ls -l"));
  EXPECT_THAT(read_shell("cat <<-A\n\ta\n\tA\n").documents, ElementsAre("a\n"));
}

TEST(ShellWords, CommandsWithoutAssignmentsAndRedirections) {
  EXPECT_THAT(commands_of("A=1 B=2 make -j2 2>&1 >log | tee out; cd x"),
              ElementsAre("make -j2", "tee out", "cd x"));
  EXPECT_THAT(commands_of("make && make install || echo no; true"),
              ElementsAre("make", "?make install", "?echo no", "true"));
  EXPECT_THAT(commands_of("for f in a b; do sh $f; done; ls"), ElementsAre("?sh $f", "ls"));
  EXPECT_THAT(commands_of("if test -e x; then rm x; fi"), ElementsAre("?test -e x", "?rm x"));
}

TEST(ShellWords, NormalFormsForgetSpelling) {
  const auto same = [](std::string_view a, std::string_view b) {
    return normal_form(read_shell(a).words) == normal_form(read_shell(b).words);
  };
  EXPECT_TRUE(same("echo 'a b'  c", "echo \"a b\" c;"));
  EXPECT_TRUE(same("a\nb\n", "a; b"));
  EXPECT_FALSE(same("a b", "'a b'"));
  EXPECT_FALSE(same("a && b", "a b"));
  EXPECT_FALSE(same("a ';' b", "a ; b"));
  std::string directory;
  EXPECT_EQ(normal_form(without_cd(read_shell("cd 'my dir' && make").words, &directory)),
            normal_form(read_shell("make").words));
  EXPECT_EQ(directory, "my dir");
}

TEST(ShellWords, TextOfAShell) {
  const auto text = [](std::vector<std::string> argv) {
    const auto* found = shell_text_of(argv);
    return found ? *found : "-";
  };
  EXPECT_EQ(text({"bash", "-lc", "make test"}), "make test");
  EXPECT_EQ(text({"/bin/bash", "-c", "-l", "x"}), "x");
  EXPECT_EQ(text({"bash", "--norc", "-o", "pipefail", "-c", "x", "name"}), "x");
  EXPECT_EQ(text({"bash", "script.sh", "-c", "x"}), "-");
  EXPECT_EQ(text({"python3", "-c", "x"}), "-");
  EXPECT_EQ(text({"bash", "-c"}), "-");
  EXPECT_EQ(text({}), "-");
}

TEST(ShellWords, NamesOfPrograms) {
  EXPECT_EQ(program_name("/usr/bin/python3.11"), program_name("python"));
  EXPECT_NE(program_name("python3-config"), program_name("python3"));
  EXPECT_EQ(quote_command({"a", "b c", "it's", ""}), "a 'b c' 'it'\\''s' ''");
}

}  // namespace
}  // namespace firestop::story
