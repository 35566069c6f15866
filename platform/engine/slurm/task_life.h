// The life of a task in Slurm, from its first report to its end: the reports of its muster-node,
// stopping it, detecting its end, its artifacts, the departure of its muster-node, and the report
// of its end.
//
// If a node does not share the server's folder, the records of its tasks go into copies here
// (folder/mirror.h); otherwise the files are here already, and muster-nodes report that they have
// grown. A task that Slurm has stopped waits with its end until Slurm lists the reason, so that the
// reason is reported first.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/options.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/reports.h"
#include "engine/slurm/task_orders.h"

namespace muster::engine::slurm {

class TaskLife {
 public:
  TaskLife(base::EventLoop& loop, const SlurmEngineOptions& options, GangTable& gangs,
           Reports& reports, SlurmQueue& queue, TaskOrders& orders)
      : loop_(loop),
        options_(options),
        gangs_(gangs),
        reports_(reports),
        queue_(queue),
        orders_(orders) {}

  /// Handles a message of the task's muster-node.
  void handle(const GangPointer& gang, const TaskPointer& task, node::NodeMessage message);
  /// The connection to the task's muster-node is lost.
  void line_lost(const GangPointer& gang, const TaskPointer& task);

  /// The start that the task was part of is over.
  void start_settled(const GangPointer& gang, const TaskPointer& task);

  /// Stops a task that is up.
  void stop(const GangPointer& gang, const TaskPointer& task, StopMode mode);
  void ended(const GangPointer& gang, const TaskPointer& task, TaskEnded end);
  /// Ends a task as lost, unless it has ended by itself.
  void lose(const GangPointer& gang, const TaskPointer& task, const std::string& why);
  /// Orders the task's muster-node to leave.
  void dismiss(const GangPointer& gang, const TaskPointer& task);
  /// Ends tasks whose end is recorded in their folders; returns whether all ends are known now.
  bool find_ends_in_folders(const GangPointer& gang);

  /// Slurm has ended the job: tasks that end from now on were ended by Slurm.
  void ended_by_slurm(const GangPointer& gang);
  /// Slurm has not ended any task of the gang: they have ended as they have.
  void forget_signals(const GangPointer& gang);
  /// The same, for tasks that were suspected before this poll, which listed the job as running.
  void clear_suspicions(const GangPointer& gang, uint64_t poll);

 private:
  void take_record(const GangPointer& gang, const TaskPointer& task, const node::RecordNews& news);
  void came_up(const GangPointer& gang, const TaskPointer& task);
  void answers(const GangPointer& gang, const TaskPointer& task);
  void log_grown(const TaskPointer& task);
  void finish(const GangPointer& gang, const TaskPointer& task);
  void fetch_artifacts(const GangPointer& gang, const TaskPointer& task);
  void leave(const GangPointer& gang, const TaskPointer& task);
  void release_watchers(const TaskPointer& task);
  void report_end(const GangPointer& gang, const TaskPointer& task);
  void report_as_it_ended(const GangPointer& gang, const TaskPointer& task);
  void wait_for_reason(const GangPointer& gang, const TaskPointer& task);
  void no_reason_came(const GangPointer& gang, const TaskPointer& task);
  void suspect_slurm(const TaskPointer& task);

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  GangTable& gangs_;
  Reports& reports_;
  SlurmQueue& queue_;
  TaskOrders& orders_;
};

}  // namespace muster::engine::slurm
