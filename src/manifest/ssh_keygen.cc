#include "manifest/ssh_keygen.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "jail/child_jail.h"

namespace firestop::manifest {
namespace {

constexpr int kFirstInput = 3;  // the inputs' descriptors in the child
constexpr size_t kMaxOutput = 1u << 20;
constexpr std::chrono::seconds kTimeout{30};
constexpr const char* kInstall = "install openssh-client";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::string(name) + "=" + value : std::string();
}

void keep(std::vector<std::string>& environment, const char* name) {
  if (auto setting = variable(name); !setting.empty()) environment.push_back(std::move(setting));
}

std::vector<std::string> base_environment() {
  std::vector<std::string> environment{"LC_ALL=C"};
  keep(environment, "PATH");
  keep(environment, "TZ");  // dates in allowed_signers are local time
  return environment;
}

// Async-signal-safe, in the child.
int confine(void*) {
  const auto set = [](__rlimit_resource resource, rlim_t value) {
    const rlimit limit{value, value};
    return ::setrlimit(resource, &limit) == 0;
  };
  return set(RLIMIT_CORE, 0) && set(RLIMIT_AS, 512u << 20) && set(RLIMIT_CPU, 20) &&
                 set(RLIMIT_FSIZE, kMaxOutput)
             ? 0
             : -1;
}

int without_core(void*) {
  const rlimit none{0, 0};
  return ::setrlimit(RLIMIT_CORE, &none);
}

Result<UniqueFd> memory_file(std::string_view text) {
  UniqueFd fd(::memfd_create("firestop", MFD_CLOEXEC));
  if (!fd.valid()) return fail_errno("signature.cannot_check", "cannot make a file in memory");
  TRY(write_all(fd.get(), text));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0)
    return fail_errno("signature.cannot_check", "cannot rewind a file in memory");
  return fd;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Unexpected cannot_run(std::string_view code, const Error& error) {
  return fail(code, "cannot run ssh-keygen: " + error.message, error.sys_errno == ENOENT ? kInstall : "");
}

}  // namespace

Result<KeygenOutcome> keygen_judge(const std::string& verb, const std::vector<std::string>& arguments,
                                   const std::vector<KeygenInput>& inputs, std::string_view message) {
  Command command;
  command.argv = {"ssh-keygen", "-Y", verb};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.env = base_environment();
  command.env->push_back("HOME=/nonexistent");
  command.before_exec = confine;
  jail::without_network(command);
  std::vector<UniqueFd> files;
  std::vector<std::string> paths;
  for (const auto& input : inputs) {
    TRY_ASSIGN(UniqueFd file, memory_file(input.text));
    const int number = kFirstInput + static_cast<int>(files.size());
    paths.push_back("/proc/self/fd/" + std::to_string(number));
    command.argv.insert(command.argv.end(), {input.option, paths.back()});
    command.descriptors.emplace_back(file.get(), number);
    files.push_back(std::move(file));
  }
  RunOptions options;
  options.input = message;
  options.output_limit = kMaxOutput;
  options.timeout = kTimeout;
  auto ran = run(std::move(command), options);
  if (!ran) return cannot_run("signature.cannot_check", ran.error());
  KeygenOutcome outcome{ran->status, std::move(ran->out), std::move(ran->err)};
  for (size_t i = 0; i < inputs.size(); ++i)
    outcome.err = replaced(std::move(outcome.err), paths[i], inputs[i].name);
  return outcome;
}

Result<KeygenOutcome> keygen_sign(const std::string& name_space, const std::string& key_file,
                                  std::string_view message) {
  Command command;
  command.argv = {"ssh-keygen", "-Y", "sign", "-n", name_space, "-f", key_file};
  command.env = base_environment();
  for (const char* name : {"HOME", "TERM", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
                           "SSH_SK_PROVIDER", "SSH_PKCS11_HELPER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
                           "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"})
    keep(*command.env, name);
  command.new_process_group = false;  // it may read a passphrase from the terminal
  command.before_exec = without_core;
  TRY_ASSIGN(const UniqueFd input, memory_file(message));
  TRY_ASSIGN(const UniqueFd output, memory_file(""));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("sign.failed", "cannot make a pipe");
  const UniqueFd said(ends[0]);
  UniqueFd saying(ends[1]);
  command.descriptors = {{input.get(), 0}, {output.get(), 1}, {saying.get(), 2}};
  auto child = spawn(command);
  if (!child) return cannot_run("sign.failed", child.error());
  saying.reset();
  KeygenOutcome outcome;
  const bool person = ::isatty(STDERR_FILENO) == 1;
  char piece[4096];
  while (true) {
    const ssize_t n = ::read(said.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const std::string_view text(piece, static_cast<size_t>(n));
    if (outcome.err.size() < kMaxOutput) outcome.err += text;
    if (person) (void)write_all(STDERR_FILENO, text);
  }
  outcome.status = child->wait();
  if (::lseek(output.get(), 0, SEEK_SET) != 0) return fail_errno("sign.failed", "cannot rewind a file");
  TRY_ASSIGN(outcome.out, read_all(output.get(), kMaxOutput));
  return outcome;
}

}  // namespace firestop::manifest
