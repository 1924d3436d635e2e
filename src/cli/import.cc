#include <fcntl.h>

#include <cerrno>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/openai.h"
#include "manifest/rules.h"

namespace firestop::cli {
namespace {

constexpr const char* kOut = "firestop.yaml";
constexpr size_t kMostBytes = (1u << 20) + 4096;  // a little more than the reader takes, so that it says so

Result<void> write_new(const std::string& path, const std::string& text) {
  auto fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (!fd && fd.error().sys_errno == EEXIST)
    return fail("usage.exists", path + " exists already", "name another file with --out, or - to print it");
  if (!fd) return wrap(fd.error(), "cannot write the manifest");
  return write_all(fd->get(), text);
}

codec::Json imported_json(const manifest::Imported& imported, const std::string& out) {
  codec::JsonArray left_out, binds;
  for (const auto& note : imported.left_out)
    left_out.push_back(codec::JsonObject{{"line", static_cast<int64_t>(note.where.line)},
                                         {"column", static_cast<int64_t>(note.where.column)},
                                         {"field", note.field},
                                         {"what", note.wrong}});
  for (const auto& bind : imported.binds) binds.push_back(bind);
  return codec::JsonObject{{"file", out},
                           {"left_out", std::move(left_out)},
                           {"binds", std::move(binds)},
                           {"manifest", imported.text}};
}

void say(Context& context, const manifest::Imported& imported, const std::string& file,
         const std::string& out) {
  std::string text = "wrote " + printable(out) + "\n";
  if (!imported.left_out.empty()) text += "what it does not say any more:\n";
  for (const auto& note : imported.left_out)
    text += "  " + printable(file) + ":" + std::to_string(note.where.line) + ":" +
            std::to_string(note.where.column) + ": " +
            (note.field.empty() ? "" : printable(note.field) + ": ") + printable(note.wrong) + "\n";
  if (!imported.binds.empty()) text += "what lies elsewhere gets its place when it is run:\n";
  for (const auto& bind : imported.binds) text += "  --bind " + printable(bind) + "\n";
  context.terminal.out(text + "next: write command and capabilities into it, then: firestop explain " +
                       printable(out) + "\n");
}

Result<int> import_openai(const ParsedArgs& args, Context& context) {
  const std::string& file = args.required("FILE");
  const std::string out = args.value_or("--out", kOut), name = args.value_or("--name", "agent");
  if (const auto why = manifest::why_not_run_name(name); !why.empty())
    return fail("usage.name", "'" + printable(name) + "' " + why, "name it like fix-tests");
  auto text = read_file(file, kMostBytes);
  if (!text) {
    const auto error = std::move(text).error();
    return fail("manifest.unreadable", "cannot read the SDK's manifest: " + error.message, error.hint);
  }
  const auto imported = manifest::import_openai(file, *text, name);
  if (!imported.loaded.faults.empty()) {
    if (context.json)
      print_json(context, diagnostics_json(imported.loaded.faults));
    else
      print_faults(context, imported.loaded.faults, imported.loaded.text);
    return static_cast<int>(ExitStatus::kUsage);
  }
  if (out != "-") TRY(write_new(out, imported.text));
  if (context.json)
    print_json(context, imported_json(imported, out));
  else if (out == "-")
    context.terminal.out(imported.text);
  else
    say(context, imported, file, out);
  return 0;
}

}  // namespace

CommandSpec import_group() {
  return {
      .name = "import",
      .summary = "make a manifest from another program's",
      .description =
          "Other programs describe sandboxes too. What a manifest of Firestop cannot say is refused, "
          "with its place; nothing is dropped in silence.",
      .examples = {{"firestop import openai sandbox.json", "write ./firestop.yaml"}},
      .exits = {exit_note(ExitStatus::kUsage)},
  };
}

CommandSpec import_openai_command() {
  return {
      .name = "import openai",
      .summary = "make a manifest from a sandbox manifest of the OpenAI Agents SDK",
      .description =
          "Reads a sandbox manifest alone, JSON or YAML, in the spelling of the SDK's Python or JavaScript "
          "side, "
          "and writes it in Firestop's, with comments that say what the document had and the manifest has "
          "not: "
          "descriptions, what is about remote mounts. What reaches outside the workspace in a way that a "
          "manifest cannot say (path grants, another root, remote stores, looked-up secrets) is a fault with "
          "its "
          "place, and nothing is written.\n\n"
          "Sources outside the document's folder become names, and the command says which --bind each needs. "
          "A "
          "repository without a host gets github.com, the SDK's default. Command and capabilities are not in "
          "the SDK's manifest: write them into the new one.\n\n"
          "With --json: {file, left_out: [{line, column, field, what}], binds, manifest}, or the faults as "
          "`firestop check` has them.",
      .positionals = {{.name = "FILE",
                       .help = "the SDK's manifest",
                       .kind = PositionalKind::kRequired,
                       .completes = Completes::kFiles}},
      .options = {{.name = "--out",
                   .metavar = "FILE",
                   .help = "where to write (default: firestop.yaml; - prints it)",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--name",
                   .metavar = "NAME",
                   .help = "the manifest's name (default: agent)",
                   .kind = OptionKind::kValue},
                  json_option()},
      .examples = {{"firestop import openai sandbox.json", "write ./firestop.yaml"},
                   {"firestop import openai sandbox.yaml --out -", "look at it first"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(
                    ExitStatus::kUsage,
                    "something cannot be said in a manifest, the file exists, or the command line is wrong"),
                exit_note(ExitStatus::kCannotStart, "the file could not be written")},
      .handler = import_openai,
  };
}

}  // namespace firestop::cli
