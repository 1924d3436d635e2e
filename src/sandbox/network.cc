#include "sandbox/network.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "credentials/source_process.h"

namespace firestop::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kReadyLimit{60000}, kSelfTestLimit{20000}, kEndLimit{3000};
constexpr milliseconds kMeasureEvery{250};
constexpr const char* kProgram = "/proc/self/exe";

Error gone(const std::string& why) {
  return Error{"egress.gone", "the sandbox's network process " + why + "; the command was ended", {}, 0};
}

// Ends with whoever started it, unless it was handed on.
struct Started {
  Child child;
  Started() = default;
  ~Started() {
    if (child.pidfd.valid()) child.kill_and_wait();
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
};

}  // namespace

Result<std::unique_ptr<Network>> Network::make(egress::ProcessConfig config,
                                               const credentials::Bindings& bindings,
                                               const manifest::NetworkLimits& limits) {
  TRY_ASSIGN(egress::Seam seam,
             egress::make_seam({.rate = limits.rate.value_or(0), .bytes = limits.bytes.value_or(0)}));
  // Before all others: it alone sees the operator's environment as it was.
  Started sources;
  UniqueFd socket;
  if (!bindings.empty()) {
    TRY_ASSIGN(auto fresh, credentials::start_source_process({kProgram, "__credentials"}, bindings));
    sources.child = std::move(fresh.child);
    socket = std::move(fresh.socket);
    credentials::wipe_environment(bindings);
  }
  config.has_sources = !bindings.empty();
  TRY_ASSIGN(auto process,
             egress::EgressProcess::start(kProgram, config, seam, std::move(socket), kReadyLimit));
  TRY(egress::self_test(process, seam.tap.get(), kSelfTestLimit));
  return std::unique_ptr<Network>(
      new Network(std::move(seam), std::move(sources.child), std::move(process), limits.bytes.value_or(0)));
}

Network::Network(egress::Seam seam, Child sources, egress::EgressProcess process, uint64_t most_bytes)
    : seam_(std::move(seam)),
      sources_(std::move(sources)),
      process_(std::move(process)),
      most_bytes_(most_bytes) {
  summary_.used = true;
  summary_.landlock = process_.ready().landlock;
}

Network::~Network() {
  finish();
  if (sources_.pidfd.valid()) sources_.kill_and_wait();
}

void Network::watch(Loop& loop, Watcher watcher) {
  watcher_ = std::move(watcher);
  link_watch_ = loop.watch(process_.link_fd(), Loop::kReadable, [this](int) { take(); });
  exit_watch_ = loop.watch(process_.exit_fd(), Loop::kReadable, [this](int) {
    exit_watch_.reset();
    take();
    if (!over_) fail_with(gone("ended: " + describe_status(process_.kill())));
  });
  if (sources_.pidfd.valid())
    sources_watch_ = loop.watch(sources_.pidfd.get(), Loop::kReadable, [this](int) {
      fail_with(Error{
          "credential.gone", "the process that has the credentials ended; the command was ended", {}, 0});
    });
  if (most_bytes_ > 0) meter_watch_ = loop.every(kMeasureEvery, [this] { measure(); });
}

void Network::unwatch() {
  link_watch_.reset();
  exit_watch_.reset();
  sources_watch_.reset();
  meter_watch_.reset();
  watcher_ = {};
}

void Network::take() {
  const auto state = process_.receive({[this](const egress::Crossing& crossing) { record(crossing); },
                                       [this](uint64_t count) { lost(count); }});
  if (!state) return fail_with(state.error());
  if (*state == egress::EgressProcess::State::kEnded)
    fail_with(gone("ended: " + describe_status(process_.kill())));
}

void Network::measure() {
  const auto bytes = egress::bytes_of(seam_.meter.get());
  if (!bytes) return fail_with(bytes.error());
  summary_.bytes = *bytes;
  if (*bytes < most_bytes_) return;
  meter_watch_.reset();
  if (watcher_.capped) watcher_.capped();
}

void Network::fail_with(Error error) {
  if (over_) return;
  over_ = true;
  process_.kill();
  const auto failed = watcher_.failed;
  unwatch();
  if (failed) failed(std::move(error));
}

void Network::record(const egress::Crossing& crossing) {
  if (crossing.kind == egress::Crossing::Kind::kAlarm) ++summary_.alarms;
  if (crossing.verdict == "allowed") ++summary_.allowed;
  if (crossing.verdict == "denied") ++summary_.denied;
  if (crossing.verdict == "failed") ++summary_.failed;
  if (told_) told_(crossing);
  if (crossing.kind == egress::Crossing::Kind::kAlarm && watcher_.alarm) {
    const auto alarm = watcher_.alarm;  // may end the watch
    alarm(crossing.credential);
  }
}

void Network::finish() {
  if (over_) return;
  const auto watcher = watcher_;  // an alarm may still be on its way
  unwatch();
  watcher_ = watcher;
  if (const auto bytes = egress::bytes_of(seam_.meter.get())) summary_.bytes = *bytes;
  process_.finish();
  const auto deadline = Clock::now() + kEndLimit;
  while (!over_) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd wait{process_.link_fd(), POLLIN, 0};
    if (left <= 0) break;
    if (::poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
    const auto state = process_.receive({[this](const egress::Crossing& crossing) { record(crossing); },
                                         [this](uint64_t count) { lost(count); }});
    if (!state) return fail_with(state.error());
    if (*state != egress::EgressProcess::State::kEnded) continue;
    // Its link may close a moment before it has ended: killed then, it would seem to have broken.
    pollfd ended{process_.exit_fd(), POLLIN, 0};
    (void)::poll(&ended, 1, static_cast<int>(milliseconds(kEndLimit).count()));
    if (const int status = process_.kill(); status != 0)
      return fail_with(gone("ended: " + describe_status(status)));
    break;
  }
  over_ = true;
  watcher_ = {};
  process_.kill();
}

}  // namespace firestop::sandbox
