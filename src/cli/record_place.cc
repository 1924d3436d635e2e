#include "cli/record_place.h"

#include "base/file.h"
#include "base/path.h"
#include "cli/report.h"
#include "sandbox/recorder.h"
#include "sandbox/run_store.h"

namespace firestop::cli {

Result<RecordPlace> find_record(const std::string& named, Context& context) {
  if (named.find('/') != std::string::npos) {
    const std::string inside = join_path(named, sandbox::kEvidence);
    return RecordPlace{.directory = exists(inside) ? inside : named};
  }
  sandbox::RunStore store(state_directory());
  sweep(context, store);
  TRY_ASSIGN(const auto run, store.find(named));
  return RecordPlace{.directory = join_path(store.directory_of(run.record.id), sandbox::kEvidence),
                     .run = run.record.id,
                     .alive = run.alive};
}

Result<std::vector<evidence::PublicKey>> trusted_signers(const ParsedArgs& args) {
  if (const auto file = args.value("--signers")) return evidence::PublicKey::load(*file);
  const std::string own = evidence::public_key_path(config_directory());
  if (!exists(own))
    return fail("usage.signers", "no key is trusted: this user has none yet (" + own + ")",
                "--signers FILE names the keys of those hosts whose records you trust, in PEM");
  return evidence::PublicKey::load(own);
}

OptionSpec signers_option() {
  return {.name = "--signers",
          .metavar = "FILE",
          .help = "public keys that are trusted, in PEM, one or more (default: this user's own)",
          .kind = OptionKind::kValue,
          .completes = Completes::kFiles};
}

PositionalSpec run_or_directory() {
  return {
      .name = "RUN",
      .help = "its id, the beginning of its id, or its name (the newest); or a directory, with a slash in it",
      .kind = PositionalKind::kRequired,
      .completes = Completes::kRuns};
}

}  // namespace firestop::cli
