// Runs programs whose output the server reads: a few at once, each for a bounded time and with
// bounded output.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"

namespace muster::engine {

struct ProgramPlan {
  std::vector<std::string> argv;         ///< the program is searched in this process's PATH
  std::vector<std::string> environment;  ///< complete, NAME=value
  std::string input;  ///< its standard input, never in a file that other users could open
  std::chrono::milliseconds patience{30000};  ///< the program is killed this long after its start
};

struct ProgramEnd {
  int code = 0;  ///< -1: killed by a signal
  bool was_late = false;
  bool was_cut = false;  ///< killed because it printed more than kMostOutput
  std::string output;
  std::string errors;  ///< the end of its standard error
};

class ProgramRunner {
 public:
  static constexpr size_t kMostOutput = 256 << 20;
  static constexpr size_t kMostErrors = 64 << 10;

  /// Errors: the program could not be started.
  using Then = std::function<void(base::Result<ProgramEnd>)>;

  ProgramRunner(base::EventLoop& loop, size_t at_once);
  /// Kills the running programs; calls nothing more.
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  /// Calls `then` once, later.
  void run(ProgramPlan plan, Then then);

 private:
  class Run;
  struct Waiting {
    ProgramPlan plan;
    Then then;
  };

  void start_next();
  void end(Run* run);

  base::EventLoop& loop_;
  size_t at_once_;
  std::deque<Waiting> waiting_;
  std::list<std::unique_ptr<Run>> running_;
  bool is_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine
