#include "story/story.h"

#include <limits>
#include <string_view>

#include "base/path.h"
#include "evidence/line_reader.h"
#include "story/story_builder.h"

namespace firestop::story {

Result<Story> read_story(const std::string& directory) {
  TRY_ASSIGN(auto lines,
             evidence::LineReader::open(join_path(directory, "events.jsonl"), evidence::kMostLine));
  StoryBuilder builder;
  std::string note;
  uint64_t bytes = 0;
  const auto stop = [&](const std::string& why) {
    note = "events.jsonl:" + std::to_string(lines.number()) + ": " + why + "; what follows was not read";
  };
  while (note.empty()) {
    TRY_ASSIGN(const auto got, lines.next());
    if (got == evidence::LineReader::Got::kTooLong) stop("longer than any event is");
    if (got != evidence::LineReader::Got::kLine) break;
    bytes += lines.line().size() + 1;
    auto event = evidence::parse_event(lines.line());
    if (!event)
      stop(event.error().message);
    else if (bytes > kMostEventsBytes)
      stop("more than can be read");
    else
      builder.take(std::move(*event));
  }
  Story story = builder.finish();
  story.note = std::move(note);
  return story;
}

const Execution* program_at(const Story& story, size_t process, int64_t at_us) {
  // Copies of copies, each without a program of its own: a deep row of them is nobody's program.
  constexpr size_t kMostCopies = 256;
  for (size_t i = 0; i < kMostCopies && process < story.processes.size(); ++i) {
    const Process& each = story.processes[process];
    for (auto execution = each.execs.rbegin(); execution != each.execs.rend(); ++execution)
      if (execution->at_us <= at_us) return &*execution;
    process = each.parent;
  }
  return nullptr;
}

const Execution* program_of(const Story& story, size_t process) {
  return program_at(story, process, std::numeric_limits<int64_t>::max());
}

namespace {

std::string name_or_pid(const Story& story, size_t process, const Execution* program) {
  if (process >= story.processes.size()) return "";
  const std::string name = program ? std::string(file_name(program->file)) : "";
  return name.empty() ? "pid " + std::to_string(story.processes[process].pid) : name;
}

}  // namespace

std::string name_of(const Story& story, size_t process) {
  return name_or_pid(story, process, program_of(story, process));
}

std::string name_of_runner(const Story& story, const Script& script) {
  // What is executed itself is told with its exec, a moment before it or after.
  const bool executed = script.how == "program" || script.how == "script";
  const Execution* program = executed ? nullptr : program_at(story, script.process, script.at_us);
  return program ? name_or_pid(story, script.process, program) : name_of(story, script.process);
}

}  // namespace firestop::story
