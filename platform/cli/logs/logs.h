// muster logs: the output of a job, and following it. `submit --follow`, `run` and the dialects use
// follow().
#pragma once

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
#include "words/sentence.h"

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

// The parts of follow(). LogCursor tracks how far a job's logs have been read, so that reading can
// continue after a lost connection: no byte is lost or printed twice. The server sends places in
// the logs from time to time, and is asked to continue from the last place. The bytes after that
// place are sent again, possibly split into other records. The bytes of each source (a stream of a
// rank of a task in an attempt) always come in the same order, so they are counted, and the same
// number is skipped.
//
// WaitNotice prints on standard error why a followed job prints nothing yet.
//
// Not thread-safe.

class LogCursor {
 public:
  /// The part of `record` that was not seen before the last restart(): all of it, or its rest,
  /// which is valid until the next call; nullptr: nothing.
  const job::LogRecord* unseen(const job::LogRecord& record);

  /// All records so far lie before `place`.
  void reach(const std::string& place);

  /// Reading starts again at place(). From then on, unseen() skips the bytes that were seen before.
  void restart();

  /// The last place; empty: the beginning.
  const std::string& place() const { return place_; }

 private:
  using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;
  struct Count {
    uint64_t seen = 0;   ///< bytes since the last place
    uint64_t again = 0;  ///< how many of these bytes will come again
  };

  using Counts = std::map<Source, Count>;
  Count& count_of(const job::LogRecord& record);

  Counts counts_;
  /// The last source: most records come from the same source as the record before.
  Counts::value_type* last_ = nullptr;
  std::string place_;
  job::LogRecord rest_;
};

struct FollowRequest;

class WaitNotice {
 public:
  WaitNotice();

  /// Readable when the next check is due.
  int fd() const { return timer_.get(); }

  /// Checks the job, if a check is due, with its own client.
  void check(const Connection& connection, const FollowRequest& request);

  /// Stops checking: the job has printed something, or the message is no longer needed.
  void done() { timer_.reset(); }

 private:
  base::UniqueFd timer_;
  std::string shown_;
};

/// "job 'second' waits: needs 1 GPU; ..."; empty if the job does not wait.
std::string waiting_word(const job::Job& job, const words::Commands& commands = {});

// Prints a job's logs to standard output as they arrive, until they end. If the connection to the
// server is lost, reconnects (and starts a local server if necessary) and continues at the same
// byte.
//
// Blocking; one at a time.

/// The effect of Ctrl-C.
enum class OnInterrupt {
  kStop,    ///< stop the job; the second Ctrl-C kills it; the third leaves
  kDetach,  ///< leave; the job continues
};

struct FollowRequest {
  std::string name;
  job::LogQuery query;
  LogLook look;
  OnInterrupt on_interrupt = OnInterrupt::kDetach;
  std::function<void(std::string&)> head = {};  ///< see LogPrinter
  // Of the program that the user has called.
  std::string program = "muster";
  words::Commands commands = {};
};

struct FollowEnd {
  enum class How {
    kEnded,        ///< everything was printed; with query.follow, the job has ended
    kInterrupted,  ///< left after Ctrl-C
    kPipeClosed,   ///< the reader of the output is gone
  };
  How how = How::kEnded;
  /// Set with kEnded; with kInterrupted if the server still answered.
  job::Job job;
  bool stop_asked = false;  ///< Ctrl-C asked the server to stop the job
  bool has_output = false;  ///< a record was received
};

/// With kStop, a closed output stops the job, too, as SIGPIPE would stop a program in a pipe.
///
/// Errors: those of the server; kUnavailable: reconnecting failed; kInternal: the output cannot be
/// written (for example, a full disk).
Result<FollowEnd> follow(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request);

/// "no line of 'dist' matches --rank 5"; empty if the query selects all lines, or asks for none.
std::string no_match_text(const std::string& name, const job::LogQuery& query);

/// Prints it on standard error, with advice.
void report_no_match(const FollowRequest& request);

/// How following ends after `error` of PacedOutput. Errors: kInternal: the output cannot be written.
Result<FollowEnd::How> end_by_output(base::Error error);

/// The same as follow() for the logs of all members of an array, with lines about its progress on
/// standard error. Returns the exit code: 1 if the array was followed and a member did not succeed.
/// kNotFound: there is no such array. array_logs.cc
Result<int> follow_array(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request);

/// Prints the result on standard error, and returns the exit code. `project`: the value of --project
/// for the commands that are suggested, or empty.
int report_end(const FollowEnd& end, const FollowRequest& request, const std::string& project);

}  // namespace muster::cli::logs
