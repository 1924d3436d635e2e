#include "guest/export_repository.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "guest/export_script.h"

namespace firestop::guest {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxFacts = 16384;
constexpr size_t kMaxErrors = 8192;
constexpr size_t kMaxNotes = 20;

std::vector<std::string> environment(const std::string& base) {
  std::vector<std::string> env = {
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOME=/nonexistent",
      "LC_ALL=C",
      "BASE=" + base,
      "GIT_CONFIG_NOSYSTEM=1",
      "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_TERMINAL_PROMPT=0",
      "GIT_NO_REPLACE_OBJECTS=1",
      "GIT_GRAFT_FILE=/dev/null",
      "GIT_ALLOW_PROTOCOL=none",
      "GIT_AUTHOR_NAME=agent",
      "GIT_AUTHOR_EMAIL=agent@firestop.invalid",
      "GIT_COMMITTER_NAME=agent",
      "GIT_COMMITTER_EMAIL=agent@firestop.invalid",
  };
  constexpr std::pair<const char*, const char*> kConfiguration[] = {
      {"safe.directory", "*"},          {"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"},
      {"core.untrackedCache", "false"}, {"core.splitIndex", "false"},    {"core.bare", "false"},
      {"core.fileMode", "true"},        {"core.symlinks", "true"},       {"gc.auto", "0"},
      {"pack.packSizeLimit", "0"},      {"core.pager", "cat"},
  };
  size_t count = 0;
  for (const auto& [key, value] : kConfiguration) {
    env.push_back("GIT_CONFIG_KEY_" + std::to_string(count) + "=" + key);
    env.push_back("GIT_CONFIG_VALUE_" + std::to_string(count++) + "=" + value);
  }
  env.push_back("GIT_CONFIG_COUNT=" + std::to_string(count));
  return env;
}

struct Pipe {
  UniqueFd read_end, write_end;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    return true;
  }
};

// One line without control characters, at most `limit` bytes: it came from the sandbox and goes to a
// terminal.
std::string clean(std::string_view text, size_t limit) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.size() > limit) text = text.substr(text.size() - limit);
  std::string out;
  for (const char c : text) out.push_back(c >= 32 && c < 127 ? c : c == '\n' ? ' ' : '?');
  return out;
}

struct Talk {
  Pipe bundle, errors, facts;
  std::string said, told;
  uint64_t sent = 0;
};

// Until all three pipes end. What ends it early is in `fault`.
Result<void> listen(const ExportPlan& plan, Talk& talk,
                    const std::function<Result<void>(std::string_view)>& sink, std::string& fault) {
  auto deadline = Clock::now() + plan.repository_timeout;
  char buffer[65536];
  while (talk.bundle.read_end.valid() || talk.errors.read_end.valid() || talk.facts.read_end.valid()) {
    Pipe* const pipes[3] = {&talk.bundle, &talk.errors, &talk.facts};
    pollfd fds[3];
    for (size_t i = 0; i < 3; ++i) fds[i] = {pipes[i]->read_end.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int n = left <= 0 ? 0 : ::poll(fds, 3, static_cast<int>(std::min<long>(left, 1000000)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fault = "git took longer than " + std::to_string(plan.repository_timeout.count() / 1000) + " s";
      return {};
    }
    for (size_t i = 0; i < 3; ++i) {
      if (fds[i].revents == 0) continue;
      const ssize_t got = ::read(pipes[i]->read_end.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        pipes[i]->read_end.reset();
        continue;
      }
      const std::string_view data(buffer, static_cast<size_t>(got));
      if (i == 1) {
        talk.said.append(data);
        if (talk.said.size() > kMaxErrors) talk.said.erase(0, talk.said.size() - kMaxErrors);
      } else if (i == 2) {
        if (talk.told.size() < kMaxFacts) talk.told.append(data.substr(0, kMaxFacts - talk.told.size()));
      } else {
        talk.sent += data.size();
        if (talk.sent > plan.bundle_max) {
          fault = "its new commits have more than " + std::to_string(plan.bundle_max) + " bytes";
          return {};
        }
        // A slow reader is not the repository's fault.
        const auto before = Clock::now();
        TRY(sink(data));
        deadline += Clock::now() - before;
      }
    }
  }
  return {};
}

void read_facts(const Talk& talk, RepositoryOutcome& outcome) {
  std::string_view rest = talk.told;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line == "changed") outcome.repository.changed = true;
    if (line == "uncommitted") outcome.repository.uncommitted = true;
    if (line.starts_with("note ") && outcome.notes.size() < kMaxNotes)
      outcome.notes.push_back(clean(line.substr(5), 500));
    if (line.starts_with("error ") && outcome.repository.error.empty())
      outcome.repository.error = clean(line.substr(6), 500);
  }
}

}  // namespace

Result<RepositoryOutcome> export_repository(const ExportPlan& plan,
                                            const channel::RepositoryMount& repository,
                                            const StartInContainer& start,
                                            const std::function<Result<void>(std::string_view)>& sink) {
  RepositoryOutcome outcome;
  outcome.repository.path = repository.path;
  std::string& error = outcome.repository.error;
  Talk talk;
  if (!talk.bundle.open() || !talk.errors.open() || !talk.facts.open()) {
    error = "cannot make pipes";
    return outcome;
  }
  ContainerCommand command;
  command.argv = {"/bin/sh", "-c", kExportScript};
  command.environment = environment(repository.commit);
  command.directory = plan.workspace_inside + "/" + repository.path;
  command.descriptors = {
      {talk.bundle.write_end.get(), 1}, {talk.errors.write_end.get(), 2}, {talk.facts.write_end.get(), 3}};
  const auto started = start(command);
  if (!started) {
    error = started.error().message;
    return outcome;
  }
  for (Pipe* pipe : {&talk.bundle, &talk.errors, &talk.facts}) pipe->write_end.reset();
  std::string fault;
  const auto heard = listen(plan, talk, sink, fault);
  if (!fault.empty() || !heard) ::kill(*started, SIGKILL);
  int status = 0;
  while (::waitpid(*started, &status, 0) < 0 && errno == EINTR) {
  }
  TRY(heard);
  read_facts(talk, outcome);
  if (error.empty()) error = fault;
  if (error.empty() && status != 0) {
    error = "git ended with status " +
            std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (!talk.said.empty()) error += ": " + clean(talk.said, 400);
  }
  // A bundle that nobody announced, or an announcement without one, is as wrong as an error.
  if (error.empty() && outcome.repository.changed != (talk.sent > 0)) error = "its export is incomplete";
  return outcome;
}

}  // namespace firestop::guest
