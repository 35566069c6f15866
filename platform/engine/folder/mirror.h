// The server's copy of the folder of a task that runs elsewhere, in a container or on a node of a
// cluster: its log, its metrics, its ranks, and how it ended. It is written from the records that
// the task's shim sends (engine/shim/follow.h), and has the format of a shim's own folder, so
// it is read the same way (task_folder.h).
//
// An idle copy holds no descriptor (open_files.h).
//
// Writes files, blocking for a moment at most; on the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/folder/open_files.h"
#include "engine/shim/follow.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class Mirror {
 public:
  /// Makes the folder if it does not exist, and continues where an earlier server has stopped.
  /// `log_quota`: the shim's limit of the log; 0: no limit.
  static base::Result<Mirror> open(
      TaskFolder folder, uint64_t log_quota = 0,
      const std::shared_ptr<OpenFiles>& files = OpenFiles::of_process());

  const TaskFolder& folder() const { return folder_; }

  /// The offsets from which the shim is to send: the sizes of the copies.
  uint64_t log_offset() const { return log_offset_; }
  uint64_t metrics_offset() const { return metrics_offset_; }
  /// The number of ranks that have registered.
  size_t ranks() const { return ranks_.size(); }

  /// Writes a record to the files. Bytes that are there already are skipped; a gap is kInternal. If
  /// the disk is full (kExhausted), the caller takes the record again later.
  ///
  /// Records come from the task's machine, which may be hostile. No record leads out of the folder,
  /// and a record that no shim sends (a log far beyond its limit, oversized metrics) is not
  /// written.
  base::Result<void> take(const FollowRecord& record);

 private:
  Mirror(TaskFolder folder, uint64_t log_quota, std::shared_ptr<OpenFiles> files)
      : folder_(std::move(folder)), log_quota_(log_quota), files_(std::move(files)) {}

  base::Result<void> take_log(const FollowRecord& record);
  base::Result<void> take_log_start(const FollowRecord& record);
  base::Result<void> cut_log(uint64_t offset, std::string_view start);
  base::Result<void> take_metrics(const FollowRecord& record);
  base::Result<void> take_rank(const FollowRecord& record);

  TaskFolder folder_;
  uint64_t log_quota_;
  std::shared_ptr<OpenFiles> files_;
  uint64_t log_start_ = 0;  ///< the log before this offset was dropped
  SeldomFile log_;
  SeldomFile metrics_;
  uint64_t log_offset_ = 0;
  uint64_t metrics_offset_ = 0;
  std::set<int> ranks_;
};

}  // namespace muster::engine
