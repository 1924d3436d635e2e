#include "credentials/source_process.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "credentials/source.h"
#include "credentials/source_wire.h"

namespace firestop::credentials {
namespace {

constexpr size_t kMostConfig = 128u << 10;
constexpr std::string_view kReady = "ready", kFailed = "failed ";

// One message, or "" when the other side is gone.
std::string receive(int socket, size_t most) {
  std::string out(most, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(socket, out.data(), out.size(), 0);
  } while (got < 0 && errno == EINTR);
  out.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return out;
}

bool send_message(int socket, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

// No core file, and nobody may look into this process (/proc, ptrace), not even with the same user id.
void close_up() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const struct rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

bool answer(int socket, Sources& sources, const std::string& name) {
  auto packet = Secret::make(kMostSourceAnswer);
  if (!packet) return false;
  size_t size = 0;
  if (const auto value = sources.get(name))
    size = write_answer(*packet, value->secret->reveal(), value->valid);
  else
    size = write_refusal(*packet, value.error().message);
  return send_message(socket, packet->reveal().substr(0, size));
}

}  // namespace

int source_main(int socket) {
  close_up();
  const auto config = codec::parse_json(receive(socket, kMostConfig));
  auto bindings = config ? bindings_from_json(*config) : Result<Bindings>(Unexpected(config.error()));
  if (!bindings) {
    send_message(socket, std::string(kFailed) + bindings.error().message);
    return 1;
  }
  Sources sources(std::move(*bindings));
  if (const auto checked = sources.check(); !checked) {
    send_message(socket, std::string(kFailed) + checked.error().message);
    return 1;
  }
  if (!send_message(socket, kReady)) return 1;
  while (true) {
    const std::string name = receive(socket, kMostName);
    if (name.empty()) return 0;
    if (!answer(socket, sources, name)) return 1;
  }
}

Result<SourceProcess> start_source_process(const std::vector<std::string>& self, const Bindings& bindings) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return fail_errno("credential.source", "no socket for the source of credentials");
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  Command command{.argv = self};
  command.descriptors = {{theirs.get(), kSourceFd}};
  TRY_ASSIGN(Child child, spawn(command));
  theirs.reset();  // or its end would not be seen
  SourceProcess out{std::move(child), std::move(ours)};
  const auto give_up = [&](std::string why) {
    out.child.kill_and_wait();
    return fail("credential.unavailable", std::move(why));
  };
  if (!send_message(out.socket.get(), codec::write_json(to_json(bindings))))
    return give_up("the source of credentials did not start");
  const std::string said = receive(out.socket.get(), 4096);
  if (said == kReady) return out;
  return give_up(said.starts_with(kFailed) ? said.substr(kFailed.size())
                                           : "the source of credentials did not start");
}

void wipe_environment(const Bindings& bindings) {
  const auto wipe_variable = [](const Source& source) {
    if (source.kind != Source::Kind::kEnv) return;
    char* value = ::getenv(source.place.c_str());  // NOLINT(concurrency-mt-unsafe): before there are threads
    if (!value) return;
    ::explicit_bzero(value, std::strlen(value));  // in place: what /proc/PID/environ shows
    ::unsetenv(source.place.c_str());             // NOLINT(concurrency-mt-unsafe)
  };
  for (const auto& [name, binding] : bindings) {
    if (!binding.oauth) {
      wipe_variable(binding.source);
      continue;
    }
    wipe_variable(binding.oauth->refresh_token);
    if (binding.oauth->client_secret) wipe_variable(*binding.oauth->client_secret);
  }
}

}  // namespace firestop::credentials
