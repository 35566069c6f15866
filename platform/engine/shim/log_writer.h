// Appends to a task's log, and never blocks the task. When the disk is full, bytes are dropped and
// counted, and a notice in the log reports the loss as soon as the disk has room again. Space for a
// last notice is allocated behind the end of the log, so the loss is reported on a disk that stays
// full, too. When the log has grown past its quota, its oldest part is removed. Where the file
// system cannot remove the front of a file, the log ends at its quota, with a notice.
//
// One writer a log; not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "job/log_record.h"

namespace muster::engine {

/// Frees the disk space between two offsets of a file; the file keeps its size. False: the file
/// system cannot do that.
using PunchHole = std::function<bool(int file, int64_t begin, int64_t end)>;
bool punch_hole(int file, int64_t begin, int64_t end);

struct LogQuota {
  uint64_t bytes = 0;           ///< 0: no limit
  std::filesystem::path start;  ///< path of log.start (log_frame.h)
  PunchHole punch = punch_hole;
};

class LogWriter {
 public:
  /// `file`: open for writing, positioned at its end.
  LogWriter(base::UniqueFd file, const base::Clock& clock, LogQuota quota = {});

  /// Writes any number of bytes, as one or more frames.
  void write(job::LogStream stream, std::string_view bytes, std::optional<int> rank = std::nullopt);

  /// Writes a line of Muster's own.
  void notice(std::string_view text) { write(job::LogStream::kNotice, std::string(text) + "\n"); }

  /// Writes the last notice if output is missing at the end; frees the space allocated for it.
  void finish();

  /// Bytes that were dropped and that no notice in the log reports yet.
  uint64_t lost() const { return lost_; }
  /// All bytes that were dropped because the disk was full.
  uint64_t lost_in_all() const { return lost_in_all_; }

 private:
  void write_frame(job::LogStream stream, std::string_view part, std::optional<int> rank,
                   int64_t kept);
  void lose(size_t bytes);
  bool append(std::string_view frame);
  std::string loss_frame() const;
  bool reserve(int64_t bytes);
  bool allocate(int64_t bytes);
  void mark();
  void keep_quota();
  void cut();
  void end_at_quota();

  base::UniqueFd file_;
  const base::Clock& clock_;
  LogQuota quota_;
  int64_t size_ = 0;       ///< end of the last whole frame
  int64_t allocated_ = 0;  ///< end of the allocated space
  int64_t start_ = 0;      ///< offset of the oldest byte that is kept
  uint64_t lost_ = 0;
  uint64_t lost_in_all_ = 0;
  bool ended_ = false;         ///< the log ended at its quota
  std::deque<int64_t> marks_;  ///< offsets of some frames, at which the front may be cut
};

}  // namespace muster::engine
