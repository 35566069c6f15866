// The log of one task by line numbers: windows of a few lines from anywhere in a log of gigabytes, and
// a search that continues where the last answer ended.
//
// A log on disk is a sequence of frames without an index, so a LogIndex reads it once, from its front,
// and remembers every 64 KiB which line begins there: 0.6 MB of memory for a log of 1 GB. Later calls
// read only what was added since. A line is numbered by its newline: programs that print at once get
// consecutive numbers in the order in which their lines end.
//
// After an error every later call fails with it: make another index.
//
// Blocking: it reads files. Not thread-safe, but may be used by one thread after another.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::logs {

/// A line of a window. Its record has no task, attempt and host.
struct NumberedLine {
  uint64_t number = 0;  ///< the first line has 0
  job::LogRecord record;
  uint64_t bytes = 0;       ///< its length; more than the record's text if the text was shortened
  bool unfinished = false;  ///< the newline is still missing
  bool hit = false;         ///< of a search
};

/// What is known of the whole log.
struct LogExtent {
  uint64_t bytes = 0;  ///< on disk, as far as they were read
  uint64_t lines = 0;
  uint64_t first = 0;    ///< the first line that is still there: the front may have been cut
  bool complete = true;  ///< false: more of the log is to be read; ask again
};

struct LogWindow {
  LogExtent extent;
  std::vector<NumberedLine> lines;
};

struct LogWindowQuery {
  std::optional<uint64_t> line;  ///< the first line; nothing: the last lines
  size_t lines = 100;
};

struct LogSearchQuery {
  /// Whether a line is a hit.
  std::function<bool(const job::LogRecord&)> matches;
  uint64_t line = 0;   ///< where the search begins
  size_t hits = 100;   ///< at most so many
  size_t context = 0;  ///< lines before and after each hit
  /// Called after each line. If it returns true, the search ends and sets `next`; at least one line
  /// is searched. Empty: no time limit.
  std::function<bool()> is_late = {};
};

struct LogSearchResult {
  LogExtent extent;
  std::vector<NumberedLine> lines;  ///< hits, and their context
  std::optional<uint64_t> next;     ///< where to continue; nothing: the end was reached
};

class LogIndex {
 public:
  static constexpr uint64_t kStep = 64 << 10;
  /// How much of a log one call reads, in about a second.
  static constexpr uint64_t kMostRead = 512 << 20;
  static constexpr size_t kMostLines = 2000;        ///< of a window
  static constexpr size_t kMostShown = 4096;        ///< bytes of a line
  static constexpr size_t kMostMatched = 64 << 10;  ///< bytes of a line that a search sees

  /// `log`: a cursor at the beginning of the log.
  explicit LogIndex(std::unique_ptr<engine::LogCursor> log) : log_(std::move(log)) {}

  /// `log`: another cursor at the beginning.
  base::Result<LogWindow> window(engine::LogCursor& log, const LogWindowQuery& query);
  base::Result<LogSearchResult> search(engine::LogCursor& log, const LogSearchQuery& query);

 private:
  struct Entry {
    uint64_t offset = 0;  ///< of a frame
    uint64_t from = 0;    ///< of the frame in which the oldest line begins that is unfinished there
    uint64_t line = 0;    ///< number of the next line that ends
  };
  using Key = std::pair<std::optional<int>, job::LogStream>;

  base::Result<void> extend();
  void count(const engine::LogFrame& frame);
  const Entry& entry_before(uint64_t line) const;
  /// Calls `take` for each line from `entry` on until it returns false or the indexed part ends; then
  /// for the unfinished lines.
  base::Result<void> read_from(engine::LogCursor& log, const Entry& entry,
                               const std::function<bool(NumberedLine)>& take);

  std::unique_ptr<engine::LogCursor> log_;
  std::vector<Entry> entries_{Entry{}};
  std::map<Key, uint64_t> unfinished_;  ///< the frame in which each begins
  LogExtent extent_;
  std::optional<base::Error> failure_;  ///< the log could not be read further
};

}  // namespace muster::logs
