#include "sandbox/run.h"

#include <cstdlib>

#include "base/path.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using codec::Json;
using codec::JsonObject;

// What Firestop itself says of a run goes to stderr, since stdout is the command's: lines for people, or with
// --json one object a line, the last of them the record.
class Narrator {
 public:
  explicit Narrator(Context& context) : context_(context) {}

  void notice(const std::string& text) {
    if (context_.json)
      line(JsonObject{{"event", "notice"}, {"message", text}});
    else
      context_.terminal.note(text);
  }
  void progress(const std::string& text) {
    if (context_.json)
      line(JsonObject{{"event", "progress"}, {"message", text}});
    else
      context_.terminal.progress(text);
  }
  void ended(const sandbox::RunEnd& end) {
    context_.terminal.end_progress();
    const bool speaks = context_.json || end.error || !end.faults.empty() || !end.notes.empty() ||
                        !end.record.branches.empty() || !end.record.outputs_directory.empty() ||
                        end.record.memory.kept;
    if (end.errors_open && speaks) context_.terminal.err("\n");
    context_.json ? ended_for_programs(end) : ended_for_people(end);
  }

 private:
  void line(const Json& json) { context_.terminal.err(codec::write_json(json) + "\n"); }

  void ended_for_programs(const sandbox::RunEnd& end) {
    JsonObject out{{"event", "ended"}, {"status", end.status}};
    if (end.error) out["error"] = error_json(*end.error, static_cast<ExitStatus>(end.status));
    if (!end.faults.empty()) out["faults"] = diagnostics_json(end.faults);
    if (!end.record.id.empty()) out["run"] = end.record.to_json();
    codec::JsonArray notes;
    for (const auto& note : end.notes) notes.push_back(note);
    out["notes"] = std::move(notes);
    line(out);
  }

  void ended_for_people(const sandbox::RunEnd& end) {
    if (!end.faults.empty()) print_faults(context_, end.faults, end.text);
    for (const auto& note : end.notes) context_.terminal.note(note);
    for (const auto& branch : end.record.branches) {
      const std::string name = branch.ref.starts_with("refs/heads/") ? branch.ref.substr(11) : branch.ref;
      context_.terminal.note("branch " + name + ": " + std::to_string(branch.new_commits) +
                             (branch.new_commits == 1 ? " commit" : " commits") +
                             (branch.uncommitted ? ", the last holds what was left uncommitted" : "") + " (" +
                             branch.entry + ")");
    }
    if (!end.record.outputs_directory.empty())
      context_.terminal.note(std::to_string(end.record.output_files) +
                             (end.record.output_files == 1 ? " file in " : " files in ") +
                             end.record.outputs_directory);
    if (end.record.memory.kept)
      context_.terminal.note("memory of " + end.record.memory.name + ": " +
                             std::to_string(end.record.memory.files) +
                             (end.record.memory.files == 1 ? " file" : " files") + " kept for the next run");
    if (end.error) report(context_, *end.error, static_cast<ExitStatus>(end.status));
  }

  Context& context_;
};

Result<std::map<std::string, std::string>> parse_binds(const std::vector<std::string>& given) {
  std::map<std::string, std::string> binds;
  for (const auto& text : given) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      return fail("usage.bind", "--bind " + text + " is not of the form NAME=PATH",
                  "as in --bind data=/srv/data");
    if (!binds.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      return fail("usage.bind", "--bind " + text.substr(0, equals) + " is given twice");
  }
  return binds;
}

Result<int> run(const ParsedArgs& args, Context& context) {
  sandbox::RunStore store(state_directory());
  sweep(context, store);
  sandbox::RunRequest request;
  request.manifest_file = args.value_or("FILE", "firestop.yaml");
  request.name = args.value_or("--name", "");
  request.command = args.values("COMMAND");
  request.terminal = args.has("--tty");
  request.keep = args.has("--keep");
  request.out_directory = args.value_or("--out", "");
  request.connect_to = args.values("--connect-to");
  request.upstream_ca = args.value_or("--upstream-ca", "");
  request.anchor = args.value_or("--anchor", "");
  request.allowed_signers = args.value_or("--allowed-signers", "");
  const char* term = std::getenv("TERM");
  request.term = term && *term ? term : "xterm";
  Narrator narrator(context);
  sandbox::RunEnd end;
  if (args.has("--allowed-signers") && request.allowed_signers.empty()) {  // an unset variable of a script
    end.status = static_cast<int>(ExitStatus::kUsage);
    end.error = Error{"usage.allowed_signers", "--allowed-signers names no file", {}, 0};
  } else if (auto binds = parse_binds(args.values("--bind")); binds) {
    request.binds = std::move(*binds);
    end = sandbox::run(request, {.notice = [&](const std::string& text) { narrator.notice(text); },
                                 .progress = [&](const std::string& text) { narrator.progress(text); }});
  } else {
    end.status = static_cast<int>(ExitStatus::kUsage);
    end.error = binds.error();
  }
  narrator.ended(end);
  return end.status;
}

}  // namespace

CommandSpec run_command() {
  return {
      .name = "run",
      .summary = "run a command in a microVM of its own, as the manifest draws it",
      .description =
          "Starts a microVM with a kernel of its own, puts into it what the manifest declares and nothing "
          "else, runs "
          "the command, and brings back what it left: new commits and uncommitted work as branch agent/NAME "
          "of the "
          "source repository, output directories below firestop-out/NAME. The checkout is not touched.\n\n"
          "The exit status is the command's, 128+n after signal n; from 240 up it is Firestop's own, with a "
          "line on "
          "stderr that says why. The first Ctrl-C is passed to the command, the second ends it.\n\n"
          "stdout and stderr are the command's. With --json what Firestop says on stderr is one JSON object "
          "a line; "
          "the last has \"event\":\"ended\" and the whole record of the run.",
      .positionals = {manifest_positional(),
                      {.name = "COMMAND",
                       .help = "instead of the manifest's command",
                       .kind = PositionalKind::kAfterDashes}},
      .options =
          {{.name = "--name",
            .metavar = "NAME",
            .help = "name of the run and of its branch, agent/NAME",
            .kind = OptionKind::kValue},
           {.name = "--bind",
            .metavar = "NAME=PATH",
            .help = "what the manifest's {bind: NAME} stands for on this machine",
            .kind = OptionKind::kRepeatable,
            .completes = Completes::kFiles},
           {.name = "--out",
            .metavar = "DIR",
            .help = "where outputs go instead of firestop-out/NAME; must not exist",
            .kind = OptionKind::kValue,
            .completes = Completes::kDirectories},
           {.name = "--allowed-signers",
            .metavar = "FILE",
            .help = "refuse a manifest that is not signed by one of these, as `firestop verify` does",
            .kind = OptionKind::kValue,
            .completes = Completes::kFiles},
           {.name = "--connect-to",
            .metavar = "HOST:PORT=ADDRESS:PORT",
            .help = "dial this address where a rule of `egress` lets the sandbox reach the host",
            .kind = OptionKind::kRepeatable},
           {.name = "--upstream-ca",
            .metavar = "FILE",
            .help = "certificates (PEM) that servers may have besides those that this host trusts",
            .kind = OptionKind::kValue,
            .completes = Completes::kFiles},
           {.name = "--anchor",
            .metavar = "WHERE",
            .help = "give each signed checkpoint of the record to a file that is appended to, to "
                    "command:WORDS or "
                    "to git:REPO#REF",
            .kind = OptionKind::kValue,
            .completes = Completes::kFiles},
           {.name = "--tty", .help = "give the command a terminal"},
           {.name = "--keep", .help = "keep the run's disks for a look afterwards"},
           {.name = "--json",
            .help = "say what Firestop says on stderr as JSON, one object a line; the last is the record"}},
      .examples = {{"firestop run", "run the manifest's command"},
                   {"firestop run -- make test", "run the tests in the sandbox"},
                   {"firestop run --tty -- bash", "look around in one"},
                   {"firestop run --bind dataroom=/srv/data report.yaml",
                    "bind a folder that the manifest names"}},
      .exits = {{"n", "the command's own status, 128+n after signal n"},
                exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kSignature),
                exit_note(ExitStatus::kCannotStart),
                exit_note(ExitStatus::kRating),
                exit_note(ExitStatus::kCap),
                exit_note(ExitStatus::kHelper),
                exit_note(ExitStatus::kResult)},
      .handler = run,
      .stdout_is_foreign = true,
  };
}

}  // namespace firestop::cli
