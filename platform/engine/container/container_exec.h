// Runs programs in containers beside the task's own program, and attaches to the task's own
// program. Both go through the task's shim (engine/shim/run_wire.h).
//
// On the loop's thread. The client must outlive the returned objects.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/docker_client.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "engine/engine.h"
#include "engine/folder/run_conversation.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// Runs a program in a container whose shim is running. Faults are reported later: if the program
/// does not exist, or the container has ended, the exit code is 127 and the status has the reason.
std::unique_ptr<Exec> run_in_container(base::EventLoop& loop, DockerClient& client,
                                       const std::string& container, const ExecPlan& plan,
                                       ExecHandlers handlers);

/// The input and output of the task's own program. Its end is reported when its log is complete.
std::unique_ptr<Exec> attach_to_container(base::EventLoop& loop, DockerClient& client,
                                          const std::string& container, TaskEnd end,
                                          ExecHandlers handlers);

/// Changes files of running tasks by a program in their containers. Copying a file into a container
/// from outside would remove the old file first, and would follow links that the task has made.
///
/// /etc/hosts is not changed: tasks on a job's network find each other by name, and tasks on the
/// network of their hosts have had their names (their own and the leader's) from the start.
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
