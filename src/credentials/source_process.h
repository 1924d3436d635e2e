// A process that does one thing: it has the operator's sources, and says a credential's value to the one who
// holds its socket. It is started before the sandbox's other processes, with the operator's environment; the
// egress process gets the other end of the socket, and so needs neither programs nor files.
//
//   who starts it: the bindings, JSON, one message            it: "ready", or "failed" and why
//   then the egress process: a credential's name, a message   it: an answer, one message, in order
//
// Sockets are of type SOCK_SEQPACKET: a message is one.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/result.h"
#include "credentials/bindings.h"
#include "credentials/vault.h"

namespace firestop::credentials {

inline constexpr int kSourceFd = 3;  // its descriptor

// What the process does, until its socket is closed. Its exit status.
int source_main(int socket);

struct SourceProcess {
  Child child;      // dies with its starter's thread
  UniqueFd socket;  // for the egress process
};
// `self`: the program and hidden command that calls source_main(kSourceFd). Returns once every value was
// read; errors are source_main's, "credential.unavailable".
Result<SourceProcess> start_source_process(const std::vector<std::string>& self, const Bindings& bindings);

// Overwrites the values of these bindings' variables in our own environment, so that no process but the
// source has them: to be called once it runs.
void wipe_environment(const Bindings& bindings);

// The egress process's side. Values are kept as long as the source says, in locked memory.
std::unique_ptr<Vault> make_source_vault(Loop& loop, UniqueFd socket);

}  // namespace firestop::credentials
