// Writes a record as fast as it can, for tests that kill it, fill its disk, or read what it wrote:
//
//   evidence_writer DIRECTORY CONFIG RUN EVENTS [CHECKPOINT_EVENTS [ANCHOR]]
//
// With EVIDENCE_WRITER_LOSES in the environment it says that it lost some. EVENTS 0: until it is killed.
// Prints "N CHECKPOINTED" lines to stdout, of the events accepted before each checkpoint that was written.
// Ends with 0, or 1 and the error's code on stderr.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "evidence/anchor.h"
#include "evidence/attest.h"
#include "evidence/log.h"

namespace firestop::evidence {
namespace {

Result<void> event(Log& log, uint64_t i) {
  if (i % 16 == 0) {
    TRY_ASSIGN(const auto stored, log.content().put("echo script " + std::to_string(i) + "\n"));
    return log.append(Vantage::kGuest, "code",
                      {{"pid", i},
                       {"at_us", i},
                       {"how", "argument"},
                       {"path", "/tmp/x" + std::to_string(i) + ".sh"},
                       {"interpreter", "/bin/sh"},
                       {"digest", stored.digest},
                       {"size", stored.size},
                       {"kept", stored.size},
                       {"writer", 1},
                       {"note", ""}});
  }
  return log.append(Vantage::kGuest, "process.fork", {{"pid", i + 2}, {"parent", 1}, {"at_us", i}});
}

Result<void> write(int argc, char** argv) {
  const std::string directory = argv[1], run = argv[3];
  const uint64_t events = std::strtoull(argv[4], nullptr, 10);
  LogLimits limits;
  if (argc > 5) limits.checkpoint_events = static_cast<uint32_t>(std::strtoul(argv[5], nullptr, 10));
  TRY_ASSIGN(const HostKey key, HostKey::load_or_make(argv[2]));
  Anchor given;
  if (argc > 6) {
    TRY_ASSIGN(given, open_anchor(argv[6]));
  }
  uint64_t told = 0;
  const auto tell = [&told](const Log& log) -> Result<void> {
    if (log.covered() == told) return {};
    while (!log.anchored()) ::usleep(1000);  // so that every so many events are a checkpoint
    told = log.covered();
    const std::string text = std::to_string(told) + "\n";
    if (::write(1, text.data(), text.size()) < 0) return fail_errno("evidence.write", "cannot tell");
    return {};
  };
  const codec::JsonObject begin{
      {"name", "made-up"}, {"manifest_digest", std::string(64, 'a')}, {"version", "0"}};
  TRY_ASSIGN(auto log, Log::create(directory, run, key, begin, limits, std::move(given)));
  TRY(tell(*log));
  TRY(log->append(Vantage::kGuest, "collectors",
                  {{"working", codec::JsonArray{"processes", "code"}}, {"missing", codec::JsonArray{}}}));
  for (uint64_t i = 0; events == 0 || i < events; ++i) {
    TRY(event(*log, i));
    TRY(tell(*log));
  }
  const bool loses = std::getenv("EVIDENCE_WRITER_LOSES") != nullptr;
  if (loses) TRY(log->append(Vantage::kGuest, "lost", {{"what", "files"}, {"count", 3}}));
  TRY(log->append(Vantage::kGuest, "collectors.done", {}));
  TRY(log->close(
      {{"status", 0}, {"reason", ""}, {"message", ""}, {"complete", true}, {"lost", 0}, {"alarms", 0}}));
  TRY(tell(*log));
  return write_attestation(directory, key);
}

}  // namespace
}  // namespace firestop::evidence

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is an error of write(2)
  if (auto written = firestop::evidence::write(argc, argv); !written) {
    (void)std::fprintf(stderr, "%s: %s\n", written.error().code.c_str(), written.error().message.c_str());
    return 1;
  }
  return 0;
}
