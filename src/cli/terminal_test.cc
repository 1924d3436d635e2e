#include "cli/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "base/fd.h"
#include "base/file.h"

namespace firestop::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A terminal whose two streams go into pipes.
class Caught {
 public:
  explicit Caught(TerminalSettings settings) {
    int out[2], err[2];
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
    out_read_.reset(out[0]), out_write_.reset(out[1]), err_read_.reset(err[0]), err_write_.reset(err[1]);
    settings.out = out[1], settings.err = err[1];
    terminal = std::make_unique<Terminal>(settings);
  }
  std::string out() { return out_write_.reset(), *read_all(out_read_.get()); }
  std::string err() { return err_write_.reset(), *read_all(err_read_.get()); }
  void close_out_reader() { out_read_.reset(); }

  std::unique_ptr<Terminal> terminal;

 private:
  UniqueFd out_read_, out_write_, err_read_, err_write_;
};

TEST(TerminalTest, ColourOnlyWhereItIsWanted) {
  const Caught plain({});
  EXPECT_EQ(plain.terminal->paint(Style::kRed, "x", Stream::kOut), "x");
  const Caught colour({.out_colour = true});
  EXPECT_EQ(colour.terminal->paint(Style::kRed, "x", Stream::kOut), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(colour.terminal->paint(Style::kRed, "x", Stream::kErr), "x");
}

TEST(TerminalTest, ProgressOverwritesItselfOnATerminal) {
  Caught live({.err_live = true, .width = 20});
  live.terminal->progress("one");
  live.terminal->progress("a line that is too long for it");
  live.terminal->note("said");
  EXPECT_EQ(live.err(), "\r\x1b[Kfirestop: one\r\x1b[Kfirestop: a line...\r\x1b[Kfirestop: said\n");
}

TEST(TerminalTest, ProgressIsPlainLinesElsewhereAndNotOneForEveryNumber) {
  Caught plain({});
  for (int i = 0; i < 100; ++i) plain.terminal->progress("packages " + std::to_string(i) + "%");
  plain.terminal->progress("kernel");
  EXPECT_EQ(plain.err(), "firestop: packages 0%\nfirestop: kernel\n");
}

TEST(TerminalTest, NothingOfOthersReachesTheTerminalRaw) {
  for (const std::string hostile : {"a\x1b[2Jb", "a\rb", "a\nb", "a\x07", "a\xff",
                                    "\xe2\x80\xae"
                                    "abc",
                                    "\xc2\x9b"
                                    "31m"}) {
    const std::string shown = printable(hostile);
    for (const char* raw : {"\x1b", "\r", "\n", "\x07", "\xff", "\xe2\x80\xae", "\xc2\x9b"})
      EXPECT_THAT(shown, Not(HasSubstr(raw)));
  }
  Caught caught({});
  caught.terminal->note("evil\x1b]0;title\x07");
  EXPECT_THAT(caught.err(), Not(HasSubstr("\x1b")));
}

TEST(TerminalTest, TablesAlign) {
  Caught caught({});
  Table table({{"NAME"}, {"SIZE", Table::Align::kRight}, {"LAST"}});
  table.add({{"ä"}, {"1"}, {"x"}});
  table.add({{"long one"}, {"1000"}, {std::string(100, 'y')}});
  table.add({{"short row"}});
  EXPECT_EQ(table.render(*caught.terminal),
            "NAME       SIZE  LAST\n"
            "ä             1  x\n"
            "long one   1000  " +
                std::string(100, 'y') +
                "\n"
                "short row\n");
}

TEST(TerminalTest, OnATerminalTheLastColumnIsCut) {
  Caught caught({.out_live = true, .width = 40});
  Table table({{"A"}, {"B"}});
  table.add({{"x"}, {std::string(100, 'y')}});
  EXPECT_EQ(table.render(*caught.terminal), "A  B\nx  " + std::string(34, 'y') + "...\n");
}

TEST(TerminalTest, WordsWrapWithTheirIndent) {
  EXPECT_EQ(wrap_words("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrap_words("", 2, 9), "");
  EXPECT_EQ(wrap_words("waytoolongforit x", 2, 9), "waytoolongforit\n  x");
}

TEST(TerminalTest, AFullDiskIsAnErrorAndALostReaderIsNot) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  Terminal terminal({.out = full.get(), .err = 2});
  terminal.out("text");
  const auto flushed = terminal.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, "output.failed");

  Caught caught({});
  caught.close_out_reader();
  ::signal(SIGPIPE, SIG_IGN);
  caught.terminal->out("text");
  EXPECT_TRUE(caught.terminal->flush());
}

}  // namespace
}  // namespace firestop::cli
