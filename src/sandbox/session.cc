#include "sandbox/session.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "channel/mux.h"
#include "sandbox/collect.h"
#include "sandbox/idle.h"
#include "sandbox/relay.h"

namespace firestop::sandbox {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How long a guest may take for what it owes us, before the machine is switched off. Generous for emulation
// on a loaded host; a hostile guest gains nothing by them but time without a command, input or output.
constexpr milliseconds kStartLimit{120000};
// For handing over the result: what is left of the rating, within these. The most is above what the guest
// gives its own git; the least is what it gets when the rating or a cap has ended the command.
constexpr milliseconds kMostHandOver{300000}, kLeastHandOver{60000};
constexpr milliseconds kLateRecord{20000};
constexpr milliseconds kInterruptGrace{10000};
constexpr milliseconds kIdleStep{1000};
// For output on its way when the command was ended from here; after its own end we wait as long as it takes.
constexpr milliseconds kSlowReaderGrace{2000};
// A guest tells 32 paths of a kind apart. What it says is not ours to believe, but ours to bound.
constexpr size_t kMostDenied = 64;
constexpr uint64_t kMostTimes = 1ull << 53;  // what a JSON number holds exactly

int64_t wall_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

struct Session::State {
  enum class Phase { kStarting, kRunning, kHandingOver, kOver };

  State(vmm::Vm& machine, LocalIo& local, SessionConfig wanted)
      : vm(machine),
        io(local),
        config(std::move(wanted)),
        mux(callbacks()),
        collector(config.result_limit),
        memory(config.memory_limit) {}

  vmm::Vm& vm;
  LocalIo& io;
  SessionConfig config;
  Loop loop;
  channel::Mux mux;
  Collector collector, memory;
  Phase phase = Phase::kStarting;
  SessionEnd end;
  bool frozen = false;  // by an alarm: the machine stands still until somebody ends the run
  bool saw_ready = false, output_over = false;
  uint64_t output_bytes = 0;
  int interrupts = 0;
  Clock::time_point phase_began = Clock::now(), command_began = phase_began;
  std::unique_ptr<Outflow> out, err;
  std::unique_ptr<Inflow> in;
  Loop::Handle channel_watch, exit_watch, console_watch, deadline, phase_limit, told_limit, grace, idle_watch;
  std::optional<IdleWatch> idle;  // while the command runs
  std::vector<Loop::Handle> signals;

  channel::Mux::Callbacks callbacks() {
    return {.on_control = [this](std::string_view json) { control(json); },
            .on_data = [this](uint16_t stream, std::string_view bytes) { data(stream, bytes); },
            .on_end = [this](uint16_t stream) { stream_end(stream); },
            .on_writable =
                [this](uint16_t stream) {
                  if (stream == channel::kStdin && in) in->writable();
                }};
  }

  void step(const std::string& name) {
    const auto now = Clock::now();
    end.steps_us.emplace_back(
        name, std::chrono::duration_cast<std::chrono::microseconds>(now - phase_began).count());
    phase_began = now;
  }

  // ---- sending

  void flush() {
    if (!channel_watch) return;
    while (!mux.pending().empty()) {
      const ssize_t n = ::write(vm.channel_fd(), mux.pending().data(), mux.pending().size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) return failed(Error{"guest.gone", "the machine's channel broke", {}, errno});
      mux.written(static_cast<size_t>(n));
    }
    channel_watch->set_events(Loop::kReadable | (mux.pending().empty() ? 0 : Loop::kWritable));
  }

  void say(const channel::FromHost& message) {
    const auto json = channel::encode(message);
    if (!json) return failed(json.error());
    if (auto sent = mux.send_control(*json); !sent) return failed(sent.error());
    flush();
  }

  // ---- receiving

  void channel_ready(int events) {
    if (events & Loop::kWritable) flush();
    if (!(events & (Loop::kReadable | Loop::kHangup))) return;
    char buffer[128u << 10];
    for (int rounds = 0; rounds < 8 && phase != Phase::kOver && channel_watch; ++rounds) {
      const ssize_t n = ::read(vm.channel_fd(), buffer, sizeof buffer);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) break;
      if (n <= 0) return machine_ended();
      received({buffer, static_cast<size_t>(n)});
      if (static_cast<size_t>(n) < sizeof buffer) break;
    }
    if (phase != Phase::kOver) flush();  // credit that was granted
  }

  void received(std::string_view bytes) {
    if (auto ok = mux.receive(bytes); !ok && phase != Phase::kOver) failed(ok.error());
  }

  void control(std::string_view json) {
    if (phase == Phase::kOver) return;
    auto message = channel::decode_from_guest(json);
    if (!message) return failed(message.error());
    std::visit([this](auto& m) { on(m); }, *message);
  }

  void on(channel::Ready& ready) {
    if (saw_ready || phase != Phase::kStarting) return out_of_turn("ready");
    if (ready.version != channel::kProtocolVersion)
      return failed(Error{"guest.version", "the guest speaks protocol " + std::to_string(ready.version),
                          "rebuild the guest image: firestop image build", 0});
    saw_ready = true;
    step("ready");
    config.start.time_ns = wall_ns();  // not before: a machine may take its time to come up
    say(config.start);
  }

  void on(channel::Started& started) {
    if (!saw_ready || phase != Phase::kStarting) return out_of_turn("started");
    for (const auto& s : started.steps) end.steps_us.emplace_back("guest: " + s.name, s.us);
    step("start");
    phase = Phase::kRunning;
    phase_limit.reset();
    end.ran = true;
    command_began = Clock::now();
    config.recorder->state("started", {{"pid", static_cast<int64_t>(vm.pid())}});
    config.recorder->expect_life();
    if (phase != Phase::kRunning) return;  // that could not be recorded
    start_command();
    deadline = loop.once(config.rating, [this] { stop(EndCause::kRating); });
    if (!config.idle) return;
    idle.emplace(*config.idle, [pid = vm.pid()] { return processor_time(pid); }, Clock::now());
    idle_watch = loop.every(kIdleStep, [this] {
      if (!frozen && idle->over(Clock::now())) stop(EndCause::kIdle);
    });
  }

  void on(channel::Exited& exited) {
    if (exited.id != config.exec.id || end.exited) return out_of_turn("exited");
    if (phase != Phase::kRunning && phase != Phase::kHandingOver) return out_of_turn("exited");
    step("command");
    end.exited = std::move(exited);
    if (phase == Phase::kRunning) {
      end.cause = EndCause::kExited;
      hand_over();
    }
  }

  void on(channel::Denied& denied) {
    if (phase != Phase::kRunning && phase != Phase::kHandingOver) return out_of_turn("denied");
    auto known = std::find_if(end.denied.begin(), end.denied.end(), [&](const channel::Denied& d) {
      return d.kind == denied.kind && d.path == denied.path;
    });
    if (known == end.denied.end()) {
      if (end.denied.size() >= kMostDenied)
        return failed(Error{"guest.protocol", "the guest told of too many refusals", {}, 0});
      known = end.denied.insert(known, channel::Denied{denied.kind, denied.path, 0});
    }
    known->count += std::min(denied.count, kMostTimes - known->count);
    config.recorder->denied(denied);
  }

  void on(channel::Exported& exported) {
    if (phase != Phase::kHandingOver || end.exported) return out_of_turn("exported");
    if (exported.repositories.size() != config.start.repositories.size())
      return failed(Error{"guest.protocol", "the guest handed over another number of repositories", {}, 0});
    end.exported = std::move(exported);
    // Collectors are done before anything is handed over: only what is under way between may be missing.
    config.recorder->drain();
    if (!all_told()) told_limit = loop.once(kLateRecord, [this] { untold(); });
    maybe_over();
  }

  void on(channel::Failed& failure) {
    failed(Error{"guest.failed", "the guest failed at " + failure.step + ": " + failure.message, {}, 0});
  }

  void out_of_turn(const char* what) {
    failed(Error{"guest.protocol", std::string("the guest sent '") + what + "' out of turn", {}, 0});
  }

  void data(uint16_t stream, std::string_view bytes) {
    if (phase == Phase::kOver) return;
    if (stream == channel::kStdout || stream == channel::kStderr) {
      if (idle) idle->happened(Clock::now());
      output_bytes += bytes.size();
      Outflow& flow = stream == channel::kStdout ? *out : *err;
      if (output_bytes <= config.output_limit && !output_over) {
        flow.data(bytes);
        if (stream == channel::kStderr) end.errors_open = bytes.back() != '\n';
        if (flow.reader_gone()) say(channel::Signal{config.exec.id, SIGPIPE});
        return;
      }
      // What fits is shown; the rest is dropped and the command ended.
      const uint64_t excess = std::min<uint64_t>(bytes.size(), output_bytes - config.output_limit);
      const auto fits = output_over ? 0 : bytes.size() - static_cast<size_t>(excess);
      if (fits > 0) flow.data(bytes.substr(0, fits));
      mux.consumed(stream, bytes.size() - fits);
      const bool first = !output_over;
      output_over = true;
      if (first) stop(EndCause::kOutputCap);
      return;
    }
    if (stream == channel::kMemoryStream && memory.expects(stream)) return memory_data(bytes);
    auto kept = collector.data(stream, bytes);
    if (!kept) return failed(kept.error());
    if (!*kept) {
      end.result_too_large = true;
      over();
      return;
    }
    mux.consumed(stream, bytes.size());
  }

  // Too much of it costs the memory only, and the guest no more than its own time.
  void memory_data(std::string_view bytes) {
    if (!end.memory_too_large) {
      const auto kept = memory.data(channel::kMemoryStream, bytes);
      if (!kept) return failed(kept.error());
      end.memory_too_large = !*kept;
    }
    mux.consumed(channel::kMemoryStream, bytes.size());
  }

  void stream_end(uint16_t stream) {
    if (phase == Phase::kOver) return;
    if (stream == channel::kStdout)
      out->end();
    else if (stream == channel::kStderr)
      err->end();
    else if (stream == channel::kMemoryStream)
      memory.end(stream);
    else
      collector.end(stream);
    maybe_over();
  }

  // ---- the course of things

  // A sender must know its stream before the receiver grants credit for it: hence this order.
  void start_command() {
    in = std::make_unique<Inflow>(loop, mux, channel::kStdin, io.take_input(), [this] {
      if (idle) idle->happened(Clock::now());
      flush();
    });
    say(config.exec);
    out = std::make_unique<Outflow>(
        loop, mux, channel::kStdout, io.take_output(), [this] { flush(); }, [this] { maybe_over(); });
    err = std::make_unique<Outflow>(
        loop, mux, channel::kStderr, io.take_errors(), [this] { flush(); }, [this] { maybe_over(); });
    flush();
  }

  // Ends the command from here; what it left is still handed over.
  void stop(EndCause cause) {
    if (phase == Phase::kHandingOver || phase == Phase::kOver) return;
    end.cause = frozen ? EndCause::kAlarm : cause;
    if (phase == Phase::kStarting || frozen) return over();
    step("command");
    hand_over();
  }

  // Nothing comes back from a run that an alarm ended: what it left may be what was to be smuggled.
  void alarm(const std::string& credential) {
    const auto known = config.on_alarm.find(credential);
    // Of no credential that we know: more than one may be meant, so the strictest counts.
    std::string action = known == config.on_alarm.end() ? "" : known->second;
    for (const auto& [name, each] : config.on_alarm)
      if (known == config.on_alarm.end() && (action.empty() || each == "kill" || action == "deny"))
        action = each;
    config.recorder->alarm(credential, action);
    // A machine that has done its work is not frozen, but brings nothing back.
    const bool done = action == "freeze" && phase == Phase::kHandingOver;
    if ((action == "kill" || done) && phase != Phase::kOver) {
      end.cause = EndCause::kAlarm;
      over();
    } else if (action == "freeze" && phase == Phase::kRunning && !frozen) {
      frozen = true;
      vm.freeze();
      config.recorder->state("frozen");
      if (config.notice)
        config.notice("a placeholder of credential '" + credential +
                      "' was about to leave: the machine is frozen until it is ended (Ctrl-C) or its rating "
                      "is reached");
    }
  }

  void hand_over() {
    phase = Phase::kHandingOver;
    deadline.reset();
    idle_watch.reset();
    grace.reset();
    if (in) in->stop();
    if (config.network) config.network->finish();
    config.recorder->state("handing_over");
    if (phase == Phase::kOver) return;  // an alarm was among the last that it told, or something broke
    // Never past the rating by more than the least.
    const auto left = config.rating - std::chrono::duration_cast<milliseconds>(Clock::now() - command_began);
    const milliseconds limit = std::clamp<milliseconds>(left, kLeastHandOver, kMostHandOver);
    phase_limit = loop.once(limit, [this, limit] {
      failed(Error{
          "guest.silent",
          "the guest did not hand over its result within " + std::to_string(limit.count() / 1000) + " s",
          {},
          0});
    });
    say(channel::Export{!config.bundle_paths.empty(), !config.start.outputs.empty()});
    if (!config.start.memory.empty()) expect(channel::kMemoryStream, config.memory_path, memory);
    for (size_t i = 0; i < config.bundle_paths.size(); ++i)
      expect(static_cast<uint16_t>(channel::kFirstBundleStream + i), config.bundle_paths[i], collector);
    expect(channel::kOutputsStream, config.outputs_path, collector);
    if (phase != Phase::kOver) flush();
  }

  void expect(uint16_t stream, const std::string& path, Collector& into) {
    if (auto ok = into.expect(stream, path); !ok) return failed(ok.error());
    mux.open_receive(stream);
  }

  void maybe_over() {
    if (phase != Phase::kHandingOver || !end.exported || !collector.complete() || !memory.complete() ||
        !all_told())
      return;
    if (phase_limit) {  // the guest owes nothing any more; only a slow reader of ours may be left
      step("hand over");
      phase_limit.reset();
      exit_watch.reset();
      channel_watch.reset();
      vm.kill();
      if (end.cause != EndCause::kExited) grace = loop.once(kSlowReaderGrace, [this] { over(); });
    }
    if (out->done() && err->done()) over();
  }

  // The collectors' port is another than the one that says that everything was handed over.
  bool all_told() const { return config.recorder->done(); }

  void over() {
    if (phase == Phase::kOver) return;
    phase = Phase::kOver;
    loop.stop();
  }

  void failed(Error error) {
    if (phase == Phase::kOver) return;
    // A command that had ended keeps its end: only the hand-over failed then.
    if (phase != Phase::kHandingOver) end.cause = EndCause::kFailed;
    if (!end.error) end.error = std::move(error);
    // A clone that never came to work may have a bad template: the next start makes a new one.
    if (phase == Phase::kStarting && vm.from_template()) (void)vmm::remove_template(vm.template_key());
    over();
  }

  // Whatever else was reached: a run without a whole record has failed.
  void unrecorded(Error error) {
    if (phase == Phase::kOver) return;
    end.cause = EndCause::kFailed;
    end.error = std::move(error);
    over();
  }

  void untold() {
    if (all_told()) return;
    unrecorded(Error{"collectors.silent", "the guest's collectors did not say that they are done", {}, 0});
  }

  void machine_ended() {
    if (phase == Phase::kOver) return;
    config.recorder->drain();
    if (end.exported && !all_told()) return untold();
    vm.drain_console();
    const std::string why = vmm::printable_tail(vm.qemu_errors(), 4);
    const std::string console = vmm::printable_tail(vm.console(), 12);
    failed(Error{"guest.gone", "the machine ended unexpectedly" + (why.empty() ? "" : ": " + why),
                 console.empty() ? "" : "last lines of its console:\n" + console, 0});
  }

  // The first asks the command, the second ends it, the third waits for nothing.
  void interrupted(int signal) {
    ++interrupts;
    if (phase == Phase::kStarting || interrupts > 2) {
      end.cause = EndCause::kInterrupted;
      return over();
    }
    if (phase != Phase::kRunning) return;
    if (frozen) return stop(EndCause::kAlarm);
    if (interrupts == 2) return stop(EndCause::kInterrupted);
    say(channel::Signal{config.exec.id, signal});
    if (signal != SIGINT) grace = loop.once(kInterruptGrace, [this] { stop(EndCause::kInterrupted); });
  }

  void watch_everything() {
    channel_watch =
        loop.watch(vm.channel_fd(), Loop::kReadable, [this](int events) { channel_ready(events); });
    // What the guest said before its end is still in the channel: read that first.
    exit_watch = loop.watch(vm.exit_fd(), Loop::kReadable, [this](int) {
      exit_watch.reset();
      channel_ready(Loop::kReadable);
      if (phase != Phase::kOver) machine_ended();
    });
    if (vm.console_fd() >= 0)
      console_watch = loop.watch(vm.console_fd(), Loop::kReadable, [this](int events) {
        vm.drain_console();
        if (events & Loop::kHangup) console_watch.reset();
      });
    if (config.network)
      config.network->watch(loop, {.failed = [this](Error error) { failed(std::move(error)); },
                                   .capped = [this] { stop(EndCause::kNetworkCap); },
                                   .alarm = [this](const std::string& credential) { alarm(credential); }});
    config.recorder->watch(
        loop, vm.evidence_fd(), [this](Error error) { unrecorded(std::move(error)); },
        [this] { maybe_over(); });
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      signals.push_back(loop.on_signal(number, [this, number] { interrupted(number); }));
    if (config.exec.terminal)
      signals.push_back(loop.on_signal(SIGWINCH, [this] {
        const auto size = LocalIo::window_size();
        if (phase == Phase::kRunning) say(channel::Resize{config.exec.id, size.rows, size.columns});
      }));
    phase_limit = loop.once(kStartLimit, [this] {
      failed(Error{"guest.silent",
                   "the guest did not start within " + std::to_string(kStartLimit.count() / 1000) + " s",
                   {},
                   0});
    });
  }

  void unwatch_everything() {
    if (config.network) config.network->unwatch();
    config.recorder->drain();
    config.recorder->unwatch();
    channel_watch.reset();
    exit_watch.reset();
    console_watch.reset();
    deadline.reset();
    idle_watch.reset();
    phase_limit.reset();
    grace.reset();
    signals.clear();
    out.reset();
    err.reset();
    in.reset();
  }
};

Session::Session(vmm::Vm& vm, LocalIo& io, SessionConfig config)
    : state_(std::make_unique<State>(vm, io, std::move(config))) {}

Session::~Session() = default;

SessionEnd Session::run(const std::string& ready) {
  state_->watch_everything();
  state_->received(ready);
  if (state_->phase != State::Phase::kOver) state_->flush();
  if (state_->phase != State::Phase::kOver) state_->loop.run();
  state_->unwatch_everything();
  return std::move(state_->end);
}

}  // namespace firestop::sandbox
