#include "evidence/anchor_thread.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace firestop::evidence {
namespace {

using Clock = std::chrono::steady_clock;

// Signals are the loop's. Children get an empty mask of their own.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct AnchorThread::State {
  Anchor anchor;
  std::chrono::milliseconds most{};
  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex:
  std::optional<std::string> line;  // to be given
  std::optional<Error> error;       // of the last, until it was told
  Clock::time_point until;          // when the one under way is too late
  bool busy = false, over = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return over || line; });
      if (!line) return;
      const std::string given = std::move(*line);
      line.reset();
      lock.unlock();
      auto kept = anchor(given);
      lock.lock();
      if (!kept) error = kept.error();
      busy = false;
      changed.notify_all();
    }
  }
  // With the mutex held.
  Result<void> told() {
    if (error) {
      Error told = std::move(*error);
      error.reset();
      return Unexpected(std::move(told));
    }
    if (busy && Clock::now() >= until)
      return fail("evidence.anchor",
                  "the anchor did not take a checkpoint within " + std::to_string(most.count()) + " ms");
    return {};
  }
};

AnchorThread::AnchorThread(Anchor anchor, std::chrono::milliseconds most)
    : state_(std::make_shared<State>()) {
  state_->anchor = std::move(anchor);
  state_->most = most;
  const WithoutSignals blocked;
  thread_ = std::thread([state = state_] { state->serve(); });
}

AnchorThread::~AnchorThread() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  state_->changed.wait_until(lock, state_->until, [this] { return !state_->busy; });
  const bool stuck = state_->busy;
  lock.unlock();
  if (stuck)
    thread_.detach();
  else
    thread_.join();
}

bool AnchorThread::busy() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->busy;
}

Result<void> AnchorThread::give(std::string line) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->busy) return fail("evidence.anchor", "the anchor has not taken the checkpoint before");
  state_->line = std::move(line);
  state_->busy = true;
  state_->until = Clock::now() + state_->most;
  state_->changed.notify_all();
  return {};
}

Result<void> AnchorThread::check() {
  const std::scoped_lock lock(state_->mutex);
  return state_->told();
}

Result<void> AnchorThread::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, state_->until, [this] { return !state_->busy; });
  return state_->told();
}

}  // namespace firestop::evidence
