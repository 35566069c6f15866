// A piece of what a job printed, as it is merged, streamed and shown.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

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

// What several sources printed, as it is handed from reader to reader: runs of bytes, one behind
// the other in one piece of memory. A record for each line would cost more than the line.
//
// Pure. Not thread-safe.

/// Who printed: a stream of a rank of a task in an attempt. The fields are LogRecord's.
struct LogSource {
  std::string task;
  int attempt = 0;
  std::string host;
  std::optional<int> rank;
  LogStream stream = LogStream::kOutput;

  bool operator==(const LogSource&) const = default;
};

/// A run is of one source and one time. It is either whole lines, each with its newline, or a piece
/// of one line, without one, that the next run of this source goes on with.
class LogBatch {
 public:
  using Source = std::shared_ptr<const LogSource>;

  struct Run {
    size_t source = 0;  ///< in sources()
    base::Time time;
    size_t size = 0;
  };

  void add(const Source& source, base::Time time, std::string_view bytes);
  void clear();

  bool empty() const { return runs_.empty(); }
  const std::vector<Source>& sources() const { return sources_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::string& bytes() const { return bytes_; }  ///< of all runs

 private:
  size_t index_of(const Source& source);

  std::vector<Source> sources_;
  std::vector<Run> runs_;
  std::string bytes_;
};

/// A record with the source's fields, to be given the text of its lines.
LogRecord record_of(const LogSource& source);

/// Hands over a run's lines, each as a record that is valid during the call: `record` with its text
/// and whether it goes on. Returns false once `take` has, which then is handed no more.
template <class Take>
bool for_each_line(std::string_view run, LogRecord& record, Take&& take) {
  while (!run.empty()) {
    const size_t newline = run.find('\n');
    record.text.assign(run.substr(0, newline));
    record.continues = newline == std::string_view::npos;
    if (!take(record)) return false;
    if (record.continues) break;
    run.remove_prefix(newline + 1);
  }
  return true;
}

std::vector<LogRecord> records_of(const LogBatch& batch);

// The patterns of retry rules: what a user may write, and whether a line holds it.
//
// ECMAScript by std::regex, matched breadth first (a libstdc++ extension): the usual way
// backtracks, and takes an hour for `(a*)*b` on a line of 40 letters. What cannot be matched so
// (back references) or would grow without bound (long patterns, large counts) is refused.
//
// Pure; thread-safe.

inline constexpr size_t kMaxPatternBytes = 200;
inline constexpr int kMaxPatternRepeats = 100;
/// Of a longer line only so much is looked at, from its start.
inline constexpr size_t kMaxMatchedBytes = 1024;

class LogPattern {
 public:
  /// kInvalid says what is wrong with it.
  static base::Result<LogPattern> compile(const std::string& text);

  bool found_in(std::string_view line) const;

 private:
  /// Keeps <regex> out of this header, which most of the platform includes.
  struct Compiled;
  explicit LogPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;  ///< never null; shared by copies
};

}  // namespace muster::job
