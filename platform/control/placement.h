// Decides when and where the gang of a waiting job starts. There are two implementations:
// SchedulerQueue, where Muster's own scheduler places gangs on the nodes of the engine, and
// AllocationQueue, where the engine asks a cluster with a queue of its own (Slurm) for allocations.
//
// On the EventLoop's thread.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/job_table.h"
#include "control/schedule_view.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::control {

/// A gang whose tasks have all ended after its eviction.
struct EvictedGang {
  SeatPlaces places;              ///< that it held, by seat, with those that were offered to it
  std::vector<int> evicted;       ///< the seats that the scheduler evicted
  bool is_evicted_whole = false;  ///< no task keeps its place
  bool moves = false;             ///< the scheduler has promised other places to the evicted tasks
  /// The scheduler knew it as a gang of as many workers as were placed.
  bool known_by_placed = false;
};

class Placement {
 public:
  virtual ~Placement() = default;

  /// Whether a new job could ever start. kRefused: it could not.
  virtual Result<void> check(const job::Job& job, uint64_t sequence) const = 0;
  /// The reason of a job that has just begun to wait.
  virtual job::Fact first_reason() const = 0;
  /// The expected reason to wait, and the state of the project, if the job were submitted now.
  /// `before`: the project's present state.
  virtual job::Forecast forecast(const job::Job& job, uint64_t sequence,
                                 const job::Project& project,
                                 const job::ProjectStatus& before) const = 0;
  /// Updates the answer for a waiting job to the present.
  virtual void explain(const JobEntry& entry, job::Explanation& answer) const = 0;
  /// The waiting jobs in the order in which they are expected to start, suspended jobs last.
  virtual std::vector<const job::Job*> queue() const = 0;
  /// The amounts that a waiting job has requested outside of Muster's own scheduler.
  virtual schedule::Amounts requested(const job::Job& job) const = 0;

  /// The job waits from now on, and does not start before `delay` has passed.
  virtual void enqueue(JobEntry& entry, std::chrono::milliseconds delay) = 0;
  /// The job gives up every place it has kept, and waits anew unless it is suspended.
  virtual void requeue(JobEntry& entry, std::chrono::milliseconds delay) = 0;
  /// The job waits again after its eviction. True: it is to start at once on the places that it
  /// keeps (start_on_kept()).
  virtual bool evicted(JobEntry& entry, EvictedGang gang) = 0;
  virtual void start_on_kept(JobEntry& entry) = 0;
  /// The job has ended.
  virtual void ended(JobEntry& entry) = 0;
  /// A job of an earlier server that does not run.
  virtual void restore(JobEntry& entry) = 0;
  /// A job that had ended before the server started.
  virtual void restore_ended(const job::JobFacts& job) = 0;
  /// Starts and evicts what is due; called after changes.
  virtual void plan() = 0;

  // Nodes.

  /// Whether the engine itself reports the loss of the tasks on a node that is gone.
  virtual bool reports_lost_nodes() const = 0;
  virtual void nodes_added(const std::set<std::string>& nodes) = 0;
  virtual void pools_changed() = 0;
  /// No waiting job keeps a place on the node.
  virtual void release_node(const std::string& node) = 0;
};

}  // namespace muster::control
