#include <algorithm>

#include "base/path.h"
#include "cli/commands.h"
#include "cli/doctor_checks.h"
#include "cli/report.h"
#include "cli/run_view.h"
#include "cli/terminal.h"
#include "jail/cgroup.h"
#include "sandbox/caps.h"

namespace firestop::cli {
namespace {

Style style_of(Health health) {
  switch (health) {
    case Health::kOk:
      return Style::kGreen;
    case Health::kDegraded:
      return Style::kYellow;
    case Health::kMissing:
      return Style::kRed;
  }
  return Style::kPlain;
}

void print(const std::vector<Check>& checks, Terminal& terminal) {
  size_t widest = 0;
  for (const auto& check : checks) widest = std::max(widest, check.title.size());
  constexpr size_t kStateWidth = 10;
  const size_t indent = kStateWidth + widest + 2;
  for (const auto& check : checks) {
    std::string state = to_string(check.health);
    const std::string gap(kStateWidth - state.size(), ' ');
    terminal.out(terminal.paint(style_of(check.health), state, Stream::kOut) + gap + check.title +
                 std::string(widest + 2 - check.title.size(), ' ') +
                 wrap_words(printable(check.found), indent, terminal.width()) + "\n");
    const auto more = [&](const std::string& label, const std::string& text) {
      if (!text.empty())
        terminal.out(std::string(indent, ' ') +
                     wrap_words(label + printable(text), indent, terminal.width()) + "\n");
    };
    more("means: ", check.meaning);
    more("mend: ", check.mend);
  }
}

// What a run started here and now would have.
std::vector<sandbox::KeptCap> caps_here() {
  const jail::CgroupSite site = jail::find_cgroups("");
  jail::CgroupCaps groups;
  groups.memory = !site.memory.empty();
  groups.processes = !site.processes.empty();
  groups.cpu = !site.cpu.empty();
  groups.hierarchy = to_string(site.version);
  return sandbox::kept_caps(groups, nullptr);
}

codec::Json caps_json() {
  codec::JsonArray all;
  for (const auto& cap : caps_here()) {
    codec::JsonArray by;
    for (const auto& keeper : cap.by) by.push_back(keeper);
    all.push_back(codec::JsonObject{{"cap", cap.cap}, {"by", std::move(by)}});
  }
  return all;
}

std::string caps_table(const Terminal& terminal) {
  Table table({{"CAP"}, {"KEPT HERE BY"}});
  for (const auto& cap : caps_here()) table.add({{cap.cap, {}}, {keepers_text(cap), {}}});
  return table.render(terminal);
}

Result<int> doctor(const ParsedArgs&, Context& context) {
  sandbox::RunStore store(state_directory());
  sweep(context, store);
  const std::vector<Check> checks = check_host();
  const bool possible =
      std::none_of(checks.begin(), checks.end(), [](const Check& c) { return c.health == Health::kMissing; });
  const bool degraded =
      std::any_of(checks.begin(), checks.end(), [](const Check& c) { return c.health == Health::kDegraded; });
  if (context.json) {
    codec::JsonArray all;
    for (const auto& check : checks)
      all.push_back(codec::JsonObject{{"id", check.id},
                                      {"title", check.title},
                                      {"state", to_string(check.health)},
                                      {"found", check.found},
                                      {"meaning", check.meaning},
                                      {"mend", check.mend}});
    print_json(context, codec::JsonObject{
                            {"runs_possible", possible}, {"checks", std::move(all)}, {"caps", caps_json()}});
  } else {
    print(checks, context.terminal);
    context.terminal.out("\n" + caps_table(context.terminal));
    context.terminal.out(
        !possible  ? "\nNo run is possible here until what is missing has been mended.\n"
        : degraded ? "\nRuns are possible here; what is degraded says what is less than it could be.\n"
                   : "\nRuns are possible here.\n");
  }
  return static_cast<int>(possible ? ExitStatus::kOk : ExitStatus::kCannotStart);
}

}  // namespace

CommandSpec doctor_command() {
  return {
      .name = "doctor",
      .summary = "say whether runs are possible on this machine, and what would make them better",
      .description =
          "Looks at everything that a run needs: QEMU, KVM, the guest image and what builds it, git, "
          "control groups, memory and disk. Each is ok, degraded (runs are possible, with less) or missing "
          "(they are not), with what that means and how to mend it. Changes nothing; once after each boot "
          "of the host it tries for some seconds whether a guest really starts with KVM.\n\n"
          "With --json: {runs_possible, checks, caps}, each check with {id, title, state, found, meaning, "
          "mend}, "
          "each cap with {cap, by}: what keeps it in a run that is started from here.",
      .options = {json_option()},
      .examples = {{"firestop doctor", "look at this machine"},
                   {"firestop doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .mend'",
                    "what to do about it, for a program"}},
      .exits = {exit_note(ExitStatus::kOk, "runs are possible"), exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kCannotStart, "something that every run needs is missing")},
      .handler = doctor,
  };
}

}  // namespace firestop::cli
