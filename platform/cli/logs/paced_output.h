// Log lines on their way to standard output: the first line is written at once, and many lines in
// large pieces.
//
// For a pipe or a file, commit() and flush() wait until everything is written. On a terminal the
// caller may choose not to wait: commit() then writes only what the terminal takes at once, and the
// caller gets fd() readable when it takes more.
//
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::cli::logs {

class PacedOutput {
 public:
  static constexpr std::chrono::milliseconds kPatience{2};
  /// The buffer is written when it has this size.
  static constexpr size_t kEnough = 256 << 10;
  /// The same for a terminal that is not waited for.
  static constexpr size_t kTerminalPiece = 16 << 10;

  /// Does not own `fd`. `patience`: the maximum delay of a line.
  explicit PacedOutput(int fd, std::chrono::milliseconds patience = kPatience);

  /// From now on, commit() does not wait. False, and nothing changes: `fd` is not a terminal, or its
  /// terminal cannot be opened again, for example because it belongs to another user. (It is opened
  /// again because the shell shares `fd`, and would not expect it to become non-blocking.)
  bool stop_waiting();

  /// Append here, then commit().
  std::string& buffer() { return buffer_; }

  /// Writes the buffer if it is large enough or has waited long enough; otherwise fd() becomes
  /// readable. Errors: those of write(2); kUnavailable: the reader of the pipe is gone.
  base::Result<void> commit();

  /// Writes what the terminal takes at once, or the whole buffer if commit() waits. `more`: the
  /// caller has more to append, so fd() becomes readable as soon as the terminal takes it.
  base::Result<void> write_some(bool more);

  /// Writes the whole buffer, and waits for the terminal if necessary.
  base::Result<void> flush();

  /// Readable when write_some() is due.
  int fd() const { return due_.get(); }

 private:
  using Clock = std::chrono::steady_clock;

  void set_timer(Clock::duration delay);
  void await_room(bool awaits);

  int fd_;
  std::chrono::milliseconds patience_;
  base::UniqueFd timer_;
  base::UniqueFd due_;  ///< an epoll set: the timer, and the terminal while its room is awaited
  base::UniqueFd terminal_;  ///< non-blocking; not set: commit() waits
  bool timer_set_ = false;
  bool awaits_room_ = false;
  Clock::time_point last_write_{};
  std::string buffer_;
};

}  // namespace muster::cli::logs
