// The environment that Slurm's programs are run in: that of the server, without what would change
// what they print or ask for.
//
// Pure; thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"

namespace muster::engine::slurm {

/// NAME=value, as the result is. Of Slurm's own variables only those that say where the cluster is
/// and who asks; times are in UTC.
std::vector<std::string> environment_for_asking(const std::vector<std::string>& own);

/// For sbatch, which hands its environment to the script: what the script is to have, and what says
/// where the cluster is.
std::vector<std::string> environment_for_submitting(
    const std::vector<std::string>& own, const std::map<std::string, std::string>& script);

// Programs that are run for what they print: a few at once, the others in turn, each for a bounded
// time and with bounded output.
//
// On the loop's thread.

struct ProgramWish {
  std::vector<std::string> argv;         ///< the first is looked for in this process's PATH
  std::vector<std::string> environment;  ///< the whole of it, NAME=value
  std::string input;                     ///< what it reads; never in a file that others could open
  std::chrono::milliseconds patience{30000};  ///< from its start; then it is killed
};

struct ProgramEnd {
  int code = 0;  ///< -1: it was killed by a signal
  bool was_late = false;
  bool was_cut = false;  ///< it printed more than kMostOutput, and was killed for it
  std::string output;
  std::string errors;  ///< the last of them
};

class ProgramRunner {
 public:
  static constexpr size_t kMostOutput = 256 << 20;
  static constexpr size_t kMostErrors = 64 << 10;

  /// Errors: it could not be started.
  using Then = std::function<void(base::Result<ProgramEnd>)>;

  ProgramRunner(base::EventLoop& loop, size_t at_once);
  /// Kills what runs. Nobody hears any more.
  ~ProgramRunner();
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  /// `then` is called once, later.
  void run(ProgramWish wish, Then then);

 private:
  class Run;
  struct Waiting {
    ProgramWish wish;
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

}  // namespace muster::engine::slurm
