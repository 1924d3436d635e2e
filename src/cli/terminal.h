// What people see: colour only where a person looks, plain lines everywhere else.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace firestop::cli {

enum class Style { kPlain, kBold, kDim, kRed, kGreen, kYellow };
enum class Stream { kOut, kErr };

struct TerminalSettings {
  int out = 1, err = 2;
  bool out_colour = false, err_colour = false;
  bool err_live = false;  // stderr is a terminal: a progress line may overwrite itself
  bool out_live = false;  // stdout is a terminal: lines are cut to its width
  unsigned width = 80;    // columns
};

// Colour needs a terminal on that stream, no NO_COLOR (https://no-color.org: any value but the empty one),
// and a TERM other than "dumb". The width is COLUMNS, or the terminal's, or 80; within 40 to 240.
TerminalSettings terminal_settings_of_process();

class Terminal {
 public:
  explicit Terminal(TerminalSettings settings) : settings_(settings) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { end_progress(); }

  const TerminalSettings& settings() const { return settings_; }
  unsigned width() const { return settings_.width; }
  std::string paint(Style style, std::string_view text, Stream stream) const;

  // Buffered until flush(). Must not be mixed with writes of somebody else to the same descriptor without
  // one.
  void out(std::string_view text);
  // At once; an active progress line is taken away first. A stderr that is gone is nobody's problem.
  void err(std::string_view text);
  // "firestop: message" on stderr, made printable.
  void note(std::string_view message);
  // One line that replaces the one before. Off a terminal: a line of its own, when more than a number has
  // changed or some seconds have passed.
  void progress(std::string_view text);
  void end_progress();
  // "output.failed" if stdout can't be written; a reader that went away (EPIPE) is no failure.
  Result<void> flush();

 private:
  TerminalSettings settings_;
  std::string buffer_;
  bool progress_shown_ = false;
  std::string progress_words_;
  std::chrono::steady_clock::time_point progress_time_{};
  int out_errno_ = 0;
};

// Text of others as one line for a terminal: as codec::printable, newlines and tabs become blanks.
std::string printable(std::string_view text);
// A word as a shell would have to be given it.
std::string shell_word(const std::string& word);
// Characters, as columns: good for what printable() gives in scripts that are one column a character.
size_t columns_of(std::string_view text);
// At most so many of them; "..." at the end says that there were more.
std::string first_columns(std::string_view text, size_t columns);
// Words filled into lines of `width` columns, each line but the first indented.
std::string wrap_words(std::string_view text, size_t indent, size_t width);

// Columns that fit their content. Cells are made printable.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  struct Cell {
    std::string text;
    Style style = Style::kPlain;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  // With a heading; on a terminal the last column is cut where the line would wrap.
  std::string render(const Terminal& terminal) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace firestop::cli
