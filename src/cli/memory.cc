#include "base/path.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "sandbox/memory_store.h"

namespace firestop::cli {
namespace {

using sandbox::MemoryStore;

codec::Json memory_json(const MemoryStore::Listed& memory) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? codec::Json() : codec::Json(text);
  };
  return codec::JsonObject{{"name", memory.name},
                           {"files", memory.record.files},
                           {"bytes", memory.record.bytes},
                           {"kept_ms", memory.record.kept_ms},
                           {"run", or_null(memory.record.run)},
                           {"manifest", or_null(memory.record.manifest_file)},
                           {"folder", or_null(memory.folder)},
                           {"in_use_by", or_null(memory.user)}};
}

Result<int> list(const ParsedArgs&, Context& context) {
  TRY_ASSIGN(const auto all, MemoryStore(state_directory()).list());
  if (context.json) {
    codec::JsonArray out;
    for (const auto& each : all) out.push_back(memory_json(each));
    print_json(context, std::move(out));
    return 0;
  }
  if (all.empty()) {
    context.terminal.out("nothing is kept; a manifest with capability memory keeps a folder\n");
    return 0;
  }
  Table table({{"NAME"},
               {"FILES", Table::Align::kRight},
               {"SIZE", Table::Align::kRight},
               {"AGE", Table::Align::kRight},
               {"IN USE BY"},
               {"MANIFEST"}});
  const int64_t now = now_ms();
  for (const auto& each : all)
    table.add({{each.name, {}},
               {std::to_string(each.record.files), {}},
               {format_bytes(each.record.bytes), {}},
               {each.record.kept_ms > 0 ? age_of(each.record.kept_ms, now) : "-", {}},
               {each.user.empty() ? "-" : each.user, {}},
               {each.record.manifest_file.empty() ? "-" : printable(each.record.manifest_file), {}}});
  context.terminal.out(table.render(context.terminal));
  return 0;
}

Result<int> forget(const ParsedArgs& args, Context& context) {
  const std::string& name = args.required("NAME");
  TRY(MemoryStore(state_directory()).forget(name));
  if (context.json)
    print_json(context, codec::JsonObject{{"forgotten", name}});
  else
    context.terminal.out("forgot what was kept under the name " + printable(name) + "\n");
  return 0;
}

}  // namespace

CommandSpec memory_group() {
  return {
      .name = "memory",
      .summary = "what agents keep between runs: list, forget",
      .description =
          "A manifest with capability memory has one folder, /workspace/.memory, that is there again in the "
          "next run of a manifest with the same name. It is kept below the state directory, in "
          "firestop/memory/NAME, as checked files that you may read.",
      .examples = {{"firestop memory list", "what is kept, and by which manifest"}},
      .exits = {exit_note(ExitStatus::kUsage)},
  };
}

CommandSpec memory_list_command() {
  return {
      .name = "memory list",
      .summary = "list what is kept between runs",
      .description =
          "Lists the memories by the name of their manifest: how much each holds, when and by which manifest "
          "it was kept last, and which run has it now.\n\n"
          "With --json: a list of {name, files, bytes, kept_ms, run, manifest, folder, in_use_by}.",
      .options = {json_option()},
      .examples = {{"firestop memory list", "what is kept"},
                   {"firestop memory list --json | jq -r '.[].folder'", "where it lies"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kCannotStart, "it cannot be read")},
      .handler = list,
  };
}

CommandSpec memory_forget_command() {
  return {
      .name = "memory forget",
      .summary = "remove what is kept under a name",
      .description =
          "Removes what the runs of a manifest kept; the next one begins with an empty folder. While "
          "a run has it, nothing is removed.",
      .positionals = {{.name = "NAME",
                       .help = "the manifest's name, as `firestop memory list` has it",
                       .kind = PositionalKind::kRequired}},
      .options = {json_option()},
      .examples = {{"firestop memory forget due-diligence", "its next run remembers nothing"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage, "nothing is kept under that name"),
                exit_note(ExitStatus::kCannotStart, "a run has it, or it cannot be removed")},
      .handler = forget,
  };
}

}  // namespace firestop::cli
