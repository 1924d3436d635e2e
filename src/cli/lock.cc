#include "manifest/lock.h"

#include "base/file.h"
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/canonical.h"
#include "sandbox/locking.h"

namespace firestop::cli {
namespace {

using manifest::Lock;

void show_lock(const Lock& lock, Context& context) {
  for (const auto& [path, repository] : lock.repositories)
    context.terminal.out("  " + printable(path) + ": " +
                         printable(repository.ref.empty() ? "HEAD" : repository.ref) + " is " +
                         repository.commit + "\n");
  if (!lock.recipe.empty())
    context.terminal.out("  image: " + printable(lock.recipe) + " is sha256:" + lock.image_digest + "\n");
}

// An existing lock that cannot be read is replaced like one that is old, and said to be wrong by --check.
Result<int> compare(const std::string& path, const Lock& now, Context& context) {
  TRY_ASSIGN(const auto lock, manifest::load_lock(path));
  if (!lock) return fail("lock.missing", "there is no " + path, "write it with: firestop lock");
  if (*lock != now)
    return fail("lock.outdated",
                path + " is not what would be locked now:\n" + sandbox::describe_changes(*lock, now),
                "after a look at what changed: firestop lock");
  if (context.json)
    print_json(context, codec::JsonObject{{"file", path}, {"current", true}});
  else
    context.terminal.out(printable(path) + ": current\n");
  return 0;
}

Result<int> lock(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const auto manifest, load_manifest(args, context));
  if (!manifest) return static_cast<int>(ExitStatus::kUsage);
  const std::string path = manifest::lock_path(manifest->file);
  auto made =
      sandbox::make_lock(*manifest, [&](const std::string& line) { context.terminal.progress(line); });
  context.terminal.end_progress();
  if (!made) return tl::unexpected(made.error());
  if (args.has("--check")) return compare(path, *made, context);

  TRY(write_file_atomic(path, made->to_text(), 0644));
  TRY_ASSIGN(const std::string digest, manifest::canonical_digest(*manifest, &*made));
  if (context.json) {
    print_json(context,
               codec::JsonObject{{"file", path}, {"lock", made->to_json()}, {"manifest_sha256", digest}});
    return 0;
  }
  context.terminal.out(printable(path) + ": locked\n");
  show_lock(*made, context);
  context.terminal.out("  manifest and lock: sha256:" + digest + "\n");
  return 0;
}

}  // namespace

CommandSpec lock_command() {
  return {
      .name = "lock",
      .summary = "pin a manifest's refs to commits and its image to a digest",
      .description =
          "Writes firestop.lock beside the manifest: for each git_repo the commit that its ref stands for "
          "now, "
          "and the digest of the image. A run with a lock works on the locked commits, and is refused when "
          "the image is another one or the manifest no longer is the one that was locked.\n\n"
          "A manifest with another name than firestop.yaml has its lock in FILE.lock. Folders (local_dir, "
          "local_file, mount) are not locked. The image is built if there is none yet.",
      .positionals = {manifest_positional()},
      .options = {{.name = "--check",
                   .metavar = "",
                   .help = "write nothing; say whether the lock is what would be locked now"},
                  json_option()},
      .examples = {{"firestop lock", "lock ./firestop.yaml"},
                   {"firestop lock --check", "for a CI job: has anything moved?"}},
      .exits = {exit_note(ExitStatus::kOk, "locked, or with --check: current"),
                exit_note(ExitStatus::kUsage,
                          "the manifest is wrong, cannot be read, or the command line is"),
                exit_note(ExitStatus::kCannotStart,
                          "a ref or the image cannot be found; with --check: the lock is not current")},
      .handler = lock,
  };
}

}  // namespace firestop::cli
