#include "manifest/explain.h"

#include <filesystem>

#include "base/file.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/canonical.h"
#include "manifest/diff.h"
#include "manifest/drawing.h"
#include "manifest/load.h"

namespace firestop::cli {
namespace {

// The bytes that are signed, and nothing after them.
Result<int> explain_canonical(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const auto drawing, load_drawing(args, context));
  if (!drawing) return static_cast<int>(ExitStatus::kUsage);
  context.terminal.out(drawing->canonical);
  return 0;
}

// An OLD that is no file in a folder (a pipe: `--diff <(git show HEAD:firestop.yaml)`) is read as if it lay
// where FILE lies.
Result<manifest::Loaded> load_old(const std::string& old, const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_regular_file(old, error) || !std::filesystem::exists(old, error))
    return manifest::load_file(old);
  TRY_ASSIGN(const std::string text, read_file(old, (1u << 20) + 4096));
  auto loaded = manifest::load_text(file, text);
  loaded.manifest.file = old;
  for (auto& fault : loaded.faults) fault.file = old;
  return loaded;
}

// nullopt: it has faults, and they are printed.
Result<std::optional<manifest::Manifest>> without_faults(manifest::Loaded loaded, Context& context) {
  if (loaded.faults.empty()) return std::optional(std::move(loaded.manifest));
  if (context.json)
    return fail("manifest.invalid", loaded.faults.front().headline(), "`firestop check` shows every fault");
  print_faults(context, loaded.faults, loaded.text);
  return std::optional<manifest::Manifest>();
}

// A lock that does not match is no reason not to draw: the title block says so, and the digest is without it.
Result<manifest::TitleBlock> title_block(const manifest::Manifest& manifest) {
  manifest::TitleBlock block{{}, "none", "not checked here"};
  const std::string path = manifest::lock_path(manifest.file);
  auto loaded = manifest::load_lock(path);
  if (!loaded) block.lock = "unreadable";
  std::optional<manifest::Lock> lock = loaded ? std::move(*loaded) : std::nullopt;
  if (lock && !manifest::check_lock(manifest, *lock)) {
    block.lock = "outdated";
    lock.reset();
  }
  if (lock) block.lock = file_name(path);
  TRY_ASSIGN(block.digest, manifest::canonical_digest(manifest, lock ? &*lock : nullptr));
  return block;
}

Result<int> explain(const ParsedArgs& args, Context& context) {
  const std::string format = args.value_or("--format", "text");
  const auto old = args.value("--diff");
  if (format == "canonical") {
    if (old) return fail("usage.bad_value", "--format canonical has no --diff", "text, json and svg have");
    return explain_canonical(args, context);
  }
  if (format == "json") context.json = true;
  const std::string file = args.value_or("FILE", "firestop.yaml");
  TRY_ASSIGN(manifest::Loaded loaded, manifest::load_file(file));
  TRY_ASSIGN(const auto manifest, without_faults(std::move(loaded), context));
  if (!manifest) return static_cast<int>(ExitStatus::kUsage);
  std::optional<manifest::Manifest> before;
  std::vector<manifest::Change> changes;
  if (old) {
    TRY_ASSIGN(manifest::Loaded old_loaded, load_old(*old, file));
    TRY_ASSIGN(before, without_faults(std::move(old_loaded), context));
    if (!before) return static_cast<int>(ExitStatus::kUsage);
    changes = manifest::diff(*before, *manifest);
  }

  const auto colour = context.terminal.settings().out_colour ? manifest::Colour::kOn : manifest::Colour::kOff;
  if (context.json) {
    print_json(context,
               before ? manifest::diff_json(*before, *manifest, changes) : manifest::explain_json(*manifest));
  } else if (format == "svg") {
    TRY_ASSIGN(const auto block, title_block(*manifest));
    context.terminal.out(before ? manifest::draw_diff_svg(*before, *manifest, changes, block)
                                : manifest::draw_svg(*manifest, block));
  } else {
    context.terminal.out(before ? manifest::diff_text(*before, *manifest, changes, colour)
                                : manifest::explain_text(*manifest, colour));
  }
  return 0;
}

}  // namespace

CommandSpec explain_command() {
  return {
      .name = "explain",
      .summary = "say what a sandbox of a manifest could touch, and what it could not",
      .description =
          "Answers the reviewer's question from the manifest alone: which files come in, which go out, "
          "mounts, network, credentials by name, capabilities, caps, the deadline, and what is not "
          "granted.\n\n"
          "With --diff, what a change to a manifest opens or closes: first what can come in, go out, be "
          "talked to, be done or be used up that could not before.",
      .positionals = {manifest_positional()},
      .options = {{.name = "--format",
                   .metavar = "FORMAT",
                   .help =
                       "text (the default), json, svg (the drawing), or canonical: the bytes that are signed",
                   .kind = OptionKind::kValue,
                   .values = {"text", "json", "svg", "canonical"},
                   .completes = Completes::kWords},
                  {.name = "--diff",
                   .metavar = "OLD",
                   .help = "what differs from the manifest OLD: what opens, what closes, what else changes",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--json", .metavar = "", .help = "the same as --format json"}},
      .examples = {{"firestop explain", "explain ./firestop.yaml"},
                   {"firestop explain agent.yaml --format json | jq .network", "one answer, for a program"},
                   {"firestop explain --format svg > compartment.svg", "the drawing, for people to look at"},
                   {"firestop explain --diff <(git show HEAD:firestop.yaml)",
                    "what your change opens or closes"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage,
                          "the manifest is wrong, cannot be read, or the command line is wrong")},
      .handler = explain,
  };
}

}  // namespace firestop::cli
