// A single-threaded event loop over libuv: descriptors, timers, signals. Callbacks run on the thread
// that calls run(); a watch lives until its handle is destroyed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace firestop {

class Loop {
 public:
  class Watch {  // destroying it ends the callbacks, also from inside one
   public:
    virtual ~Watch() = default;
    virtual void set_events(int events) = 0;  // of a descriptor's watch; others ignore it
  };
  using Handle = std::unique_ptr<Watch>;

  enum Events : int { kReadable = 1, kWritable = 2, kHangup = 4, kNoHangup = 8 };

  Loop();
  ~Loop();  // every handle must be gone before
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // `callback` gets the events that are ready; errors show as readable or hangup; events 0 pauses; kNoHangup
  // asks not to be told of one, which stays for ever once it is there. One watch a descriptor; it becomes
  // non-blocking (libuv does that), so never hand in an inherited stdin, stdout or stderr.
  Handle watch(int fd, int events, std::function<void(int)> callback);
  // Once after `delay`, or every `delay`.
  Handle once(std::chrono::milliseconds delay, std::function<void()> callback);
  Handle every(std::chrono::milliseconds delay, std::function<void()> callback);
  Handle on_signal(int signal, std::function<void()> callback);
  // For what blocks: `work` on one of libuv's threads (four, unless UV_THREADPOOL_SIZE says otherwise; made
  // at the first call), then `done` on the loop's. Without the handle there is no `done`, while `work` runs
  // to its end: it must own all that it touches. The loop's destructor waits for it.
  Handle offload(std::function<void()> work, std::function<void()> done);

  void run();   // until stop() or nothing is left to wait for
  void stop();  // run() returns after the current callback

 private:
  Handle soon(std::function<void()> callback);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firestop
