// The last lines of a log whose end is not found yet: what comes is kept, and what stands too far
// in front is dropped, with a count of it for whoever goes on from here.
//
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "control/log_runs.h"

namespace muster::control {

/// The last lines are held until the log's end is found: of more than this, the last ones.
inline constexpr size_t kMostTailBytes = 16 << 20;

/// How many bytes of each stream of one task were dropped or handed over.
using LogCounts = std::map<RunSplitter::Key, uint64_t>;

class LogTail {
 public:
  explicit LogTail(size_t most_lines) : most_lines_(most_lines) {}

  /// A piece of a line counts as a line. `counts`: where its bytes are counted once they go; null:
  /// nowhere.
  void add(const RunSplitter::Run& run, const std::shared_ptr<LogCounts>& counts);

  /// No more is to come: what is kept are exactly the last lines.
  void trim();

  /// Moves the first of what is kept into `batch`.
  void take_some(job::LogBatch& batch, size_t bytes);

  bool empty() const { return runs_.empty(); }

 private:
  struct Held {
    RunSplitter::Key key;
    job::LogBatch::Source source;
    base::Time time;
    std::string bytes;
    size_t lines = 0;
    std::shared_ptr<LogCounts> counts;
  };

  void drop_first();
  void cut_first(size_t bytes, size_t lines);

  size_t most_lines_;
  std::deque<Held> runs_;
  size_t lines_ = 0;
  size_t cost_ = 0;  ///< in memory
};

}  // namespace muster::control
