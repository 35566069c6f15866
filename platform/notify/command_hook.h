// Runs a program of the administrator for each event of a job, with the payload on standard input
// and a few variables in an otherwise empty environment.
//
// The queue is lost with the server. Subscriptions with a URL deliver every notification.
//
// On the EventLoop's thread; the loop must outlive it. Nothing blocks. Programs that still run when
// it is destroyed are ended.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "job/notification.h"

namespace muster::notify {

class CommandHook {
 public:
  static constexpr size_t kMostAtOnce = 4;
  static constexpr size_t kMostWaiting = 1'000;
  static constexpr int kAttempts = 3;

  struct Limits {
    std::chrono::milliseconds timeout{30'000};
    std::chrono::milliseconds pause{5'000};  ///< before another attempt
  };

  explicit CommandHook(base::EventLoop& loop) : CommandHook(loop, Limits()) {}
  CommandHook(base::EventLoop& loop, Limits limits) : loop_(loop), limits_(limits) {}
  ~CommandHook();

  /// Sets the program for later runs; empty: no program. Logs a warning if it cannot be run now.
  void set_command(std::vector<std::string> command);
  bool is_set() const { return !command_.empty(); }

  struct Event {
    job::Happening happening = job::Happening::kStarted;
    std::string object;  ///< "array" or "sweep"; empty: a job
    std::string project;
    std::string job;  ///< the name of the job, the array or the sweep
    std::string payload;
  };
  void add(Event event);

  /// Whether no program runs or waits.
  bool is_idle() const { return runs_.empty() && waiting_.empty() && pauses_.empty(); }

 private:
  struct Turn {
    Event event;
    int attempts = 0;
  };
  struct Run {
    Turn turn;
    base::Child child;
    base::UniqueFd output;
    std::string printed;
    bool timed_out = false;
    base::EventLoop::Interest ended, readable, timer;
  };

  void start_next();
  base::Result<void> start(Turn turn);
  void read_output(Run& run);
  void ended(int number);
  void failed(Turn turn, const std::string& why);

  base::EventLoop& loop_;
  Limits limits_;
  std::vector<std::string> command_;
  std::deque<Turn> waiting_;
  std::map<int, Run> runs_;
  std::map<int, base::EventLoop::Interest> pauses_;
  int next_number_ = 0;
};

}  // namespace muster::notify
