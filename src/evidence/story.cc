#include "evidence/story.h"

#include <string_view>

#include "base/path.h"
#include "evidence/event_lines.h"
#include "evidence/story_builder.h"

namespace firestop::evidence {

Result<Story> read_story(const std::string& directory) {
  TRY_ASSIGN(auto lines, EventLines::open(directory));
  StoryBuilder builder;
  std::string note;
  const auto stop = [&](const std::string& why) {
    note = "events.jsonl:" + std::to_string(lines.line()) + ": " + why + "; what follows was not read";
  };
  while (note.empty()) {
    const auto line = lines.next();
    if (!line && line.error().code == "evidence.unreadable") return tl::unexpected(line.error());
    if (!line) {
      stop(line.error().message);
      break;
    }
    if (!*line) break;
    auto event = parse_event(**line);
    if (!event)
      stop(event.error().message);
    else if (lines.bytes() > kMostEventsBytes)
      stop("more than can be read");
    else
      builder.take(std::move(*event));
  }
  Story story = builder.finish();
  story.note = std::move(note);
  return story;
}

const Execution* program_of(const Story& story, size_t process) {
  // Copies of copies, each without a program of its own: a deep row of them is nobody's program.
  constexpr size_t kMostCopies = 256;
  for (size_t i = 0; i < kMostCopies && process < story.processes.size(); ++i) {
    const Process& each = story.processes[process];
    if (!each.execs.empty()) return &each.execs.back();
    process = each.parent;
  }
  return nullptr;
}

std::string name_of(const Story& story, size_t process) {
  if (process >= story.processes.size()) return "";
  const Execution* program = program_of(story, process);
  const std::string name = program ? std::string(file_name(program->file)) : "";
  return name.empty() ? "pid " + std::to_string(story.processes[process].pid) : name;
}

}  // namespace firestop::evidence
