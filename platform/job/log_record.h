// A piece of what a job printed, as it is merged, streamed and shown.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace muster::job {

enum class LogStream {
  kOutput,  ///< standard output
  kError,   ///< standard error
  kNotice,  ///< Muster's own words about the task, e.g. what a full disk cost
};

/// At most one line. Bytes are the program's own: any encoding, NUL included, without the newline.
struct LogRecord {
  base::Time time;          ///< when the shim read it
  std::string task;         ///< launcher, worker-0, main
  std::string host;         ///< host name of the task, or of the rank where one is known
  std::optional<int> rank;  ///< the MPI rank that printed it, where one is known
  LogStream stream = LogStream::kOutput;
  std::string text;
  bool continues = false;  ///< a long line was cut here; the next record of this source goes on

  bool operator==(const LogRecord&) const = default;
};

/// What to show of a job's logs.
struct LogQuery {
  bool follow = false;              ///< stay until the job has ended and all is read
  std::optional<std::string> task;  ///< only this task
  std::optional<base::Time> since;  ///< only what was printed at or after
  std::optional<int> tail;          ///< only so many of the last lines that exist now
};

}  // namespace muster::job
