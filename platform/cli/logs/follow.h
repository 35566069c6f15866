// Prints a job's logs to standard output as they come, until they end. Outlives the server: when it
// goes away, another is started and reading goes on where it broke off.
//
// Blocking; one at a time.
#pragma once

#include <functional>
#include <string>

#include "cli/common/interrupts.h"
#include "cli/connection/connection.h"
#include "cli/logs/log_printer.h"
#include "job/job.h"
#include "job/log_record.h"

namespace muster::cli::logs {

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
