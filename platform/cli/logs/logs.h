// muster logs: the output of a job, and following it. `submit --follow`, `run` and the dialects use
// follow().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/logs/log_printer.h"
#include "job/job.h"
#include "job/log_record.h"

namespace muster::cli::logs {

struct LogsCommand {
  std::string name;
  std::string project = {};  ///< where the name is looked up; empty: any project
  job::LogQuery query;
  LogLook look;
};

Result<int> execute(const LogsCommand& command, const Hooks& hooks);

/// The format of log lines: --timestamps, --no-prefix, --no-fold.
Flags look_flags();
LogLook read_look(const Reading& in);

Command logs_command();

// What follow() stands on. LogCursor keeps how far a job's logs have been read, so that reading can
// go on where it broke off when the server was killed: no byte lost, none shown twice. The server
// reports now and then which place was reached, and is asked to go on from there. What came after
// the last place comes again, cut into records in any way; the bytes of each source (a stream of a
// rank of a task in an attempt) come in the same order each time, so they are counted, and as many
// are passed over.
//
// PacedOutput writes the first line at once and a flood in large pieces. WaitingWord prints on
// standard error why a job that is followed prints nothing yet.
//
// Not thread-safe.

class LogCursor {
 public:
  /// What of `record` was not seen before the last restart(): all of it, or its rest, which lives
  /// until the next call; nullptr: nothing.
  const job::LogRecord* unseen(const job::LogRecord& record);

  /// All that came before stands in front of `place`.
  void reach(const std::string& place);

  /// Reading begins anew at place(). From then on unseen() passes over what was seen.
  void restart();

  /// The last that was reached; empty: the beginning.
  const std::string& place() const { return place_; }

 private:
  using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;
  struct Count {
    uint64_t seen = 0;   ///< bytes since the last place
    uint64_t again = 0;  ///< of these, how many are yet to come again
  };

  using Counts = std::map<Source, Count>;
  Count& count_of(const job::LogRecord& record);

  Counts counts_;
  Counts::value_type* last_ = nullptr;  ///< whoever prints much is met again soon
  std::string place_;
  job::LogRecord rest_;
};

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

class WaitingWord {
 public:
  WaitingWord();

  /// Readable when it is time to look again.
  int fd() const { return timer_.get(); }

  /// Looks where it is time to, by a client of its own.
  void look(const Connection& connection, const std::string& name);

  /// Enough: it has printed something, or nobody waits for it.
  void done() { timer_.reset(); }

 private:
  base::UniqueFd timer_;
  std::string told_;
};

/// "job 'second' waits: needs 1 GPU; ..."; empty: it does not wait.
std::string waiting_word(const job::Job& job);

// Prints a job's logs to standard output as they come, until they end. Outlives the server: when it
// goes away, another is started and reading goes on where it broke off.
//
// Blocking; one at a time.

/// What Ctrl-C means.
enum class OnInterrupt {
  kStop,    ///< stop the job; the second kills it; the third leaves
  kDetach,  ///< leave; the job goes on
};

struct FollowRequest {
  std::string name;
  job::LogQuery query;
  LogLook look;
  OnInterrupt on_interrupt = OnInterrupt::kDetach;
  std::function<void(std::string&)> head = {};  ///< as LogPrinter's
};

struct FollowEnd {
  enum class How {
    kEnded,        ///< all was printed; with query.follow, the job has ended
    kInterrupted,  ///< left at Ctrl-C
    kPipeClosed,   ///< nobody reads the output any more
  };
  How how = How::kEnded;
  job::Job job;             ///< set with kEnded
  bool stop_asked = false;  ///< Ctrl-C asked the server to stop the job
};

/// With kStop, a closed output stops the job too, as SIGPIPE would stop a program in a pipe.
///
/// Errors: those of the server, kUnavailable where it cannot be brought back; kInternal where the
/// output cannot be written (a full disk).
Result<FollowEnd> follow(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request);

/// Says on standard error how it went, and gives the exit code. `meaning`: as it was in the
/// request.
int report_end(const FollowEnd& end, const std::string& name, OnInterrupt meaning);

}  // namespace muster::cli::logs
