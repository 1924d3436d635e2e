#include "story/shell_words.h"

#include <algorithm>
#include <array>
#include <optional>

namespace firestop::story {
namespace {

constexpr std::string_view kOperators[] = {"<<<", "<<-", "&>>", "&&", "||", ";;", "<<",
                                           ">>",  "<&",  ">&",  "<>", ">|", "&>", "|&",
                                           ";",   "&",   "|",   "<",  ">",  "(",  ")"};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::string_view last_component(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

class Lexer {
 public:
  Lexer(std::string_view text, ShellText& out) : text_(text.substr(0, kMostShellText)), out_(out) {}

  void run() {
    while (at_ < text_.size() && out_.words.size() < kMostShellWords) {
      const char c = text_[at_];
      if (is_blank(c)) {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else if (c == '\n') {
        ++at_;
        take_documents();
        put_operator(";");
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (const auto op = operator_here(); !op.empty()) {
        at_ += op.size();
        put_operator(op);
        if (op == "<<" || op == "<<-") expects_delimiter_ = true, strips_tabs_ = op == "<<-";
      } else {
        word();
      }
    }
    take_documents();
  }

 private:
  std::string_view operator_here() const {
    const auto rest = text_.substr(at_);
    for (const auto op : kOperators)
      if (rest.starts_with(op)) return op;
    return {};
  }

  void put_operator(std::string_view op) { out_.words.push_back({std::string(op), true, false}); }

  void word() {
    ShellWord word;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_blank(c) || c == '\n' || !operator_here().empty()) break;
      if (c == '\'') {
        single(word);
      } else if (c == '"') {
        doubled(word);
      } else if (c == '\\') {
        ++at_;
        if (at_ < text_.size() && text_[at_] != '\n') word.text += text_[at_];
        if (at_ < text_.size()) ++at_;
      } else if (c == '$' || c == '`') {
        expansion(word);
      } else {
        word.open |= c == '*' || c == '?' || c == '[' || c == '{' || (c == '~' && word.text.empty());
        word.text += c;
        ++at_;
      }
    }
    if (expects_delimiter_) documents_.push_back({word.text, strips_tabs_});
    expects_delimiter_ = false;
    out_.words.push_back(std::move(word));
  }

  void single(ShellWord& word) {
    const size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
    word.text += text_.substr(at_ + 1, end - at_ - 1);
    at_ = std::min(end + 1, text_.size());
  }

  void doubled(ShellWord& word) {
    for (++at_; at_ < text_.size() && text_[at_] != '"';) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        if (std::string_view("$`\"\\\n").find(next) == std::string_view::npos) word.text += c;
        if (next != '\n') word.text += next;
        at_ += 2;
      } else if (c == '$' || c == '`') {
        expansion(word);
      } else {
        word.text += c;
        ++at_;
      }
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // $name, ${...}, $(...), `...`: kept as written. `$` before anything else is itself.
  void expansion(ShellWord& word) {
    const size_t from = at_;
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (text_[at_] == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size());
      at_ = std::min(at_ + 1, text_.size());
    } else if (next == '(' || next == '{') {
      brackets(next, next == '(' ? ')' : '}');
    } else {
      ++at_;
      const bool named = next == '_' || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                         (next >= '0' && next <= '9') || std::string_view("@*#?$!-").find(next) < 7;
      if (!named) {
        word.text += '$';
        return;
      }
    }
    word.open = true;
    word.text += text_.substr(from, at_ - from);
  }

  void brackets(char open, char close) {
    int depth = 0;
    char quote = '\0';
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == open) {
        ++depth;
      } else if (c == close && --depth == 0) {
        ++at_;
        return;
      }
    }
  }

  void take_documents() {
    for (const auto& [delimiter, strips] : documents_) {
      std::string body;
      while (at_ < text_.size()) {
        const size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        while (strips && line.starts_with('\t')) line.remove_prefix(1);
        if (line == delimiter) break;
        body.append(line).append("\n");
      }
      out_.documents.push_back(std::move(body));
    }
    documents_.clear();
  }

  struct Document {
    std::string delimiter;
    bool strips = false;
  };
  std::string_view text_;
  ShellText& out_;
  size_t at_ = 0;
  bool expects_delimiter_ = false, strips_tabs_ = false;
  std::vector<Document> documents_;
};

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
}

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Words to simple commands: what a shell's grammar is, without its errors.
class Grammar {
 public:
  explicit Grammar(ShellText& text) : text_(text) {}
  void run() {
    for (size_t i = 0; i < text_.words.size(); ++i) {
      const ShellWord& word = text_.words[i];
      if (word.op)
        i = take_operator(word.text, i);
      else if (current_.words.empty() && !word.open && reserved(word.text))
        continue;
      else if (!skips_ && !(current_.words.empty() && is_assignment(word.text)))
        current_.words.push_back(word);
    }
    end_command();
  }

 private:
  // The index of the last word that was taken.
  size_t take_operator(const std::string& op, size_t i) {
    constexpr std::array<std::string_view, 12> kRedirections = {"<",  ">",  ">>", "<<",  "<<-", "<<<",
                                                                ">&", "<&", "<>", "&>>", ">|",  "&>"};
    if (is_one_of(op, kRedirections)) {
      if (!current_.words.empty() && current_.words.back().text.size() == 1 &&
          current_.words.back().text[0] >= '0' && current_.words.back().text[0] <= '9')
        current_.words.pop_back();  // 2>file
      return i + 1 < text_.words.size() && !text_.words[i + 1].op ? i + 1 : i;
    }
    end_command();
    if (op == "&&" || op == "||")
      chained_ = true;
    else if (op != "|" && op != "|&")
      chained_ = false;
    if (op == "(") ++depth_;
    if (op == ")") depth_ = std::max(0, depth_ - 1);
    return i;
  }

  bool reserved(const std::string& word) {
    constexpr std::array<std::string_view, 5> kOpens = {"if", "while", "until", "function", "{"};
    constexpr std::array<std::string_view, 4> kCloses = {"fi", "done", "esac", "}"};
    constexpr std::array<std::string_view, 6> kBetween = {"then", "do", "else", "elif", "!", "time"};
    constexpr std::array<std::string_view, 3> kSkips = {"for", "case", "select"};
    if (is_one_of(word, kOpens) || is_one_of(word, kSkips)) ++depth_;
    if (is_one_of(word, kSkips)) skips_ = true;
    if (is_one_of(word, kCloses)) depth_ = std::max(0, depth_ - 1);
    return is_one_of(word, kOpens) || is_one_of(word, kCloses) || is_one_of(word, kBetween) || skips_;
  }

  void end_command() {
    skips_ = false;
    if (!current_.words.empty()) {
      current_.conditional = chained_ || depth_ > 0;
      text_.commands.push_back(std::move(current_));
    }
    current_ = {};
  }

  ShellText& text_;
  SimpleCommand current_;
  bool chained_ = false, skips_ = false;
  int depth_ = 0;
};

}  // namespace

ShellText read_shell(std::string_view text) {
  ShellText out;
  Lexer(text, out).run();
  Grammar(out).run();
  return out;
}

std::string normal_form(const std::vector<ShellWord>& words) {
  std::string out;
  bool separator = true;  // no ";" at the beginning, and no two
  for (const ShellWord& word : words) {
    const bool ends = word.op && word.text == ";";
    if (ends && separator) continue;
    separator = ends;
    out += word.op ? '\x1e' : '\x1f';
    out += word.text;
  }
  while (out.ends_with("\x1e;")) out.resize(out.size() - 2);
  return out;
}

std::vector<ShellWord> without_cd(const std::vector<ShellWord>& words, std::string* directory) {
  size_t at = 0;
  while (at < words.size() && words[at].op && words[at].text == ";") ++at;
  if (at + 3 >= words.size() || words[at].text != "cd" || words[at].op || words[at + 1].op ||
      !words[at + 2].op || (words[at + 2].text != "&&" && words[at + 2].text != ";"))
    return words;
  if (directory) *directory = words[at + 1].text;
  return {words.begin() + static_cast<std::ptrdiff_t>(at) + 3, words.end()};
}

std::string program_name(std::string_view path) {
  const auto name = last_component(path);
  if (name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos)
    return "python3";
  return std::string(name);
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 8> kShells = {"sh",  "bash",  "dash", "zsh",
                                                       "ash", "rbash", "ksh",  "busybox"};
  auto name = last_component(program);
  if (name.starts_with('-')) name.remove_prefix(1);  // a login shell
  return is_one_of(name, kShells);
}

bool is_interpreter(std::string_view program) {
  constexpr std::array<std::string_view, 13> kOthers = {"python3", "node", "nodejs", "perl", "ruby",
                                                        "php",     "lua",  "deno",   "bun",  "env",
                                                        "tclsh",   "awk",  "make"};
  return is_shell(program) || is_one_of(program_name(program), kOthers);
}

bool is_builtin(std::string_view word) {
  constexpr std::array<std::string_view, 34> kBuiltins = {
      "cd",   "echo",    "export", "pwd",     "set",      "unset",  "source", ".",     ":",
      "true", "false",   "test",   "[",       "[[",       "printf", "read",   "alias", "eval",
      "exec", "command", "type",   "umask",   "wait",     "jobs",   "kill",   "trap",  "ulimit",
      "exit", "return",  "local",  "declare", "readonly", "shift",  "shopt"};
  return is_one_of(word, kBuiltins);
}

const std::string* shell_text_of(const std::vector<std::string>& argv) {
  if (argv.empty() || !is_shell(argv[0])) return nullptr;
  bool command = false;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) return command ? &argv[i] : nullptr;
    if (word.starts_with("--")) {
      if (word == "--rcfile" || word == "--init-file") ++i;
      if (word == "--") return command && i + 1 < argv.size() ? &argv[i + 1] : nullptr;
      continue;
    }
    command |= word[0] == '-' && word.find('c', 1) != std::string::npos;
    if (word.find_first_of("oO", 1) != std::string::npos) ++i;  // an option's name follows
  }
  return nullptr;
}

std::string quote_command(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& word : argv) {
    if (!out.empty()) out += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                            "_-./:=,+@%^") == std::string::npos;
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) {
      if (c == '\'')
        out += "'\\''";
      else
        out += c;
    }
    out += '\'';
  }
  return out;
}

}  // namespace firestop::story
