// Any bytes as an agent's trace, in every format: what is read stays within bounds, and holding it against a
// small record ends.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "base/file.h"
#include "check.h"
#include "reconcile/reconcile.h"

using namespace firestop;
using namespace firestop::reconcile;

namespace {

story::Process process(uint32_t pid, size_t parent, std::vector<std::string> argv) {
  story::Process out;
  out.pid = pid;
  out.parent = parent;
  out.started_us = pid;
  story::Execution exec;
  exec.file = argv[0];
  exec.cwd = "/workspace";
  exec.from_image = true;
  exec.argv = std::move(argv);
  out.execs.push_back(std::move(exec));
  return out;
}

story::Story story_of_a_run() {
  story::Story out;
  out.roots = {0};
  out.processes = {process(1, story::kNone, {"/usr/bin/agent"}),
                   process(2, 0, {"/bin/bash", "-lc", "make test"}), process(3, 1, {"/usr/bin/make", "test"}),
                   process(4, 0, {"/bin/sh", "./x.sh", "a"})};
  out.processes[0].children = {1, 3};
  out.processes[1].children = {2};
  story::Script script;
  script.process = 3;
  script.how = "argument";
  script.path = "/workspace/x.sh";
  script.digest = std::string(64, 'a');
  out.scripts.push_back(script);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr TraceFormat kFormats[] = {TraceFormat::kAuto,  TraceFormat::kClaudeCode,
                                      TraceFormat::kCodex, TraceFormat::kOpenAiAgents,
                                      TraceFormat::kOtel,  TraceFormat::kJsonl};
  const auto format = kFormats[data[0] % std::size(kFormats)];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const UniqueFd fd(::memfd_create("trace", MFD_CLOEXEC));
  if (!write_all(fd.get(), text) || ::lseek(fd.get(), 0, SEEK_SET) != 0) return 0;
  const auto trace = read_trace(fd.get(), "trace", format);
  if (!trace) return 0;
  FUZZ_CHECK(trace->claims.size() <= kMostClaims);
  for (const Claim& claim : trace->claims) FUZZ_CHECK(claim.line > 0);
  static const story::Story kStory = story_of_a_run();
  const auto account = reconcile::reconcile(kStory, *trace, {});
  FUZZ_CHECK(account.claims == trace->claims.size());
  for (const Finding& finding : account.findings) FUZZ_CHECK(!finding.why.empty());
  (void)to_text(account, kStory, *trace, [](std::string_view words) { return std::string(words); });
  return 0;
}
