// How far a job's merged log was handed over, so exactly that another reader, of another server as
// well, goes on with the very next byte.
//
// The tasks' logs are merged as they come: a line that arrives late stands behind others that are
// newer. So the place is that of each task's log on its own, at the end of a frame. Of a line whose
// newline has not come, what was not handed over yet stands in front of that place; of the last
// lines that somebody asked for, what comes before them is left out behind it.
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

/// What is pending begins no farther back than this: it is read again by whoever goes on from here.
inline constexpr uint64_t kFarthestPending = 2 << 20;

struct LogPosition {
  /// One rank's stream in the log of a task.
  struct Part {
    enum class What {
      kPending,  ///< the last so many bytes before `at` are yet to come
      kBegun,    ///< the same, of a line whose beginning was handed over
      kHidden,   ///< the same, of a line whose beginning was found not to hold the pattern
      kSeen,     ///< the next so many bytes of records are not to come again
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
    uint64_t from = 0;  ///< the frame in which the first pending byte stands; else `at`
    uint64_t at = 0;    ///< the first frame that was not read
    std::vector<Part> parts;

    bool operator==(const Source&) const = default;
  };

  int settled = 0;  ///< of the attempts up to this one, all was handed over
  std::vector<Source> sources;

  /// nullptr: nothing of this one was handed over.
  const Source* find(int attempt, std::string_view task) const;

  bool operator==(const LogPosition&) const = default;
};

/// "1;2.worker-0@4096;2.worker-1@100-250,3o-17": one line without spaces.
std::string to_string(const LogPosition& position);
std::optional<LogPosition> log_position_of(std::string_view text);

}  // namespace muster::logs
