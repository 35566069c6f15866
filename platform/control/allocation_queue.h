// Waiting jobs of an engine that asks a cluster for allocations: the cluster has a queue of its
// own, and decides which job starts where. Muster's scheduler holds only the running jobs, for the
// figures of nodes and projects.
//
// A waiting job has requested an allocation for its next attempt, and nothing else; a running job
// has the allocation of its present attempt. Both are requested and released only after the store
// has the job's state. A server that dies in between finds a job that requests the same attempt
// again, and the engine finds its earlier request. News of any other attempt is late, and ignored.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "control/attempts.h"
#include "control/journal.h"
#include "control/launch_planner.h"
#include "control/placement.h"
#include "control/scheduler_book.h"
#include "engine/engine.h"

namespace muster::control {

class AllocationQueue : public Placement {
 public:
  /// Listens to the engine's news of allocations. `wake` has plan() called in a later turn of the
  /// loop.
  AllocationQueue(base::EventLoop& loop, engine::Engine& engine, JobTable& jobs, Journal& journal,
                  const NodeTable& nodes, SchedulerBook& book, Attempts& attempts,
                  const LaunchPlanner& planner, std::function<void()> wake);
  ~AllocationQueue() override;

  Result<void> check(const job::Job& job, uint64_t sequence) const override;
  job::Fact first_reason() const override { return asking_reason({}); }
  job::Forecast forecast(const job::Job& job, uint64_t sequence, const job::Project& project,
                         const job::ProjectStatus& before) const override;
  void explain(const JobEntry& entry, job::Explanation& answer) const override;
  /// By the start times that the cluster estimates, as far as it does.
  std::vector<const job::Job*> queue() const override;
  schedule::Amounts requested(const job::Job& job) const override;

  void enqueue(JobEntry& entry, std::chrono::milliseconds delay) override;
  void requeue(JobEntry& entry, std::chrono::milliseconds delay) override;
  bool evicted(JobEntry& entry, EvictedGang gang) override;
  void start_on_kept(JobEntry&) override {}
  void ended(JobEntry& entry) override;
  /// Requests again, or releases, what the earlier server may have requested.
  void restore(JobEntry& entry) override;
  void restore_ended(const job::JobFacts& job) override;
  /// Makes the requests whose delay has passed.
  void plan() override;

  bool reports_lost_nodes() const override { return true; }
  void nodes_added(const std::set<std::string>& nodes) override;
  void pools_changed() override {}
  void release_node(const std::string&) override {}

 private:
  /// The request of a waiting job. Never stored: a restarted server requests again.
  struct Request {
    uint64_t turn = 0;        ///< another number each time the job begins or stops to wait
    bool is_pending = false;  ///< requested for the next attempt, and not answered
    bool was_taken = false;  ///< the last allocation was taken back: the cluster may grant it again
    std::string constraint;  ///< the cluster's word for the reason of the wait
    std::optional<base::Time> not_before;  ///< nothing is requested before this time
  };

  Request& request_of(const JobEntry& entry) { return requests_[entry.sequence]; }
  Request& begin_turn(const JobEntry& entry);
  void request_once_committed(const JobEntry& entry);
  void request(JobEntry& entry);
  void release(const JobEntry& entry);
  void release(const std::string& id, int attempt);
  void take_news(const engine::GangId& gang, const engine::AllocationNews& news);
  void waits(JobEntry& entry, const engine::AllocationPending& news);
  void granted(JobEntry& entry, const engine::AllocationGranted& allocation);
  void refused(JobEntry& entry, const base::Error& error);
  void taken_before_granted(JobEntry& entry, const engine::AllocationRevoked& taken);
  void request_another(JobEntry& entry, const engine::AllocationRevoked& taken,
                       std::chrono::milliseconds delay);
  job::Fact asking_reason(std::optional<job::AllocationEnd> after) const;

  base::EventLoop& loop_;
  engine::Engine& engine_;
  JobTable& jobs_;
  Journal& journal_;
  const NodeTable& nodes_;
  SchedulerBook& book_;
  Attempts& attempts_;
  const LaunchPlanner& planner_;
  std::function<void()> wake_;
  base::EventLoop::Interest plan_timer_;
  std::map<uint64_t, Request> requests_;  ///< by the job's sequence
  std::set<uint64_t> delayed_;            ///< jobs whose request waits for its time: sequences
  uint64_t turns_ = 0;
};

}  // namespace muster::control
