// How far a job's merged log was delivered, so exactly that another reader, even one of another
// server, continues with the next byte.
//
// The logs of tasks are merged as they arrive: a late line follows lines that are newer. Therefore
// a position contains an offset for the log of each task, at the end of a frame. Of a line without
// its newline, the bytes that were not delivered precede that offset. In a tail, the bytes that are
// left out follow it.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/log_record.h"

namespace muster::logs {

/// Pending bytes begin at most this far before the offset: a reader that continues reads them
/// again.
inline constexpr uint64_t kFarthestPending = 2 << 20;

struct LogPosition {
  /// One rank's stream in the log of a task.
  struct Part {
    enum class What {
      kPending,  ///< the last `bytes` bytes before `at` are not delivered yet
      kBegun,    ///< the same; the beginning of their line was delivered
      kHidden,   ///< the same; the beginning of their line does not contain the pattern
      kSeen,     ///< the next `bytes` bytes are not to be delivered again
    };
    std::optional<int> rank;
    job::LogStream stream = job::LogStream::kOutput;
    What what = What::kPending;
    uint64_t bytes = 0;

    bool operator==(const Part&) const = default;
  };

  struct Source {
    int attempt = 0;
    std::string task;
    uint64_t from = 0;  ///< offset of the frame with the first pending byte; else `at`
    uint64_t at = 0;    ///< offset of the first frame that was not read
    /// That frame cannot be read, and the notice of this was delivered.
    bool damage_shown = false;
    std::vector<Part> parts;

    bool operator==(const Source&) const = default;
  };

  int settled = 0;  ///< attempts up to this one were delivered completely
  std::vector<Source> sources;

  /// nullptr: nothing of this task was delivered.
  const Source* find(int attempt, std::string_view task) const;

  bool operator==(const LogPosition&) const = default;
};

/// "1;2.worker-0@4096;2.worker-1@100-250,3o-17;2.worker-2@99!": one line without spaces. The
/// position of a very large job is in a compact form that is not readable, so that it fits into a
/// header.
std::string to_string(const LogPosition& position);
std::optional<LogPosition> log_position_of(std::string_view text);

}  // namespace muster::logs
