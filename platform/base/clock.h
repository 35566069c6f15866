// Time as an argument: code that needs the current time gets a Clock, so that tests can set the
// time.
#pragma once

#include <chrono>

namespace muster::base {

/// Wall-clock time; converted to nanoseconds since the Unix epoch for storage and transport.
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

/// A clock for tests, which changes only when it is set.
class FakeClock : public Clock {
 public:
  Time now() const override { return now_; }
  void advance(std::chrono::nanoseconds step) { now_ += step; }

 private:
  Time now_{std::chrono::seconds{1'700'000'000}};
};

}  // namespace muster::base
