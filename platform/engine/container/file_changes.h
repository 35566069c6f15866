// Changes files of running tasks by a program in their containers. Copying a file into a container
// from outside would remove the old file first, and would follow links that the task has made.
//
// /etc/hosts is not changed: tasks on a job's network find each other by name, and tasks on the
// network of their hosts have had their names (their own and the leader's) from the start.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "launch/task_plan.h"

namespace muster::engine {

class FileChanges {
 public:
  /// `patience`: the time limit for a container's answer.
  FileChanges(base::EventLoop& loop, std::chrono::milliseconds patience);
  ~FileChanges();

  /// Writes the files of `change` in the task's container. Succeeds if the task ends meanwhile.
  void change(const std::shared_ptr<HeldTask>& task, const launch::FileChange& change, Then then);
  /// Drops all pending changes.
  void clear();

 private:
  class Change;

  base::EventLoop& loop_;
  std::chrono::milliseconds patience_;
  Later later_;
  std::vector<std::shared_ptr<Change>> pending_;
};

}  // namespace muster::engine
