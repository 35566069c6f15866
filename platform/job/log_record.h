// A piece of what a job printed, as it is merged, streamed and shown.
#pragma once

#include <cstdint>
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
  int attempt = 0;          ///< of the job; 0: not known
  std::string host;         ///< host name of the task, or of the rank where one is known
  std::optional<int> rank;  ///< the MPI rank that printed it, where one is known
  LogStream stream = LogStream::kOutput;
  std::string text;
  bool continues = false;  ///< a long line was cut here; the next record of this source goes on

  bool operator==(const LogRecord&) const = default;
};

/// How many bytes of its source's output it stands for: its text, and the newline that ends it. (A
/// source is a stream of a rank of a task in an attempt. Where its output is cut into records may
/// differ from reading to reading; its bytes do not.)
inline uint64_t printed_size(const LogRecord& record) {
  return record.text.size() + (record.continues ? 0 : 1);
}

/// Takes from the front of `record` what of it was seen already, of `seen` bytes of its source.
/// Whether anything of it is left.
inline bool drop_seen(LogRecord& record, uint64_t& seen) {
  const uint64_t size = printed_size(record);
  if (seen >= size) {
    seen -= size;
    return false;
  }
  record.text.erase(0, seen);
  seen = 0;
  return true;
}

/// What to show of a job's logs.
struct LogQuery {
  bool follow = false;              ///< stay until the job has ended and all is read
  std::optional<std::string> task;  ///< only this task
  std::optional<int> rank;          ///< only this rank of an MPI program
  std::string grep;                 ///< only lines in which this pattern (log_pattern.h) is found
  std::optional<base::Time> since;  ///< only what was printed at or after
  std::optional<int> tail;          ///< only so many of the last lines that exist now
};

}  // namespace muster::job
