// Reading a run's record, and how what is in it looks.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "codec/json.h"
#include "story/story.h"

namespace firestop::cli {

// A record of those that find_record() finds, read; a note about what could not be read goes to stderr.
// "run.no_record".
struct ReadRecord {
  std::string directory;
  std::string word;  // how the run was named
  story::Story story;
};
Result<ReadRecord> open_record(const std::string& word, Context& context);

std::string time_of_day(int64_t us);                                  // "20:01:02.345" UTC; "-" for 0
std::string took_text(int64_t from_us, int64_t to_us);                // "1.2s", "-" where one is not known
std::string exit_text(const story::Process& process);                 // "0", "1", "KILL", "-" while it lives
std::string process_text(const story::Story& story, size_t process);  // "make (12)", "-" for none
std::string runner_text(const story::Story& story, const story::Script& script);
// argv as a shell would have to be given it, at most `most` bytes; the file where there is no argv.
std::string command_text(const story::Execution& execution, size_t most);
// {"pid", "name", "index"} or null
codec::Json process_json(const story::Story& story, size_t process);

}  // namespace firestop::cli
