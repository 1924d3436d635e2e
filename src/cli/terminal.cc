#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "codec/utf8.h"

namespace firestop::cli {
namespace {

constexpr auto kProgressPause = std::chrono::seconds(10);
constexpr size_t kBufferLimit = 1u << 20;
constexpr size_t kLongestText = 64u << 10;

const char* sequence(Style style) {
  switch (style) {
    case Style::kPlain:
      return "";
    case Style::kBold:
      return "\x1b[1m";
    case Style::kDim:
      return "\x1b[2m";
    case Style::kRed:
      return "\x1b[31m";
    case Style::kGreen:
      return "\x1b[32m";
    case Style::kYellow:
      return "\x1b[33m";
  }
  return "";
}

unsigned width_of_process() {
  unsigned width = 0;
  if (const char* columns = std::getenv("COLUMNS"))
    width = static_cast<unsigned>(std::strtoul(columns, nullptr, 10));
  winsize size{};
  for (const int fd : {1, 2})
    if (width == 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width == 0 ? 80 : std::clamp(width, 40u, 240u);
}

}  // namespace

TerminalSettings terminal_settings_of_process() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool colour = (!no_colour || !*no_colour) && term && std::strcmp(term, "dumb") != 0;
  TerminalSettings settings;
  settings.out_live = ::isatty(1) == 1;
  settings.err_live = ::isatty(2) == 1;
  settings.out_colour = colour && settings.out_live;
  settings.err_colour = colour && settings.err_live;
  settings.err_live = settings.err_live && term && std::strcmp(term, "dumb") != 0;
  settings.width = width_of_process();
  return settings;
}

std::string Terminal::paint(Style style, std::string_view text, Stream stream) const {
  const bool colour = stream == Stream::kOut ? settings_.out_colour : settings_.err_colour;
  if (!colour || style == Style::kPlain) return std::string(text);
  return sequence(style) + std::string(text) + "\x1b[0m";
}

void Terminal::out(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() > kBufferLimit) (void)flush();
}

void Terminal::err(std::string_view text) {
  end_progress();
  (void)write_all(settings_.err, text);
}

void Terminal::note(std::string_view message) {
  err("firestop: " + printable(message) + "\n");
}

void Terminal::progress(std::string_view text) {
  const std::string line = "firestop: " + printable(text);
  if (settings_.err_live) {
    (void)write_all(settings_.err, "\r\x1b[K" + first_columns(line, settings_.width - 1));
    progress_shown_ = true;
    return;
  }
  std::string words = line;
  std::erase_if(words, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  const auto now = std::chrono::steady_clock::now();
  if (words == progress_words_ && now - progress_time_ < kProgressPause) return;
  progress_words_ = std::move(words);
  progress_time_ = now;
  (void)write_all(settings_.err, line + "\n");
}

void Terminal::end_progress() {
  if (progress_shown_) (void)write_all(settings_.err, "\r\x1b[K");
  progress_shown_ = false;
}

Result<void> Terminal::flush() {
  end_progress();
  if (out_errno_ == 0 && !buffer_.empty())
    if (const auto written = write_all(settings_.out, buffer_); !written)
      out_errno_ = written.error().sys_errno ? written.error().sys_errno : EIO;
  buffer_.clear();
  if (out_errno_ == 0 || out_errno_ == EPIPE) return {};
  errno = out_errno_;
  return fail_errno("output.failed", "cannot write to standard output");
}

std::string printable(std::string_view text) {
  std::string line = codec::printable(text, kLongestText);
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return line;
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:=@%+,").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string first_columns(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  size_t at = 0, seen = 0;
  const size_t room = columns > 3 ? columns - 3 : 0;
  while (at < text.size() && seen < room) {
    ++at, ++seen;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return std::string(text.substr(0, at)) + "...";
}

std::string wrap_words(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + columns_of(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += ' ', ++column;
    out += word;
    column += columns_of(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string Table::render(const Terminal& terminal) const {
  std::vector<std::vector<Cell>> rows{{}};
  for (const auto& column : columns_) rows[0].push_back({column.title, Style::kBold});
  rows.insert(rows.end(), rows_.begin(), rows_.end());
  std::vector<size_t> widths(columns_.size());
  for (auto& row : rows) {
    row.resize(columns_.size());
    for (size_t i = 0; i < row.size(); ++i) {
      row[i].text = printable(row[i].text);
      widths[i] = std::max(widths[i], columns_of(row[i].text));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    size_t before = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      std::string text = row[i].text;
      if (last && terminal.settings().out_live)
        text = first_columns(text, std::max<size_t>(terminal.width(), before + 8) - before);
      const std::string padding(widths[i] - std::min(widths[i], columns_of(text)), ' ');
      const std::string painted = terminal.paint(row[i].style, text, Stream::kOut);
      if (columns_[i].align == Align::kRight)
        out += padding + painted;
      else
        out += last ? painted : painted + padding;
      if (!last) out += "  ";
      before += widths[i] + 2;
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

}  // namespace firestop::cli
