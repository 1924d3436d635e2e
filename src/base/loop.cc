#include "base/loop.h"

#include <uv.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

namespace firestop {
namespace {

// libuv frees a handle only after its close callback, so the handle outlives the Watch that owns it;
// `alive` turns false at once, which is what ends the callbacks.
void start_poll(uv_poll_t* handle, int events);

template <typename UvHandle, typename Callback>
class UvWatch final : public Loop::Watch {
 public:
  struct Body {
    UvHandle handle;
    Callback callback;
    bool alive = true;
  };

  explicit UvWatch(Callback callback) : body_(new Body{{}, std::move(callback)}) {
    body_->handle.data = body_;
  }
  UvWatch(const UvWatch&) = delete;
  UvWatch& operator=(const UvWatch&) = delete;
  ~UvWatch() override {
    body_->alive = false;
    uv_close(reinterpret_cast<uv_handle_t*>(&body_->handle),
             [](uv_handle_t* handle) { delete static_cast<Body*>(handle->data); });
  }
  UvHandle* handle() { return &body_->handle; }
  void set_events(int events) override {
    if constexpr (std::is_same_v<UvHandle, uv_poll_t>) start_poll(handle(), events);
  }

  static Body* body_of(UvHandle* handle) { return static_cast<Body*>(handle->data); }

 private:
  Body* body_;
};

using PollWatch = UvWatch<uv_poll_t, std::function<void(int)>>;
using TimerWatch = UvWatch<uv_timer_t, std::function<void()>>;
using SignalWatch = UvWatch<uv_signal_t, std::function<void()>>;

// One of those that come at the next turn; all of them share one timer.
class SoonWatch final : public Loop::Watch {
 public:
  struct Body {
    explicit Body(std::function<void()> what) : callback(std::move(what)) {}
    std::function<void()> callback;
    bool alive = true;
  };
  explicit SoonWatch(std::shared_ptr<Body> body) : body_(std::move(body)) {}
  SoonWatch(const SoonWatch&) = delete;
  SoonWatch& operator=(const SoonWatch&) = delete;
  ~SoonWatch() override { body_->alive = false; }
  void set_events(int) override {}

 private:
  std::shared_ptr<Body> body_;
};

// A request, not a handle: libuv has it until the work is done, whoever still waits for it.
class WorkWatch final : public Loop::Watch {
 public:
  struct Body {
    uv_work_t request;
    std::function<void()> work, done;
    size_t* pending;
    std::shared_ptr<Body> self;  // while libuv has it
    bool alive = true;
  };
  explicit WorkWatch(std::shared_ptr<Body> body) : body_(std::move(body)) {}
  WorkWatch(const WorkWatch&) = delete;
  WorkWatch& operator=(const WorkWatch&) = delete;
  ~WorkWatch() override { body_->alive = false; }
  void set_events(int) override {}

 private:
  std::shared_ptr<Body> body_;
};

void must(int rc) {
  if (rc != 0) std::abort();
}

void start_poll(uv_poll_t* poll, int events) {
  if ((events & ~Loop::kNoHangup) ==
      0) {  // not even hangup, which a level-triggered poll would report for ever
    must(uv_poll_stop(poll));
    return;
  }
  const int wanted = ((events & Loop::kReadable) ? UV_READABLE : 0) |
                     ((events & Loop::kWritable) ? UV_WRITABLE : 0) |
                     ((events & Loop::kNoHangup) ? 0 : UV_DISCONNECT);
  must(uv_poll_start(poll, wanted, [](uv_poll_t* handle, int status, int ready) {
    auto* body = PollWatch::body_of(handle);
    int out = 0;
    if (status < 0) out |= Loop::kReadable | Loop::kHangup;
    if (ready & UV_READABLE) out |= Loop::kReadable;
    if (ready & UV_WRITABLE) out |= Loop::kWritable;
    if (ready & UV_DISCONNECT) out |= Loop::kHangup;
    if (body->alive) body->callback(out);
  }));
}

}  // namespace

struct Loop::State {
  uv_loop_t loop;
  size_t pending = 0;  // pieces of work that libuv has
  uv_timer_t soon_timer;
  std::vector<std::shared_ptr<SoonWatch::Body>> soon;

  void run_soon() {
    for (const auto& body : std::exchange(soon, {}))
      if (body->alive) body->callback();
  }
};

Loop::Loop() : state_(std::make_unique<State>()) {
  must(uv_loop_init(&state_->loop));
  must(uv_timer_init(&state_->loop, &state_->soon_timer));
  state_->soon_timer.data = state_.get();
}

Loop::~Loop() {
  uv_close(reinterpret_cast<uv_handle_t*>(&state_->soon_timer), nullptr);
  // Lets close callbacks run; the first time for nothing if it was stopped while it did not run.
  for (int i = 0; i < 2; ++i) uv_run(&state_->loop, UV_RUN_NOWAIT);
  while (state_->pending > 0) uv_run(&state_->loop, UV_RUN_ONCE);
  uv_loop_close(&state_->loop);
}

Loop::Handle Loop::watch(int fd, int events, std::function<void(int)> callback) {
  auto watch = std::make_unique<PollWatch>(std::move(callback));
  must(uv_poll_init(&state_->loop, watch->handle(), fd));
  start_poll(watch->handle(), events);
  return watch;
}

Loop::Handle Loop::soon(std::function<void()> callback) {
  if (state_->soon.empty()) {
    uv_update_time(&state_->loop);
    must(uv_timer_start(
        &state_->soon_timer, [](uv_timer_t* timer) { static_cast<State*>(timer->data)->run_soon(); }, 0, 0));
  }
  state_->soon.push_back(std::make_shared<SoonWatch::Body>(std::move(callback)));
  return std::make_unique<SoonWatch>(state_->soon.back());
}

Loop::Handle Loop::once(std::chrono::milliseconds delay, std::function<void()> callback) {
  if (delay.count() <= 0) return soon(std::move(callback));
  auto watch = std::make_unique<TimerWatch>(std::move(callback));
  must(uv_timer_init(&state_->loop, watch->handle()));
  uv_update_time(&state_->loop);
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(0, delay.count()));
  must(uv_timer_start(
      watch->handle(),
      [](uv_timer_t* t) {
        if (auto* body = TimerWatch::body_of(t); body->alive) body->callback();
      },
      ms, 0));
  return watch;
}

Loop::Handle Loop::every(std::chrono::milliseconds delay, std::function<void()> callback) {
  auto watch = std::make_unique<TimerWatch>(std::move(callback));
  must(uv_timer_init(&state_->loop, watch->handle()));
  uv_update_time(&state_->loop);
  const auto ms = static_cast<uint64_t>(std::max<int64_t>(1, delay.count()));
  must(uv_timer_start(
      watch->handle(),
      [](uv_timer_t* t) {
        if (auto* body = TimerWatch::body_of(t); body->alive) body->callback();
      },
      ms, ms));
  return watch;
}

Loop::Handle Loop::on_signal(int signal, std::function<void()> callback) {
  auto watch = std::make_unique<SignalWatch>(std::move(callback));
  must(uv_signal_init(&state_->loop, watch->handle()));
  must(uv_signal_start(
      watch->handle(),
      [](uv_signal_t* s, int) {
        if (auto* body = SignalWatch::body_of(s); body->alive) body->callback();
      },
      signal));
  return watch;
}

Loop::Handle Loop::offload(std::function<void()> work, std::function<void()> done) {
  const auto body = std::make_shared<WorkWatch::Body>();
  body->work = std::move(work);
  body->done = std::move(done);
  body->pending = &state_->pending;
  body->self = body;
  body->request.data = body.get();
  ++state_->pending;
  must(uv_queue_work(
      &state_->loop, &body->request,
      [](uv_work_t* request) { static_cast<WorkWatch::Body*>(request->data)->work(); },
      [](uv_work_t* request, int) {
        const auto own = std::move(static_cast<WorkWatch::Body*>(request->data)->self);
        --*own->pending;
        if (own->alive) own->done();
      }));
  return std::make_unique<WorkWatch>(body);
}

void Loop::run() {
  uv_run(&state_->loop, UV_RUN_DEFAULT);
}
void Loop::stop() {
  uv_stop(&state_->loop);
}

}  // namespace firestop
