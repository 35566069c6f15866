// Turns a task's log frames into runs: whole lines of one source and one time together, as they
// stand in the frame, for a log of gigabytes passes through here.
//
// Pure. One RunSplitter a task; frames in order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/log_frame.h"
#include "job/log_record.h"

namespace muster::control {

/// A line without its newline is cut into pieces of this size, so that a gigabyte without a newline
/// costs no more memory than this.
inline constexpr size_t kLongestPiece = 64 << 10;

class RunSplitter {
 public:
  /// Each rank of a task, and each of its streams, has an unfinished line of its own.
  using Key = std::pair<std::optional<int>, job::LogStream>;

  /// As LogBatch's; `bytes` lives during the call.
  struct Run {
    const Key& key;
    const job::LogBatch::Source& source;
    base::Time time;
    std::string_view bytes;
  };
  using Emit = std::function<void(const Run&)>;

  /// `only`: the lines that are shown, and all notices; nullptr: all lines. What is not known of a
  /// source is its rank and stream. Of a line that comes in pieces, the first decides.
  RunSplitter(job::LogSource of_task, std::shared_ptr<const job::LogPattern> only = nullptr);

  /// `at`: where the frame begins in the log.
  void add(const engine::LogFrame& frame, const Emit& emit, uint64_t at = 0);

  /// Hands over what stands without a newline yet: as whole lines when `last`, else as the
  /// beginnings of lines that go on, but for those that may still come to hold the pattern.
  void flush(bool last, const Emit& emit);

  /// The same for what stands in frames before `at` alone, whatever it may come to hold.
  void flush_before(uint64_t at, const Emit& emit);

  bool has_partial() const;

  struct Line {
    std::string text;
    base::Time time;
    uint64_t at = 0;      ///< the frame in which `text` begins
    bool begun = false;   ///< a piece of it went out already
    bool hidden = false;  ///< or was found not to be one that is shown
  };

  /// The lines that are not finished, those that a piece went out of included.
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
  bool shows(const Key& key, std::string_view line) const;

  job::LogSource of_task_;
  std::shared_ptr<const job::LogPattern> only_;
  std::map<Key, Stream> streams_;
  Entry* last_ = nullptr;  ///< whoever prints much is met again soon
};

}  // namespace muster::control
