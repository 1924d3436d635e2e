#include "manifest/init.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

constexpr const char* kFile = "firestop.yaml";

Result<void> write_new(const std::string& text) {
  auto fd = open_file(kFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (!fd && fd.error().sys_errno == EEXIST)
    return fail("usage.exists", std::string(kFile) + " exists already",
                "`firestop init --force` replaces it");
  if (!fd) return wrap(fd.error(), "cannot write the manifest");
  return write_all(fd->get(), text);
}

Result<int> init(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const std::string text, manifest::init_text("."));
  if (args.has("--stdout")) {
    context.terminal.out(text);
    return 0;
  }
  if (args.has("--force"))
    TRY(write_file_atomic(kFile, text, 0644));
  else
    TRY(write_new(text));
  context.terminal.out(std::string("wrote ") + kFile + "\n" +
                       "next: firestop explain           what a sandbox of it could touch\n"
                       "      firestop run -- COMMAND    a command in that sandbox\n");
  return 0;
}

}  // namespace

CommandSpec init_command() {
  return {
      .name = "init",
      .summary = "write a first manifest for the folder you stand in",
      .description =
          "Writes firestop.yaml, with comments, from what can be seen in the current folder: whether it is "
          "a git repository, and which build files it has. Nothing of the folder is executed.",
      .options = {{.name = "--force", .metavar = "", .help = "replace a firestop.yaml that exists"},
                  {.name = "--stdout", .metavar = "", .help = "print it, write no file"}},
      .examples = {{"firestop init", "write ./firestop.yaml"},
                   {"firestop init --stdout | less", "look at it first"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage, "firestop.yaml exists already, or the command line is wrong"),
                exit_note(ExitStatus::kCannotStart, "the file could not be written")},
      .handler = init,
  };
}

}  // namespace firestop::cli
