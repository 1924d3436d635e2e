#include "workspace/git.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "jail/child_jail.h"

namespace firestop::workspace {
namespace {

// Command scope: above every configuration file. The protocol whitelist is in the environment because a
// repository's protocol.NAME.allow would beat protocol.allow.
constexpr std::pair<const char*, const char*> kConfiguration[] = {
    {"safe.directory", "*"},
    {"core.hooksPath", "/dev/null"},
    {"core.fsmonitor", "false"},
    {"core.alternateRefsCommand", ":"},
    {"core.commitGraph", "false"},
    {"core.quotePath", "false"},
    {"core.packedGitWindowSize", "64m"},
    {"core.packedGitLimit", "512m"},
    {"core.bigFileThreshold", "8m"},
    {"core.multiPackIndex", "true"},
    {"protocol.allow", "never"},
    {"gc.auto", "0"},
    {"maintenance.auto", "false"},
    {"pack.packSizeLimit", "0"},
    {"pack.threads", "2"},
    {"pack.writeReverseIndex", "true"},
    {"advice.detachedHead", "false"},
    {"advice.graftFileDeprecated", "false"},
};

std::vector<std::string> environment(const std::string& git_dir) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> env = {
      std::string("PATH=") + (path ? path : "/usr/bin:/bin"),
      "HOME=/nonexistent",
      "LC_ALL=C",
      "GIT_CONFIG_NOSYSTEM=1",
      "GIT_CONFIG_SYSTEM=/dev/null",
      "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_ATTR_NOSYSTEM=1",
      "GIT_TERMINAL_PROMPT=0",
      "GIT_OPTIONAL_LOCKS=0",
      "GIT_NO_REPLACE_OBJECTS=1",
      "GIT_NO_LAZY_FETCH=1",
      "GIT_GRAFT_FILE=/dev/null",
      "GIT_ALLOW_PROTOCOL=none",
      "GIT_ASKPASS=/bin/false",
      "GIT_SSH_COMMAND=/bin/false",
      "GIT_COMMITTER_NAME=firestop",
      "GIT_COMMITTER_EMAIL=firestop@firestop.invalid",
  };
  size_t count = 0;
  for (const auto& [key, value] : kConfiguration) {
    env.push_back("GIT_CONFIG_KEY_" + std::to_string(count) + "=" + key);
    env.push_back("GIT_CONFIG_VALUE_" + std::to_string(count++) + "=" + value);
  }
  env.push_back("GIT_CONFIG_COUNT=" + std::to_string(count));
  if (!git_dir.empty()) env.push_back("GIT_DIR=" + git_dir);
  return env;
}

int apply_limits(void* context) {
  const auto& limits = *static_cast<const GitLimits*>(context);
  const auto set = [](__rlimit_resource resource, rlim_t value) {
    const rlimit limit{value, value};
    return value == 0 || ::setrlimit(resource, &limit) == 0;
  };
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  return set(RLIMIT_AS, limits.address_space) && set(RLIMIT_FSIZE, limits.file_size) &&
                 set(RLIMIT_CPU, limits.cpu_seconds)
             ? 0
             : -1;
}

Result<UniqueFd> memory_file(const char* name) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) return fail_errno("git.start", "cannot make a memory file");
  return fd;
}

std::string tail_of(int fd) {
  constexpr off_t kTail = 16384;
  const off_t end = ::lseek(fd, 0, SEEK_END);
  std::string text(static_cast<size_t>(std::min(end, kTail)), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), std::max<off_t>(0, end - kTail));
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::vector<std::pair<int, int>> descriptors(int in, int out, int error) {
  std::vector<std::pair<int, int>> list;
  if (in >= 0) list.emplace_back(in, 0);
  if (out >= 0) list.emplace_back(out, 1);
  list.emplace_back(error, 2);
  return list;
}

using Clock = std::chrono::steady_clock;

// False when the time is over.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  pollfd one{fd, events, 0};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int n = ::poll(&one, 1, static_cast<int>(std::clamp<long>(left, 0, 1000000)));
    if (n > 0) return true;
    if (left <= 0 && n == 0) return false;
  }
}

Unexpected too_long(const std::string& what, std::chrono::milliseconds limit) {
  return fail("process.timeout",
              "git " + what + ": took longer than " + std::to_string(limit.count() / 1000) + " s");
}

// In its jail, or at least without a network.
Result<Child> start_bounded(const GitPlace& place, const std::vector<std::string>& arguments,
                            std::vector<std::pair<int, int>> descriptors, const GitLimits& limits) {
  Command command = git_command(place.git_dir, arguments);
  command.descriptors = std::move(descriptors);
  if (place.jail)
    return place.jail->start(std::move(command),
                             {limits.address_space, limits.file_size, limits.cpu_seconds});
  GitLimits copy = limits;
  jail::without_network(command);
  command.before_exec = apply_limits;
  command.before_exec_context = &copy;
  return spawn(command);
}

}  // namespace

Command git_command(const std::string& git_dir, const std::vector<std::string>& arguments) {
  Command command;
  command.argv = {"git"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.env = environment(git_dir);
  return command;
}

Result<GitOutcome> run_git(const std::string& git_dir, const std::vector<std::string>& arguments,
                           const std::string& input, uint64_t output_limit) {
  RunOptions options;
  options.input = input;
  options.output_limit = output_limit;
  TRY_ASSIGN(RunResult result, run(git_command(git_dir, arguments), options));
  return GitOutcome{result.status, std::move(result.out), std::move(result.err)};
}

Result<GitOutcome> run_git_on(const GitPlace& place, const std::vector<std::string>& arguments, int in,
                              int out, const GitLimits& limits) {
  TRY_ASSIGN(const UniqueFd error, memory_file("git-stderr"));
  TRY_ASSIGN(Child child, start_bounded(place, arguments, descriptors(in, out, error.get()), limits));
  if (!wait_for(child.pidfd.get(), POLLIN, Clock::now() + limits.timeout)) {
    child.kill_and_wait();
    return too_long(arguments.front(), limits.timeout);
  }
  GitOutcome outcome;
  outcome.status = child.wait();
  outcome.error = tail_of(error.get());
  return outcome;
}

Result<std::string> git_checked(std::string_view code, const std::string& git_dir,
                                const std::vector<std::string>& arguments, const std::string& input,
                                uint64_t output_limit) {
  TRY_ASSIGN(GitOutcome outcome, run_git(git_dir, arguments, input, output_limit));
  if (outcome.ok()) return std::move(outcome.out);
  return fail(code, "git " + arguments.front() + ": " + describe_status(outcome.status) + ": " +
                        last_words(outcome.error));
}

Result<void> git_records(std::string_view code, const GitPlace& place,
                         const std::vector<std::string>& arguments, int input, char separator,
                         size_t record_limit, const std::function<Result<void>(std::string_view)>& record) {
  TRY_ASSIGN(const UniqueFd error, memory_file("git-stderr"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("git.start", "cannot make a pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  GitLimits limits;
  limits.cpu_seconds = 600;
  limits.address_space = 8ull << 30;
  limits.timeout = std::chrono::minutes(20);
  TRY_ASSIGN(Child child,
             start_bounded(place, arguments, descriptors(input, write_end.get(), error.get()), limits));
  const auto deadline = Clock::now() + limits.timeout;
  write_end.reset();
  std::string buffer;
  std::vector<char> piece(65536);
  Result<void> failed;
  while (failed) {
    if (!wait_for(read_end.get(), POLLIN, deadline)) {
      failed = too_long(arguments.front(), limits.timeout);
      break;
    }
    const ssize_t n = ::read(read_end.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    buffer.append(piece.data(), static_cast<size_t>(n));
    size_t from = 0;
    for (size_t end; failed && (end = buffer.find(separator, from)) != std::string::npos; from = end + 1)
      failed = record(std::string_view(buffer).substr(from, end - from));
    buffer.erase(0, from);
    if (buffer.size() > record_limit)
      failed = fail(code, "git " + arguments.front() + ": a record is too long");
  }
  // What closed its output may still not end.
  if (failed && !wait_for(child.pidfd.get(), POLLIN, deadline))
    failed = too_long(arguments.front(), limits.timeout);
  if (!failed) {
    child.kill_and_wait();
    return failed;
  }
  const int status = child.wait();
  if (status != 0)
    return fail(code, "git " + arguments.front() + ": " + describe_status(status) + ": " +
                          last_words(tail_of(error.get())));
  if (!buffer.empty()) return fail(code, "git " + arguments.front() + ": its output ends inside a record");
  return {};
}

Result<UniqueFd> temporary_input(std::string_view data) {
  TRY_ASSIGN(UniqueFd fd, memory_file("git-stdin"));
  TRY(write_all(fd.get(), data));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return fail_errno("git.start", "cannot rewind a memory file");
  return fd;
}

Result<ObjectReader> ObjectReader::start(const GitPlace& place) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return fail_errno("git.start", "cannot make a pipe");
  const UniqueFd in_read(in[0]);
  UniqueFd in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return fail_errno("git.start", "cannot make a pipe");
  UniqueFd out_read(out[0]);
  const UniqueFd out_write(out[1]);
  ::fcntl(out[0], F_SETPIPE_SZ, 1 << 20);
  ObjectReader reader;
  const std::vector<std::string> arguments = {"cat-file", "--batch"};
  if (place.jail) {
    GitLimits limits;
    limits.cpu_seconds = 600;
    limits.address_space = 8ull << 30;
    TRY_ASSIGN(reader.child_, start_bounded(place, arguments, {{in[0], 0}, {out[1], 1}}, limits));
  } else {
    Command command = git_command(place.git_dir, arguments);
    command.descriptors = {{in[0], 0}, {out[1], 1}};
    TRY_ASSIGN(reader.child_, spawn(command));
  }
  reader.in_ = std::move(in_write);
  reader.out_ = std::move(out_read);
  return reader;
}

ObjectReader::~ObjectReader() {
  if (child_.pidfd.valid()) child_.kill_and_wait();
}

Result<void> ObjectReader::fill() {
  if (used_ > 0) buffer_.erase(0, std::exchange(used_, 0));
  if (!wait_for(out_.get(), POLLIN, Clock::now() + std::chrono::minutes(10)))
    return too_long("cat-file", std::chrono::minutes(10));
  char piece[65536];
  ssize_t n;
  while ((n = ::read(out_.get(), piece, sizeof piece)) < 0 && errno == EINTR) {
  }
  if (n <= 0) return fail("git.read", "git cat-file ended early", "check the repository with: git fsck");
  buffer_.append(piece, static_cast<size_t>(n));
  return {};
}

Result<ObjectReader::Header> ObjectReader::stream(const std::string& id,
                                                  const std::function<Result<void>(const Header&)>& begin,
                                                  const std::function<Result<void>(std::string_view)>& sink) {
  TRY(write_all(in_.get(), id + "\n"));
  size_t end;
  while ((end = buffer_.find('\n', used_)) == std::string::npos) {
    if (buffer_.size() - used_ > 4096) return fail("git.read", "git cat-file: a header is too long");
    TRY(fill());
  }
  const std::string line = buffer_.substr(used_, end - used_);
  used_ = end + 1;
  // "ID TYPE SIZE" or "ID missing".
  const size_t first = line.find(' ');
  const size_t second = first == std::string::npos ? first : line.find(' ', first + 1);
  if (second == std::string::npos)
    return fail(
        "git.missing_objects", "object " + id + " is not in the repository",
        "a partial clone lacks objects: fetch them all first (git fetch --refetch --filter=blob:limit=1t)");
  Header header{line.substr(first + 1, second - first - 1),
                std::strtoull(line.c_str() + second + 1, nullptr, 10)};
  TRY(begin(header));
  uint64_t left = header.size;
  while (left > 0) {
    if (buffer_.size() == used_) TRY(fill());
    const size_t take = static_cast<size_t>(std::min<uint64_t>(left, buffer_.size() - used_));
    TRY(sink(std::string_view(buffer_).substr(used_, take)));
    used_ += take;
    left -= take;
  }
  if (buffer_.size() == used_) TRY(fill());
  if (buffer_[used_++] != '\n') return fail("git.read", "git cat-file: lost its place at object " + id);
  return header;
}

Result<std::string> ObjectReader::read(const std::string& id, std::string_view type, uint64_t limit) {
  std::string data;
  const auto begin = [&](const Header& header) -> Result<void> {
    if (header.type != type) return fail("git.read", "object " + id + " is a " + header.type);
    if (header.size > limit)
      return fail("git.read", "object " + id + " has " + std::to_string(header.size) + " bytes");
    data.reserve(static_cast<size_t>(header.size));
    return {};
  };
  TRY(stream(id, begin, [&](std::string_view piece) -> Result<void> {
    data.append(piece);
    return {};
  }));
  return data;
}

bool is_object_id(std::string_view text, std::string_view object_format) {
  return text.size() == (object_format == "sha256" ? 64u : 40u) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string to_binary(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return out;
}

std::string last_words(std::string_view error) {
  while (!error.empty() && error.back() == '\n') error.remove_suffix(1);
  if (error.size() > 1000) error = error.substr(error.size() - 1000);
  std::string line;
  for (const char c : error)
    line += c == '\n' ? std::string("; ") : std::string(1, c < 32 || c == 127 ? '?' : c);
  return line.empty() ? "no message" : line;
}

}  // namespace firestop::workspace
