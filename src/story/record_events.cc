#include "story/record_events.h"

#include <cstdio>
#include <ctime>

#include "base/path.h"
#include "evidence/line_reader.h"
#include "story/shell_words.h"

namespace firestop::story {
namespace {

constexpr size_t kMostLiving = 100000;  // processes that are remembered at one time
constexpr size_t kMostCommand = 4096;

uint32_t number(const evidence::Event& event, const char* key) {
  const int64_t value = event.data.int_or(key, 0);
  return value < 0 || value > UINT32_MAX ? 0 : static_cast<uint32_t>(value);
}

std::string bytes(const evidence::Event& event, const char* key) {
  const codec::Json* value = event.data.find(key);
  return value ? evidence::bytes_of(*value) : std::string();
}

void remember(const evidence::Event& event, RecordContext& context) {
  if (event.kind == "record.begin") {
    context.run = event.data.string_or("run", "");
    context.name = event.data.string_or("name", "");
    context.manifest_digest = event.data.string_or("manifest_digest", "");
    context.version = event.data.string_or("version", "");
  }
  const uint32_t pid = number(event, "pid");
  if (pid == 0 || (event.kind != "process.fork" && event.kind != "process.exec")) return;
  if (context.processes.size() >= kMostLiving && !context.processes.contains(pid)) return;
  KnownProcess& process = context.processes[pid];
  process.parent = number(event, "parent");
  if (event.kind == "process.fork") {
    if (const auto from = context.processes.find(process.parent); from != context.processes.end()) {
      process.file = from->second.file;
      process.command_line = from->second.command_line;
    }
    return;
  }
  process.file = bytes(event, "file");
  std::vector<std::string> argv;
  if (const auto* words = event.data.find("argv"); words && words->as_array())
    for (const auto& word : *words->as_array()) argv.push_back(evidence::bytes_of(word));
  process.command_line = quote_command(argv).substr(0, kMostCommand);
}

}  // namespace

const KnownProcess* RecordContext::process(const evidence::Event& event) const {
  const auto found = processes.find(number(event, "pid"));
  return found == processes.end() ? nullptr : &found->second;
}

Result<void> for_each_event(
    const std::string& directory,
    const std::function<Result<void>(const evidence::Event&, const RecordContext&)>& take) {
  TRY_ASSIGN(auto lines,
             evidence::LineReader::open(join_path(directory, "events.jsonl"), evidence::kMostLine));
  RecordContext context;
  while (true) {
    TRY_ASSIGN(const auto got, lines.next());
    const std::string where = "events.jsonl:" + std::to_string(lines.number());
    if (got == evidence::LineReader::Got::kTooLong)
      return fail("evidence.bad_event", where + ": longer than any event");
    if (got != evidence::LineReader::Got::kLine) return {};
    const auto event = evidence::parse_event(lines.line());
    if (!event) return wrap(event.error(), where);
    remember(*event, context);
    TRY(take(*event, context));
    if (event->kind == "process.exit") context.processes.erase(number(*event, "pid"));
  }
}

int64_t microseconds_of(const std::string& time) {
  std::tm utc{};
  int micros = 0;
  // SAFETY: %6d and the others are bounded; anything else in the text gives fewer than seven matches.
  const int read = std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ", &utc.tm_year, &utc.tm_mon,
                               &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &micros);
  if (read != 7) return 0;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<int64_t>(::timegm(&utc)) * 1000000 + micros;
}

}  // namespace firestop::story
