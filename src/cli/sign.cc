#include "base/file.h"
#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/signature.h"

namespace firestop::cli {
namespace {

// What can still change under a signature.
bool names_what_moves(const manifest::Manifest& manifest) {
  for (const auto& entry : manifest.entries)
    if (entry.type == manifest::EntryType::kGitRepo) return true;
  return !manifest.image.recipe.empty();
}

Result<int> sign(const ParsedArgs& args, Context& context) {
  const auto key = args.value("--key");
  if (!key || key->empty())
    return fail("usage.key", "firestop sign needs --key KEY",
                "an SSH key, as in --key ~/.ssh/id_ed25519; the .pub file if an agent has the key");
  TRY_ASSIGN(const auto drawing, load_drawing(args, context));
  if (!drawing) return static_cast<int>(ExitStatus::kUsage);
  TRY_ASSIGN(const std::string signature, manifest::sign(drawing->canonical, *key));
  const std::string path = args.value_or("--out", manifest::signature_path(drawing->manifest.file));
  TRY(write_file_atomic(path, signature, 0644));
  const std::string locked = drawing->lock ? manifest::lock_path(drawing->manifest.file) : "";
  if (context.json) {
    print_json(context, codec::JsonObject{{"file", path},
                                          {"lock", locked.empty() ? codec::Json() : codec::Json(locked)},
                                          {"manifest_sha256", drawing->digest}});
    return 0;
  }
  context.terminal.out(printable(path) + ": signed sha256:" + drawing->digest +
                       (locked.empty() ? "" : ", with " + printable(locked)) + "\n");
  if (locked.empty() && names_what_moves(drawing->manifest))
    context.terminal.note(
        "signed without a lock: the refs and the image that it names may change under this signature; "
        "`firestop lock` pins them");
  return 0;
}

}  // namespace

CommandSpec sign_command() {
  return {
      .name = "sign",
      .summary = "sign a manifest and its lock with an SSH key",
      .description =
          "Signs the canonical form of the manifest (every value that will be enforced, defaults spelled "
          "out) "
          "together with its lock, and writes the signature to FILE.sig. Layout, comments and the order of "
          "keys may change afterwards; anything that matters may not.\n\n"
          "The signature is one of `ssh-keygen -Y sign`, namespace firestop-manifest: keys in files, in "
          "agents and on hardware tokens work as they do there, certificates too. To check one by hand:\n\n"
          "  firestop explain --format canonical |\n"
          "    ssh-keygen -Y verify -n firestop-manifest -f ALLOWED_SIGNERS -I WHO -s firestop.yaml.sig",
      .positionals = {manifest_positional()},
      .options = {{.name = "--key",
                   .metavar = "KEY",
                   .help = "the private key; or its public key or certificate, if an agent has it",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--out",
                   .metavar = "SIGNATURE",
                   .help = "where the signature goes instead of FILE.sig, where runs look for it",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  json_option()},
      .examples = {{"firestop sign --key ~/.ssh/id_ed25519", "sign ./firestop.yaml"},
                   {"firestop lock && firestop sign --key ~/.ssh/id_ed25519.pub",
                    "pin what it names, then sign with a key that an agent holds"}},
      .exits = {exit_note(ExitStatus::kOk),
                exit_note(ExitStatus::kUsage,
                          "the manifest is wrong, cannot be read, or the command line is"),
                exit_note(ExitStatus::kCannotStart,
                          "the key cannot sign, or the lock is not one of this manifest")},
      .handler = sign,
  };
}

}  // namespace firestop::cli
