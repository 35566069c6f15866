// The life of one attempt of a job, from its placement to its end: it starts the gang, follows the
// engine's reports of its tasks, and decides how the attempt ends. Attempts decides what follows
// the end: another attempt, or the end of the job.
//
// Nothing here is stored beside the job itself: a restarted server recovers an attempt from the
// stored job and the engine's answers.
//
// On the EventLoop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/attempt_services.h"
#include "control/gang_end.h"
#include "control/gang_start.h"
#include "control/placement.h"
#include "control/rank_watch.h"
#include "control/resizing.h"
#include "engine/allocation.h"

namespace muster::control {

class Attempt;

/// How an attempt reports its end. After one of the first three reports all of its tasks have
/// ended, and it is retired.
struct AttemptEvents {
  std::function<void(Attempt&, job::Phase)> finished;
  std::function<void(Attempt&)> evicted;
  std::function<void(Attempt&, const job::Fact& why, std::chrono::milliseconds delay)> abandoned;
  /// The scheduler should plan again soon.
  std::function<void()> wake;
};

/// The eviction of an attempt, by the scheduler and others.
struct AttemptEviction {
  std::vector<int> seats;  ///< that the scheduler evicted
  bool moves = false;      ///< and start elsewhere, at least some of them
  bool whole = false;      ///< no task keeps its place
};

/// The allocation of an attempt on a cluster.
struct AttemptAllocation {
  std::optional<job::SlurmState> state;
  bool is_lost = false;       ///< no task can be started in it
  bool went_too_far = false;  ///< it was lost because of a limit of the cluster
};

class Attempt {
 public:
  /// `grows`: workers may join while it runs; else `cannot_grow` is the reason.
  Attempt(const AttemptServices& services, JobEntry& entry, bool grows, std::string cannot_grow,
          AttemptEvents events);

  JobEntry& entry() const { return context_.entry; }
  const job::Job& job() const { return context_.entry.job; }
  /// The gang as the scheduler has it.
  GangShape shape() const;
  /// The places and seats of a gang whose eviction is complete.
  EvictedGang evicted_gang() const;

  void begin() { start_.begin(); }
  /// Recovers the attempt from what an earlier server left, at whatever point that server stopped.
  /// `may_grow`: workers may join an elastic gang.
  void recover(bool may_grow);
  /// All of its tasks have ended: no timer and no answer of the engine reaches it from now on.
  void retire() { alive_.reset(); }

  /// The engine reports news of a task.
  void report(const std::string& task, const engine::TaskNews& news);
  /// A node is gone. True: no task was started yet, and the attempt is abandoned if it uses the
  /// node.
  bool abandon_on_lost_node(const std::string& node);
  /// The tasks on the node that have not ended.
  std::vector<std::string> tasks_on(const std::string& node) const;
  void note_silence(const std::string& node, bool is_silent);

  /// Stops the gang, gently or at once.
  void stop(bool now);
  /// Ends the whole attempt, because most programs cannot continue without some of their ranks. The
  /// job waits again.
  void evict(const job::Eviction& why);
  /// The same for a user who suspends the job, or another cause by which no task keeps its place.
  void evict_whole(const job::Eviction& why);
  /// The same for the scheduler. `moves`: the tasks in these seats start again on other places.
  void evict_seats(const std::vector<int>& seats, bool moves, const job::Eviction& why);
  /// Evicts the tasks of a node that is drained.
  void drain(const std::string& node);
  /// As Resizing::shrink() and Resizing::offer().
  bool shrink(const std::vector<int>& seats, const job::Eviction& why) {
    return resizing_.shrink(seats, why);
  }
  void offer(const schedule::PlannedStart& start) { resizing_.offer(start); }
  /// Uses no place on the node again, if it starts again.
  void release_node(const std::string& node);

  /// The cluster reports the state of the allocation.
  void set_allocation_state(const std::optional<job::SlurmState>& state);
  /// The cluster has taken the allocation back. The tasks are lost with it.
  void lose_allocation(const engine::AllocationRevoked& taken);

 private:
  void task_ended(job::Task& task, const engine::TaskEnded& end);
  void react_to_end(job::Task& task);
  void task_answers(job::Task& task);
  void leader_runs();
  void finish_if_over();
  void conclude();
  void pause_at_rung();
  bool is_suspended() const;
  bool has_run_nothing() const;
  void decide_without_allocation(const engine::AllocationRevoked& taken);
  void recover_task(job::Task& task);
  bool is_known_by_placed() const;
  bool all_leave() const;
  void end_has_begun();
  std::vector<int> leaving_seats() const;
  job::Fact reason_while_running() const;
  GangStart::Hooks start_hooks();
  Resizing::Hooks resizing_hooks();

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  AttemptContext context_;
  AttemptEvents events_;
  GangStart start_;
  Resizing resizing_;
  GangEnd end_;
  RankWatch ranks_;
  base::Time placed_;
  AttemptEviction evicted_;
  AttemptAllocation allocation_;
};

}  // namespace muster::control
