// Waiting jobs that Muster's own scheduler places: the scheduler gets each change, and its plans
// are carried out.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "control/attempts.h"
#include "control/journal.h"
#include "control/metrics.h"
#include "control/placement.h"
#include "control/scheduler_book.h"

namespace muster::control {

class SchedulerQueue : public Placement {
 public:
  /// `wake` has plan() called in a later turn of the loop.
  SchedulerQueue(base::EventLoop& loop, JobTable& jobs, Journal& journal, const NodeTable& nodes,
                 SchedulerBook& book, Attempts& attempts, Metrics& metrics,
                 std::function<void()> wake);

  Result<void> check(const job::Job& job, uint64_t sequence) const override;
  job::Fact first_reason() const override;
  job::Forecast forecast(const job::Job& job, uint64_t sequence, const job::Project& project,
                         const job::ProjectStatus& before) const override;
  void explain(const JobEntry& entry, job::Explanation& answer) const override;
  std::vector<const job::Job*> queue() const override;
  schedule::Amounts requested(const job::Job&) const override { return {}; }

  void enqueue(JobEntry& entry, std::chrono::milliseconds delay) override;
  void requeue(JobEntry& entry, std::chrono::milliseconds delay) override;
  bool evicted(JobEntry& entry, EvictedGang gang) override;
  void start_on_kept(JobEntry& entry) override;
  void ended(JobEntry& entry) override;
  void restore(JobEntry& entry) override;
  void restore_ended(const job::JobFacts& /*job*/) override {}
  void plan() override;

  bool reports_lost_nodes() const override { return false; }
  void nodes_added(const std::set<std::string>& nodes) override;
  void pools_changed() override;
  void release_node(const std::string& node) override;

 private:
  void carry_out_starts(const schedule::Plan& plan);
  void start(JobEntry& entry, SeatPlaces places);
  void carry_out(const schedule::Eviction& eviction);
  void start_partly_evicted();
  void note_wait(const schedule::WaitingGang& wait);

  base::EventLoop& loop_;
  JobTable& jobs_;
  Journal& journal_;
  const NodeTable& nodes_;
  SchedulerBook& book_;
  Attempts& attempts_;
  Metrics& metrics_;
  std::function<void()> wake_;
  base::EventLoop::Interest plan_timer_;
  /// Partly evicted gangs: the places that their other tasks keep, by the job's sequence.
  std::map<uint64_t, SeatPlaces> kept_;
};

}  // namespace muster::control
