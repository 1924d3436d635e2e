#include "guest/evidence/interpreter.h"

#include <algorithm>
#include <iterator>

namespace firestop::guest {
namespace {

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

struct Name {
  std::string_view name;
  Language language;
};

// With a version behind them ("python3.11", "gcc-12" is none of these) they are the same.
constexpr Name kNames[] = {
    {"sh", Language::kShell},      {"bash", Language::kShell},       {"dash", Language::kShell},
    {"ash", Language::kShell},     {"zsh", Language::kShell},        {"ksh", Language::kShell},
    {"mksh", Language::kShell},    {"rbash", Language::kShell},      {"fish", Language::kShell},
    {"csh", Language::kShell},     {"tcsh", Language::kShell},       {"yash", Language::kShell},
    {"python", Language::kPython}, {"pypy", Language::kPython},      {"node", Language::kNode},
    {"nodejs", Language::kNode},   {"deno", Language::kNode},        {"bun", Language::kNode},
    {"perl", Language::kPerl},     {"ruby", Language::kRuby},        {"php", Language::kPhp},
    {"lua", Language::kLua},       {"luajit", Language::kLua},       {"texlua", Language::kLua},
    {"tclsh", Language::kTcl},     {"wish", Language::kTcl},         {"expect", Language::kTcl},
    {"jimsh", Language::kTcl},     {"awk", Language::kAwk},          {"gawk", Language::kAwk},
    {"mawk", Language::kAwk},      {"original-awk", Language::kAwk}, {"sed", Language::kSed},
    {"make", Language::kMake},     {"gmake", Language::kMake},       {"R", Language::kR},
    {"Rscript", Language::kR},     {"java", Language::kJava},        {"guile", Language::kOther},
    {"ocaml", Language::kOther},   {"ocamlrun", Language::kOther},   {"erl", Language::kOther},
    {"escript", Language::kOther}, {"julia", Language::kOther},      {"octave", Language::kOther},
    {"gdb", Language::kOther},     {"m4", Language::kOther},         {"cmake", Language::kOther},
    {"ninja", Language::kOther},   {"sqlite3", Language::kOther},    {"vim", Language::kOther},
    {"emacs", Language::kOther},   {"wasmtime", Language::kOther},   {"mono", Language::kOther},
    {"dotnet", Language::kOther},  {"pwsh", Language::kOther},       {"swipl", Language::kOther},
    {"groovy", Language::kOther},  {"scala", Language::kOther},      {"gjs", Language::kOther},
    {"qjs", Language::kNode},      {"beam.smp", Language::kOther},   {"openssl", Language::kNone},
};

bool is_version(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

Language by_name(std::string_view name) {
  constexpr std::string_view kMachine = "-x86_64-linux-gnu";  // perl5.36-x86_64-linux-gnu
  if (name.ends_with(kMachine)) name.remove_suffix(kMachine.size());
  if (name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so")
    return Language::kLoader;
  for (const Name& known : kNames) {
    if (!name.starts_with(known.name)) continue;
    const std::string_view rest = name.substr(known.name.size());
    if (rest.empty() || is_version(rest)) return known.language;
  }
  return Language::kNone;
}

// Walks over the words of a command line. What a language's options mean is said by four sets of letters and
// words.
struct Options {
  std::string_view text;      // letters: the next word, or the rest of this one, is program text
  std::string_view file;      // the same, and is a file with code
  std::string_view value;     // the same, and is something else
  std::string_view attached;  // letters that take the rest of the word, if there is any, and nothing else
  std::string_view module;    // as `value`; behind it are the program's arguments, and it may read more code
  std::string_view interactive;  // letters: reads code from stdin whatever else there is
  std::vector<std::string_view> text_words, file_words,
      value_words;  // "--eval": also "--eval=...", "--ev=..."
  std::vector<std::string_view> interactive_words;
  bool text_ends = false;     // after program text come the program's own arguments
  bool file_is_text = false;  // without options, the first word is program text (awk)
  bool positional = true;     // the first word that is no option is a file with code
  bool stdin_without = true;  // without all of it, the program is read from stdin
};

class Walk {
 public:
  Walk(const Options& options, const std::vector<std::string>& argv) : options_(options), argv_(argv) {}

  CodeArguments run() {
    while (!over_ && ++at_ < argv_.size()) {
      const std::string& word = argv_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word == "-") {
        out_.from_stdin = options_.positional && !found_;
        over_ = true;
      } else if (word.starts_with("--")) {
        long_option(word);
      } else if (word.starts_with('-')) {
        letters(word);
      } else if (options_.positional || options_.file_is_text) {
        break;
      }
    }
    if (!over_ && !found_ && at_ < argv_.size()) positional(argv_[at_]);
    if (!found_ && !over_ && options_.stdin_without && at_ >= argv_.size()) out_.from_stdin = true;
    return std::move(out_);
  }

 private:
  void positional(const std::string& word) {
    if (options_.file_is_text)
      out_.commands.push_back(word);
    else if (options_.positional && word == "-")
      out_.from_stdin = true;
    else if (options_.positional)
      out_.files.push_back(word);
  }
  void take(std::vector<std::string>& into, std::string value) {
    found_ = true;
    if (&into == &out_.files && value == "-")
      out_.from_stdin = true;
    else
      into.push_back(std::move(value));
    if (&into == &out_.commands && options_.text_ends) over_ = true;
  }
  void take_next(std::vector<std::string>& into) {
    if (at_ + 1 < argv_.size()) take(into, argv_[++at_]);
  }
  static bool among(const std::vector<std::string_view>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  // Also cut short, as getopt_long(3) has it.
  static bool among_long(const std::vector<std::string_view>& words, std::string_view word) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view one) { return word.size() > 3 && one.starts_with(word); });
  }
  void long_option(std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    std::vector<std::string>* into = among_long(options_.text_words, name)   ? &out_.commands
                                     : among_long(options_.file_words, name) ? &out_.files
                                                                             : nullptr;
    if (among_long(options_.interactive_words, name)) out_.from_stdin = true;
    if (into && equals != std::string_view::npos)
      take(*into, std::string(word.substr(equals + 1)));
    else if (into)
      take_next(*into);
    else if (equals == std::string_view::npos && among(options_.value_words, name))
      ++at_;
  }
  void letters(std::string_view word) {
    if (among(options_.text_words, word)) return take_next(out_.commands);
    if (among(options_.file_words, word)) return take_next(out_.files);
    if (among(options_.value_words, word)) return static_cast<void>(++at_);
    for (size_t i = 1; i < word.size() && !over_; ++i) {
      const auto is_in = [&](std::string_view set) { return set.find(word[i]) != std::string_view::npos; };
      std::vector<std::string>* into = is_in(options_.text)   ? &out_.commands
                                       : is_in(options_.file) ? &out_.files
                                                              : nullptr;
      if (is_in(options_.interactive)) out_.from_stdin = true;
      if (is_in(options_.module)) {
        out_.from_stdin = found_ = over_ = true;
        return;
      }
      if (into || is_in(options_.value)) {
        const std::string rest(word.substr(i + 1));
        if (into && !rest.empty()) return take(*into, rest);
        if (into) return take_next(*into);
        if (rest.empty()) ++at_;
        return;
      }
      if (is_in(options_.attached)) return;
    }
  }

  const Options& options_;
  const std::vector<std::string>& argv_;
  size_t at_ = 0;
  bool found_ = false, over_ = false;
  CodeArguments out_;
};

// What bash takes with one dash, too.
bool is_long_option(std::string_view word) {
  constexpr std::string_view kWords[] = {"-norc",       "-noprofile",    "-noediting",       "-posix",
                                         "-login",      "-verbose",      "-debug",           "-debugger",
                                         "-help",       "-version",      "-wordexp",         "-protected",
                                         "-restricted", "-dump-strings", "-dump-po-strings", "-pretty-print"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// sh -c: the text is the first word that is no option, wherever "c" stands among them; -s: stdin.
CodeArguments shell_arguments(const std::vector<std::string>& argv) {
  CodeArguments out;
  bool text = false, standard = false;
  size_t at = 1;
  for (; at < argv.size(); ++at) {
    const std::string& word = argv[at];
    if (word == "--" || word == "-") {
      ++at;
      break;
    }
    const std::string_view name = std::string_view(word).substr(word.starts_with("--") ? 1 : 0);
    if (name == "-rcfile" || name == "-init-file") {
      if (++at < argv.size()) out.files.push_back(argv[at]);
      continue;
    }
    if (word.starts_with("--") || is_long_option(name)) continue;
    if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) break;
    for (size_t i = 1; i < word.size(); ++i) {
      if (word[0] == '-' && word[i] == 'c') text = true;
      if (word[i] == 's') standard = true;
      if (word[i] == 'o' || word[i] == 'O') ++at;  // -o name
    }
  }
  if (text) {
    if (at < argv.size()) out.commands.push_back(argv[at]);
  } else if (standard || at >= argv.size()) {
    out.from_stdin = true;
  } else {
    out.files.push_back(argv[at]);
  }
  return out;
}

Options options_of(Language language) {
  Options o;
  switch (language) {
    case Language::kPython:
      o.text = "c", o.value = "WXQ", o.module = "m", o.interactive = "i", o.text_ends = true;
      o.value_words = {"--check-hash-based-pycs"};
      break;
    case Language::kNode:
      o.text_words = {"-e", "--eval", "-p", "--print", "-pe", "eval"};
      o.file_words = {"-r", "--require", "--import", "--loader", "--experimental-loader"};
      o.value_words = {"-C", "--conditions", "--input-type", "--env-file"};
      o.interactive = "i", o.interactive_words = {"--interactive"};
      break;
    case Language::kPerl:
      o.text = "eE", o.value = "I", o.attached = "iMmFCDxdV", o.interactive = "d";
      break;
    case Language::kRuby:
      o.text = "e", o.value = "IrCEX", o.attached = "iFKTWx";
      break;
    case Language::kPhp:
      o.text = "rBRE", o.file = "fF", o.value = "dcztS", o.interactive = "a";
      break;
    case Language::kLua:
      o.text = "e", o.value = "l", o.interactive = "i";
      break;
    case Language::kTcl:
      o.text = "c", o.file = "f";
      o.value_words = {"-encoding"};
      break;
    case Language::kAwk:
      o.text = "e", o.file = "fEi", o.value = "vFl", o.file_is_text = true, o.stdin_without = false;
      o.text_words = {"--source"}, o.file_words = {"--file", "--exec", "--include"};
      o.value_words = {"--assign", "--field-separator", "-W"};
      break;
    case Language::kSed:  // its expressions stand among the arguments, and are many
      o.file = "f", o.value = "e", o.attached = "i", o.positional = false, o.stdin_without = false;
      o.file_words = {"--file"}, o.value_words = {"--expression"};
      break;
    case Language::kMake:
      o.file = "f", o.value = "CIoWE", o.attached = "jlO", o.positional = false, o.stdin_without = false;
      o.file_words = {"--file", "--makefile"}, o.text_words = {"--eval"};
      o.value_words = {"--directory", "--include-dir"};
      break;
    case Language::kR:
      o.text = "e", o.file = "f", o.value = "g";
      o.file_words = {"--file"};
      break;
    case Language::kJava:
      o.stdin_without = false;
      o.file_words = {"-jar"};
      o.value_words = {"-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "-m"};
      break;
    case Language::kLoader:
      o.stdin_without = false;
      o.value_words = {"--library-path", "--inhibit-rpath", "--audit", "--argv0"};
      o.file_words = {"--preload"};
      break;
    default:
      o.stdin_without = false;
      break;
  }
  return o;
}

bool has_suffix(std::string_view path) {
  constexpr std::string_view kSuffixes[] = {
      ".sh",    ".bash",  ".zsh",   ".ksh",     ".py",    ".pyc",    ".pyw",  ".pth",  ".js",  ".mjs", ".cjs",
      ".ts",    ".mts",   ".cts",   ".tsx",     ".jsx",   ".node",   ".wasm", ".pl",   ".pm",  ".ph",  ".t",
      ".rb",    ".php",   ".phar",  ".lua",     ".tcl",   ".tm",     ".exp",  ".awk",  ".sed", ".mk",  ".mak",
      ".R",     ".r",     ".Rdata", ".jar",     ".class", ".java",   ".jl",   ".m",    ".scm", ".el",  ".vim",
      ".cmake", ".ninja", ".gdb",   ".sql",     ".ps1",   ".groovy", ".erl",  ".beam", ".ml",  ".so",  ".pyd",
      ".whl",   ".egg",   ".zip",   ".gemspec", ".rake",  ".in",     ".ac",   ".am",   ".m4"};
  const std::string_view name = base_name(path);
  if (name.find(".so.") != std::string_view::npos) return true;
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes), [&](std::string_view suffix) {
    return name.size() > suffix.size() && name.ends_with(suffix);
  });
}

bool has_name(std::string_view path) {
  constexpr std::string_view kWhole[] = {
      "Makefile", "makefile",      "GNUmakefile", "Rakefile", "Gemfile",   "CMakeLists.txt", ".bashrc",
      ".profile", ".bash_profile", ".zshrc",      ".envrc",   "configure", "gradlew",        "manage.py"};
  const std::string_view name = base_name(path);
  return std::find(std::begin(kWhole), std::end(kWhole), name) != std::end(kWhole);
}

}  // namespace

Language language_of(std::string_view executable, std::string_view first_word) {
  const std::string_view name = base_name(executable);
  if (name.starts_with("busybox") || name.starts_with("toybox")) {
    if (first_word.starts_with('-')) first_word.remove_prefix(1);  // a login shell
    const Language language = by_name(base_name(first_word));
    return language == Language::kNone ? Language::kShell : language;
  }
  return by_name(name);
}

CodeArguments code_arguments(Language language, const std::vector<std::string>& argv) {
  if (argv.empty() || language == Language::kNone) return {};
  if (language == Language::kShell) {
    // "busybox sh x.sh"
    const std::string_view name = base_name(argv[0]);
    if (argv.size() > 1 && (name == "busybox" || name == "toybox"))
      return code_arguments(by_name(argv[1]), {argv.begin() + 1, argv.end()});
    return shell_arguments(argv);
  }
  // "deno run x.ts", "bun run x.ts", "deno eval TEXT"
  if (language == Language::kNode && argv.size() > 1 && (argv[1] == "run" || argv[1] == "eval")) {
    std::vector<std::string> rest{argv.begin() + 1, argv.end()};
    if (argv[1] == "eval") rest.insert(rest.begin() + 1, "--eval");
    const Options options = options_of(language);
    return Walk(options, rest).run();
  }
  const Options options = options_of(language);
  return Walk(options, argv).run();
}

void see_through_loader(Language& language, std::vector<std::string>& argv) {
  if (language != Language::kLoader) return;
  const CodeArguments arguments = code_arguments(language, argv);
  if (arguments.files.empty()) return;
  const auto program = std::find(argv.begin(), argv.end(), arguments.files.back());
  const Language of_program = language_of(*program, *program);
  if (of_program == Language::kNone || of_program == Language::kLoader) return;
  language = of_program;
  argv.erase(argv.begin(), program);
}

bool reads_programs(Language language) {
  switch (language) {
    case Language::kNone:
    case Language::kJava:
    case Language::kLoader:
    case Language::kOther:
      return false;
    default:
      return true;
  }
}

bool looks_like_code(Language language, std::string_view path, std::string_view head) {
  if (head.empty()) return false;
  if (head.starts_with("#!")) return true;
  if (language == Language::kShell) return head.find('\0') == std::string_view::npos;
  if (language == Language::kMake && !has_suffix(path) && !has_name(path))
    return head.find('\0') == std::string_view::npos;
  return has_suffix(path) || has_name(path);
}

}  // namespace firestop::guest
