// Text on its way to a descriptor: the first line goes out at once, a flood goes out in large
// pieces, and nothing waits for long.
//
// Not thread-safe. Whoever owns it must call flush() when timer_fd() becomes readable, for example
// from the wake of a blocking read.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::cli {

class PacedOutput {
 public:
  static constexpr std::chrono::milliseconds kPatience{2};

  /// Does not own `fd`. `patience`: how long a line may wait for others.
  explicit PacedOutput(int fd, std::chrono::milliseconds patience = kPatience);

  /// Append here, then commit().
  std::string& buffer() { return buffer_; }

  /// Writes the buffer if enough is there or enough time has passed; else sets the timer.
  /// Errors: of write(2); kUnavailable: the reader of the pipe is gone.
  base::Result<void> commit();

  /// Writes all that waits.
  base::Result<void> flush();

  /// Readable once something has waited long enough.
  int timer_fd() const { return timer_.get(); }

 private:
  using Clock = std::chrono::steady_clock;

  void set_timer(Clock::duration delay);

  int fd_;
  std::chrono::milliseconds patience_;
  base::UniqueFd timer_;
  bool timer_set_ = false;
  Clock::time_point last_flush_{};
  std::string buffer_;
};

}  // namespace muster::cli
