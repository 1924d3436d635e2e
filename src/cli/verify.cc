#include "cli/commands.h"
#include "cli/drawing.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "manifest/signature.h"
#include "sandbox/host_config.h"

namespace firestop::cli {
namespace {

// Of the command line, or of this host's configuration.
Result<std::string> allowed_signers(const ParsedArgs& args) {
  if (const auto given = args.value("--allowed-signers")) {
    if (!given->empty()) return *given;
    return fail("usage.allowed_signers", "--allowed-signers names no file");
  }
  TRY_ASSIGN(const auto config, sandbox::load_host_config());
  if (!config.allowed_signers.empty()) return config.allowed_signers;
  return fail("usage.allowed_signers", "firestop verify needs --allowed-signers FILE",
              "ssh-keygen(1), ALLOWED SIGNERS, says what is in it");
}

Result<int> verify(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(const std::string signers, allowed_signers(args));
  const auto read = load_drawing(args, context);
  if (!read) {
    // A lock that does not match is not what anybody signed.
    if (read.error().code.starts_with("lock.")) return report(context, read.error(), ExitStatus::kSignature);
    return tl::unexpected(read.error());
  }
  const auto& drawing = *read;
  if (!drawing) return static_cast<int>(ExitStatus::kUsage);
  const auto& [manifest, lock, canonical, digest] = *drawing;
  TRY_ASSIGN(const auto by,
             manifest::check_signature(manifest, lock ? &*lock : nullptr,
                                       args.value_or("--signature", manifest::signature_path(manifest.file)),
                                       signers, args.value_or("--identity", "")));
  if (context.json) {
    print_json(context, codec::JsonObject{{"principal", by.principal},
                                          {"key_type", by.key_type},
                                          {"key", by.fingerprint},
                                          {"locked", lock.has_value()},
                                          {"manifest_sha256", digest}});
    return 0;
  }
  context.terminal.out(printable(manifest.file) + ": signed by " + printable(by.principal) + " (" +
                       printable(by.key_type) + " " + printable(by.fingerprint) + ")" +
                       (lock ? ", with its lock" : ", not locked") + ", sha256:" + digest + "\n");
  return 0;
}

}  // namespace

CommandSpec verify_command() {
  return {
      .name = "verify",
      .summary = "say who signed a manifest and its lock, or why it cannot be trusted",
      .description =
          "Holds FILE.sig against the manifest, its lock, and the people whom an allowed_signers file allows "
          "to sign manifests now, and prints the principal. Which keys, namespaces, authorities and times "
          "count is said by that file and judged by ssh-keygen(1).\n\n"
          "`firestop run --allowed-signers FILE` asks the same before anything starts; so does every run if "
          "the host's configuration has require_signature: true.",
      .positionals = {manifest_positional()},
      .options = {{.name = "--allowed-signers",
                   .metavar = "FILE",
                   .help = "who may sign; without it, the file that the host's configuration names",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--identity",
                   .metavar = "WHO",
                   .help = "accept this principal only",
                   .kind = OptionKind::kValue},
                  {.name = "--signature",
                   .metavar = "SIGNATURE",
                   .help = "the signature, if it is not FILE.sig",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  json_option()},
      .examples = {{"firestop verify --allowed-signers ~/.ssh/allowed_signers",
                    "who signed ./firestop.yaml?"},
                   {"firestop verify --allowed-signers team --identity security@example.com agent.yaml",
                    "was it the security team?"}},
      .exits = {exit_note(ExitStatus::kOk, "signed, by the principal that is printed"),
                exit_note(ExitStatus::kUsage,
                          "the manifest is wrong, cannot be read, or the command line is"),
                exit_note(ExitStatus::kSignature,
                          "unsigned, changed since, signed by somebody else, out of date, or the lock does "
                          "not match")},
      .handler = verify,
  };
}

}  // namespace firestop::cli
