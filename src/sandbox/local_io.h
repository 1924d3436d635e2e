// Our own stdin, stdout and stderr, made fit for an event loop without touching the flags that other
// processes share with us: a thread each copies between them and a pipe of ours.
#pragma once

#include <termios.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace firestop::sandbox {

class LocalIo {
 public:
  struct Options {
    bool terminal = false;  // put the terminal on stdin into raw mode
  };
  // With `terminal`, stdin must be a terminal ("io.not_a_terminal").
  static Result<std::unique_ptr<LocalIo>> open(const Options& options);
  // Restores the terminal. Output that finish() did not wait for is lost.
  ~LocalIo();
  LocalIo(const LocalIo&) = delete;
  LocalIo& operator=(const LocalIo&) = delete;

  // Pipe ends for the loop, ours to keep. stdin gives end of file when the real one does; it is closed from
  // the start when we run in the background of a terminal, which would stop us for reading.
  UniqueFd take_input() { return std::move(input_); }
  UniqueFd take_output() { return std::move(output_); }
  UniqueFd take_errors() { return std::move(errors_); }

  // Waits until everything written to the (closed) output pipes has reached the real ones.
  void finish();
  void restore_terminal();

  struct Size {
    uint16_t rows = 24, columns = 80;
  };
  static Size window_size();

 private:
  LocalIo() = default;
  UniqueFd input_, output_, errors_;
  std::thread output_thread_, errors_thread_;
  std::optional<termios> saved_;
};

}  // namespace firestop::sandbox
