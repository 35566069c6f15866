// The copy of a task's folder that a server keeps of a task in a container: its log, its metrics,
// the ranks that signed in, how it ended. Written from what the task's shim tells
// (engine/shim/follow_wire.h), so the readers of the process engine's folders read it, too.
//
// Writes files, blocking for a moment at most; on the loop's thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/follow_wire.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class Mirror {
 public:
  /// Makes the folder where it is not there yet, and goes on where an earlier server ended.
  static base::Result<Mirror> open(TaskFolder folder);

  const TaskFolder& folder() const { return folder_; }

  /// From where on the shim is to tell: the sizes of what is here.
  uint64_t log_offset() const { return log_offset_; }
  uint64_t metrics_offset() const { return metrics_offset_; }

  /// Takes a record into the files. What is there already is skipped, a gap is an error.
  base::Result<void> take(const FollowRecord& record);

 private:
  explicit Mirror(TaskFolder folder) : folder_(std::move(folder)) {}

  TaskFolder folder_;
  base::UniqueFd log_;
  base::UniqueFd metrics_;
  uint64_t log_offset_ = 0;
  uint64_t metrics_offset_ = 0;
};

}  // namespace muster::engine
