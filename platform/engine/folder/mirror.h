// The copy of a task's folder that a server keeps of a task in a container: its log, its metrics,
// the ranks that signed in, how it ended. Written from what the task's shim tells
// (engine/shim/follow_wire.h), so the readers of the process engine's folders read it, too.
//
// Writes files, blocking for a moment at most; on the loop's thread.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/follow_wire.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class Mirror {
 public:
  /// Makes the folder where it is not there yet, and goes on where an earlier server ended.
  /// `log_quota`: that its shim keeps the log within; 0: any size.
  static base::Result<Mirror> open(TaskFolder folder, uint64_t log_quota = 0);

  const TaskFolder& folder() const { return folder_; }

  /// From where on the shim is to tell: the sizes of what is here.
  uint64_t log_offset() const { return log_offset_; }
  uint64_t metrics_offset() const { return metrics_offset_; }
  /// That have signed in.
  size_t ranks() const { return ranks_.size(); }

  /// Takes a record into the files. What is there already is skipped, a gap is an error
  /// (kInternal). What a full disk did not take (kExhausted) is asked for again by the offsets.
  ///
  /// The records come from where the task runs, which may be hostile: none leads out of the folder,
  /// and what no shim would tell (a log far past its quota, metrics past their size) is not kept.
  base::Result<void> take(const FollowRecord& record);

 private:
  Mirror(TaskFolder folder, uint64_t log_quota)
      : folder_(std::move(folder)), log_quota_(log_quota) {}

  base::Result<void> take_log(const FollowRecord& record);
  base::Result<void> take_log_start(const FollowRecord& record);
  base::Result<void> cut_log(uint64_t offset, std::string_view start);
  base::Result<void> take_metrics(const FollowRecord& record);
  base::Result<void> take_rank(const FollowRecord& record);

  TaskFolder folder_;
  uint64_t log_quota_;
  uint64_t log_start_ = 0;  ///< nothing of what stands before it is left
  base::UniqueFd log_;
  base::UniqueFd metrics_;
  uint64_t log_offset_ = 0;
  uint64_t metrics_offset_ = 0;
  std::set<int> ranks_;
};

}  // namespace muster::engine
