#include "cli/record_view.h"

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/path.h"
#include "base/units.h"
#include "cli/record_place.h"
#include "cli/terminal.h"

namespace firestop::cli {
namespace {

using story::Story;

constexpr size_t kMostName = 24;  // columns of a process's name in a table

}  // namespace

Result<ReadRecord> open_record(const std::string& word, Context& context) {
  TRY_ASSIGN(const RecordPlace place, find_record(word, context));
  auto story = story::read_story(place.directory);
  if (!story && story.error().code == "evidence.not_found")
    return fail("run.no_record", word + " has no record", "runs that could not start have none");
  if (!story) return tl::unexpected(story.error());
  if (!story->note.empty()) context.terminal.note(story->note);
  return ReadRecord{place.directory, place.run.empty() ? word : place.run, std::move(*story)};
}

std::string time_of_day(int64_t us) {
  const std::time_t seconds = us / 1000000;
  std::tm utc{};
  if (us <= 0 || !::gmtime_r(&seconds, &utc)) return "-";
  char text[32], whole[40];
  (void)std::strftime(text, sizeof text, "%H:%M:%S", &utc);
  (void)std::snprintf(whole, sizeof whole, "%s.%03d", text, static_cast<int>(us / 1000 % 1000));
  return whole;
}

std::string took_text(int64_t from_us, int64_t to_us) {
  if (from_us <= 0 || to_us < from_us) return "-";
  return format_duration(std::chrono::milliseconds((to_us - from_us) / 1000));
}

std::string exit_text(const story::Process& process) {
  if (!process.ended) return "-";
  if (WIFEXITED(process.status)) return std::to_string(WEXITSTATUS(process.status));
  if (!WIFSIGNALED(process.status)) return "?";
  const char* name = ::sigabbrev_np(WTERMSIG(process.status));
  return name ? name : "signal " + std::to_string(WTERMSIG(process.status));
}

namespace {

std::string with_pid(const Story& story, size_t process, const std::string& name) {
  if (process >= story.processes.size()) return "-";
  const std::string pid = std::to_string(story.processes[process].pid);
  return name == "pid " + pid ? name : first_columns(printable(name), kMostName) + " (" + pid + ")";
}

}  // namespace

std::string process_text(const Story& story, size_t process) {
  return with_pid(story, process, story::name_of(story, process));
}

std::string runner_text(const Story& story, const story::Script& script) {
  return with_pid(story, script.process, story::name_of_runner(story, script));
}

std::string command_text(const story::Execution& execution, size_t most) {
  std::string out;
  for (const auto& word : execution.argv) {
    out += (out.empty() ? "" : " ") + shell_word(word);
    if (out.size() > most) break;
  }
  if (execution.argv.empty()) out = shell_word(execution.file);
  const bool cut = execution.cut || out.size() > most;
  out = printable(std::string_view(out).substr(0, most));
  return cut ? out + " ..." : out;
}

codec::Json process_json(const Story& story, size_t process) {
  if (process >= story.processes.size()) return {};
  return codec::JsonObject{{"index", static_cast<int64_t>(process)},
                           {"pid", story.processes[process].pid},
                           {"name", evidence::json_of_bytes(story::name_of(story, process))}};
}

}  // namespace firestop::cli
