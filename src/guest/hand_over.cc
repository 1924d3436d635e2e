#include "guest/hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace firestop::guest {

Result<std::unique_ptr<HandOver>> HandOver::start(Events& events, Port& port, const ExportPlan& plan,
                                                  const StartInContainer& start) {
  TRY_ASSIGN(RunningExport running, start_export(plan, start));
  std::unique_ptr<HandOver> hand_over(new HandOver(events, port));
  hand_over->pid_ = running.pid;
  hand_over->frames_ = std::move(running.frames);
  ::fcntl(hand_over->frames_.get(), F_SETFL, O_NONBLOCK);
  for (size_t i = 0; i < plan.repositories.size(); ++i) {
    hand_over->streams_.push_back(static_cast<uint16_t>(channel::kFirstBundleStream + i));
    hand_over->answer_.repositories.push_back({plan.repositories[i].path, false, false, ""});
  }
  hand_over->streams_.push_back(channel::kOutputsStream);
  if (!plan.memory.empty()) hand_over->streams_.push_back(channel::kMemoryStream);
  events.watch(hand_over->frames_.get(), EPOLLIN, [self = hand_over.get()](uint32_t) { self->read_some(); });
  return hand_over;
}

HandOver::~HandOver() {
  if (over()) return;
  ::kill(pid_, SIGKILL);
  finish("ended");
}

void HandOver::step() {
  if (over() || waiting_.empty() || port_.congested()) return;
  waiting_.erase(0, port_.mux().send(waiting_stream_, waiting_));
  if (waiting_.empty()) take_frames();
}

void HandOver::read_some() {
  char buffer[codec::kMaxPayload];
  const ssize_t got = ::read(frames_.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return finish("the export ended before its time");
  decoder_.feed({buffer, static_cast<size_t>(got)});
  take_frames();
}

void HandOver::take_frames() {
  while (true) {
    const auto next = decoder_.next();
    if (!next) return finish("the export is garbled");
    const std::optional<codec::Frame>& frame = *next;
    if (!frame) return events_.want(frames_.get(), EPOLLIN);
    const std::string_view left = pass_on(*frame);
    if (left.empty()) continue;
    waiting_ = left;
    waiting_stream_ = frame->stream;
    return events_.want(frames_.get(), 0);
  }
}

std::string_view HandOver::pass_on(const codec::Frame& frame) {
  switch (frame.type) {
    case codec::FrameType::kData:
      if (port_.congested()) return frame.payload;
      return frame.payload.substr(port_.mux().send(frame.stream, frame.payload));
    case codec::FrameType::kEnd:
      port_.mux().send_end(frame.stream);
      break;
    case codec::FrameType::kControl:
      answered_ = port_.mux().send_control(frame.payload).has_value();
      break;
    case codec::FrameType::kCredit:
      break;
  }
  return {};
}

void HandOver::finish(const std::string& error) {
  events_.drop(frames_.get());
  frames_.reset();
  ::waitpid(pid_, nullptr, 0);
  if (answered_) return;
  for (const uint16_t stream : streams_) port_.mux().send_end(stream);
  for (auto& repository : answer_.repositories) repository.error = error;
  answer_.outputs_error = error;
  answer_.memory_error = error;
  port_.say(answer_);
}

}  // namespace firestop::guest
