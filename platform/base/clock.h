// Time as an argument: whoever needs "now" is handed a Clock, so tests choose the time.
#pragma once

#include <chrono>

namespace muster::base {

/// Wall-clock time; nanoseconds since the Unix epoch at the edges.
using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

/// The machine's clock. Thread-safe.
class SystemClock : public Clock {
 public:
  Time now() const override { return std::chrono::system_clock::now(); }
};

/// A clock that stands still until it is moved: for tests.
class FakeClock : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(std::chrono::nanoseconds step) { now_ += step; }

 private:
  Time now_{std::chrono::seconds{1'700'000'000}};
};

}  // namespace muster::base
