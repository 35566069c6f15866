// The life of a task on a lent node, from its first report to its end: the reports of its muster-node,
// stopping it, detecting its end, its artifacts, the departure of its muster-node, and the report
// of its end.
//
// If a node does not share the server's folder, the records of its tasks go into copies here
// (folder/mirror.h); otherwise the files are here already, and muster-nodes report that they have
// grown. A task that the cluster has stopped waits with its end until the reason is known, so that
// the reason is reported first.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/lent/gang_table.h"
#include "engine/lent/lender.h"
#include "engine/lent/reports.h"
#include "engine/lent/task_orders.h"

namespace muster::engine::lent {

/// Whether a task with this status has ended by itself.
inline bool is_own_end(const job::ExitStatus& status) {
  return !status.lost && !status.stopped && status.signal == 0;
}

class TaskLife {
 public:
  TaskLife(base::EventLoop& loop, const LentOptions& options, const Lender& lender,
           GangTable& gangs, Reports& reports, TaskOrders& orders)
      : loop_(loop),
        options_(options),
        lender_(lender),
        gangs_(gangs),
        reports_(reports),
        orders_(orders) {}

  /// Handles a message of the task's muster-node.
  void handle(const GangPointer& gang, const TaskPointer& task, node::NodeMessage message);
  /// Closes the connection to a task's muster-node, which then connects again and sends what the
  /// mirror lacks. To be set before the first connection.
  void on_hang_up(std::function<void(const GangPointer&, const TaskPointer&)> hang_up) {
    hang_up_ = std::move(hang_up);
  }
  /// The connection to the task's muster-node is lost.
  void line_lost(const GangPointer& gang, const TaskPointer& task);

  /// The start that the task was part of is over.
  void start_settled(const GangPointer& gang, const TaskPointer& task);

  /// Stops a task that is up.
  void stop(const GangPointer& gang, const TaskPointer& task, StopMode mode);
  void ended(const GangPointer& gang, const TaskPointer& task, TaskEnded end);
  /// Whether the task has ended, and not by a signal of the cluster. If its muster-node has not
  /// reported the end, the record in the task's folder may show it.
  bool has_own_end(const GangPointer& gang, const TaskPointer& task);
  /// Ends a task whose muster-node is gone: as lost, unless it has an end of its own. Its status then
  /// reports that the artifacts could not be fetched.
  void lose(const GangPointer& gang, const TaskPointer& task, const std::string& why);
  /// The same, with the cluster's report of the end. `how` need not be lost: the cluster may have
  /// recorded how the task ended.
  void lose(const GangPointer& gang, const TaskPointer& task, job::ExitStatus how);
  /// Orders the task's muster-node to leave.
  void dismiss(const GangPointer& gang, const TaskPointer& task);
  /// Ends tasks whose end is recorded in their folders; returns whether all ends are known now.
  bool find_ends_in_folders(const GangPointer& gang);

  /// The cluster has ended the gang: tasks that end from now on were ended by it.
  void ended_by_cluster(const GangPointer& gang);
  /// The cluster has not ended any task of the gang: they have ended as they have.
  void forget_signals(const GangPointer& gang);
  /// The same, for tasks that were suspected before this look, which found the gang running.
  void clear_suspicions(const GangPointer& gang, uint64_t look);

 private:
  void take_record(const GangPointer& gang, const TaskPointer& task, const node::RecordNews& news);
  bool reconnects_for(const GangPointer& gang, const TaskPointer& task, FollowKind kind);
  void came_up(const GangPointer& gang, const TaskPointer& task);
  void answers(const GangPointer& gang, const TaskPointer& task);
  void log_grown(const TaskPointer& task);
  void finish(const GangPointer& gang, const TaskPointer& task);
  bool another_sends_artifacts(const GangPointer& gang, const TaskPointer& task) const;
  bool owes_artifacts(const GangPointer& gang, const TaskPointer& task) const;
  void fetch_artifacts(const GangPointer& gang, const TaskPointer& task);
  void bound_silence_of_fetch(const GangPointer& gang, const TaskPointer& task);
  void fetched(const GangPointer& gang, const TaskPointer& task, uint64_t stream, Result<void> how);
  void fetch_later(const GangPointer& gang, const TaskPointer& task);
  void continue_fetch(const GangPointer& gang, const TaskPointer& task);
  void fetch_failed(const GangPointer& gang, const TaskPointer& task, const base::Error& error);
  void leave(const GangPointer& gang, const TaskPointer& task);
  /// The muster-node of a task that was ordered to leave has done so.
  void left(const GangPointer& gang, const TaskPointer& task);
  void release_watchers(const TaskPointer& task);
  void report_end(const GangPointer& gang, const TaskPointer& task);
  void report_as_it_ended(const GangPointer& gang, const TaskPointer& task);
  void wait_for_reason(const GangPointer& gang, const TaskPointer& task);
  void no_reason_came(const GangPointer& gang, const TaskPointer& task);
  void suspect_cluster(const TaskPointer& task);

  base::EventLoop& loop_;
  const LentOptions& options_;
  const Lender& lender_;
  GangTable& gangs_;
  Reports& reports_;
  TaskOrders& orders_;
  std::function<void(const GangPointer&, const TaskPointer&)> hang_up_;
};

}  // namespace muster::engine::lent
