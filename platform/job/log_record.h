// The output of jobs: records of one line, batches of many lines, and the patterns that lines are
// matched with.
//
// Pure. Not thread-safe, except LogPattern.
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
  kNotice,  ///< Muster's notes about the task, for example output lost to a full disk
};

/// At most one line, without the newline. The bytes are the program's, in any encoding.
struct LogRecord {
  base::Time time;          ///< when the shim read it
  std::string task;         ///< launcher, worker-0, main
  int attempt = 0;          ///< of the job; 0: not known
  std::string host;         ///< host name of the rank, empty if unknown; else of the task
  std::optional<int> rank;  ///< the MPI rank that printed it, if known
  LogStream stream = LogStream::kOutput;
  std::string text;
  bool continues = false;  ///< a long line was cut: the source's next record continues it

  bool operator==(const LogRecord&) const = default;
};

/// The bytes of output in the record: its text and its newline. Two readings may cut the output of
/// a source into records at different places, but its bytes are the same. (A source is a stream of
/// a rank of a task in an attempt.)
inline uint64_t printed_size(const LogRecord& record) {
  return record.text.size() + (record.continues ? 0 : 1);
}

/// Removes from the front of `record` the part within the first `seen` bytes of its source, and
/// reduces `seen`. Whether anything of the record is left.
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

/// Selects records of a job's logs.
struct LogQuery {
  bool follow = false;              ///< continue until the job has ended and all is read
  std::optional<std::string> task;  ///< only this task
  std::optional<int> rank;          ///< only this rank of an MPI program
  std::string grep;                 ///< only lines that contain this LogPattern
  std::optional<base::Time> since;  ///< only records printed at or after this time
  std::optional<int> tail;          ///< only so many of the last lines at the time of the request
  std::optional<int> attempt = {};  ///< only this attempt of the job, from 1
  bool notices = true;              ///< false: no notices, which otherwise pass all but `since`
};

// --- batches

/// A stream of a rank of a task in an attempt. The fields are LogRecord's.
struct LogSource {
  std::string task;
  int attempt = 0;
  std::string host;
  std::optional<int> rank;
  LogStream stream = LogStream::kOutput;

  bool operator==(const LogSource&) const = default;
};

/// The output of several sources as runs of bytes in one block of memory, because a record for each
/// line costs more than the line. A run is of one source and one time: whole lines, each with its
/// newline, or a piece of one line without a newline, which continues in the next run of the
/// source.
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

/// A record with the source's fields and no text.
LogRecord record_of(const LogSource& source);

/// Calls `take` with `record` for each line of a run; `record` has the line's text during the call.
/// Stops and returns false when `take` returns false.
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

// --- patterns

inline constexpr size_t kMaxPatternBytes = 200;
inline constexpr int kMaxPatternRepeats = 100;
/// Matching a byte may visit every state, at about 50 ns each: 64 KiB take at most a second.
inline constexpr size_t kMaxPatternStates = 300;
/// Only the first bytes of a longer line are matched.
inline constexpr size_t kMaxMatchedBytes = 1024;

/// A pattern of a retry rule or of `muster logs --grep`: an ECMAScript regular expression of
/// std::regex, matched breadth first (a libstdc++ extension). The default matcher backtracks, and
/// needs an hour for `(a*)*b` on a line of 40 letters. compile() rejects patterns that cannot be
/// matched breadth first (back references), that start another match at every byte (lookahead), or
/// that become large automata (long patterns, large counts).
///
/// Thread-safe.
class LogPattern {
 public:
  /// kInvalid: the error names the fault of the pattern.
  static base::Result<LogPattern> compile(const std::string& text);

  bool found_in(std::string_view line) const;

  /// About the number of states of its automaton, to which the time of a match is proportional.
  /// 0: a plain text, which is found without an automaton.
  size_t states() const;

 private:
  /// Keeps <regex> out of this header, which most of the platform includes.
  struct Compiled;
  explicit LogPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;  ///< never null; shared by copies
};

}  // namespace muster::job
