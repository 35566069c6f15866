// Divides the log frames of a task into lines. RunSplitter emits runs: all lines of one frame with
// the same source, without copying them, because logs of gigabytes pass through it. LineSplitter
// emits one record a line. LogTail keeps the last lines of a log.
//
// Pure. One splitter for each task, which takes the frames in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::logs {

/// A line without a newline is divided into pieces of this size, so that it costs no more memory.
inline constexpr size_t kLongestPiece = 64 << 10;

class RunSplitter {
 public:
  /// Each stream of each rank has its own unfinished line.
  using Key = std::pair<std::optional<int>, job::LogStream>;

  /// `bytes` is valid during the call.
  struct Run {
    const Key& key;
    const job::LogBatch::Source& source;
    base::Time time;
    std::string_view bytes;
  };
  using Emit = std::function<void(const Run&)>;

  /// Where the ranks of a log ran. The ranks whose output passed through a launcher may have run on
  /// other hosts: their sources have no host.
  enum class Ranks { kOfThisHost, kOfAnyHost };

  /// `of_task`: the source without its rank and stream. `only`: the pattern of the lines to show,
  /// beside all notices; nullptr: all lines. The first piece of a line decides for the others.
  RunSplitter(job::LogSource of_task, std::shared_ptr<const job::LogPattern> only = nullptr,
              Ranks ranks = Ranks::kOfThisHost);

  /// `at`: where the frame begins in the log.
  void add(const engine::LogFrame& frame, const Emit& emit, uint64_t at = 0);

  /// Emits lines without their newlines: as whole lines if `last`, else as beginnings of lines,
  /// except lines that may still come to contain the pattern.
  void flush(bool last, const Emit& emit);

  /// The same as flush(false), for lines that began in frames before `at`.
  void flush_waiting(uint64_t at, const Emit& emit);

  /// The same for lines that began in frames before `at`, whatever they may come to contain.
  void flush_before(uint64_t at, const Emit& emit);

  bool has_partial() const;

  struct Line {
    std::string text;
    base::Time time;
    uint64_t at = 0;      ///< offset of the frame in which `text` begins
    bool begun = false;   ///< a piece of the line was emitted
    bool hidden = false;  ///< the line does not contain the pattern
  };

  /// The unfinished lines, including lines of which a piece was emitted.
  std::map<Key, Line> unfinished() const;
  void restore(const Key& key, Line line);

 private:
  struct Stream {
    job::LogBatch::Source source;
    Line line;
  };
  using Entry = std::map<Key, Stream>::value_type;

  Entry& entry_of(const Key& key);
  std::string_view finish_line(Entry& entry, const engine::LogFrame& frame, uint64_t at,
                               const Emit& emit);
  void emit_lines(Entry& entry, base::Time time, std::string_view lines, const Emit& emit) const;
  void emit_piece(Entry& entry, bool last, const Emit& emit) const;
  bool may_still_match(const Line& line) const;
  bool shows(const Key& key, std::string_view line) const;

  job::LogSource of_task_;
  std::shared_ptr<const job::LogPattern> only_;
  Ranks ranks_;
  std::map<Key, Stream> streams_;
  Entry* last_ = nullptr;  ///< the last one used, which is usually the next
};

/// Emits a record for each line, for callers that read little.
class LineSplitter {
 public:
  using Emit = std::function<void(job::LogRecord)>;

  LineSplitter(std::string task, std::string host, int attempt = 0);

  void add(const engine::LogFrame& frame, const Emit& emit);

  /// Emits lines without their newlines: as whole lines if `last`, else as beginnings of lines.
  void flush(bool last, const Emit& emit);

 private:
  RunSplitter runs_;
};

/// The last lines are kept in memory until the end of the log is found: at most this many bytes.
inline constexpr size_t kMostTailBytes = 16 << 20;

/// How many bytes of each stream of one task were dropped or delivered.
using LogCounts = std::map<RunSplitter::Key, uint64_t>;

/// The last lines of a log while its end is being searched: drops lines that are too far in front,
/// and counts their bytes for the position.
class LogTail {
 public:
  explicit LogTail(size_t most_lines) : most_lines_(most_lines) {}

  /// Takes whole lines or a piece of a line. The pieces of a line are dropped together, except that
  /// of a line of more than kMostTailBytes the end remains. `counts`: where the bytes are counted
  /// when they are dropped; nullptr: nowhere.
  void add(const RunSplitter::Run& run, const std::shared_ptr<LogCounts>& counts);

  /// The log is complete: keeps exactly the last lines.
  void trim();

  /// Moves the first lines into `batch`, about `bytes` bytes.
  void take_some(job::LogBatch& batch, size_t bytes);

  bool empty() const { return runs_.empty(); }

 private:
  struct Held {
    RunSplitter::Key key;
    job::LogBatch::Source source;
    base::Time time;
    std::string bytes;
    size_t lines = 0;  ///< lines that begin in it
    std::shared_ptr<LogCounts> counts;
  };
  /// The last line of a source.
  struct LastLine {
    bool is_open = false;     ///< its newline is missing
    bool is_dropped = false;  ///< its beginning was dropped, and its other pieces are, too
  };

  void pop_first();
  void drop_first(bool for_memory);
  void drop_rest_of_line(const job::LogBatch::Source& source);
  void cut_first(size_t bytes, size_t lines);

  size_t most_lines_;
  std::deque<Held> runs_;
  std::map<job::LogBatch::Source, LastLine> last_lines_;
  size_t lines_ = 0;
  size_t cost_ = 0;  ///< bytes in memory
};

}  // namespace muster::logs
