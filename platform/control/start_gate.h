// Holds jobs back until their start conditions hold (control/start_conditions.h), and passes them
// to the placement behind it. A job that is held back is Queued; the placement behind does not have
// it. A dependency that cannot be met any more fails the job.
//
// Nothing is stored beside the jobs: a restarted server finds the conditions in them. Which
// dependencies are met is stored with the job, in the same commit as the end of the other job, so
// the other job may be deleted afterwards.
//
// A job passes the gate before its first attempt. Later attempts wait here only for a server that
// isolates the jobs of users.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "control/attempts.h"
#include "control/placement.h"
#include "control/start_conditions.h"

namespace muster::control {

class StartGate : public Placement {
 public:
  /// `wake` has plan() called in a later turn of the loop. `lacks_isolation`: this server would not
  /// isolate the job as the server to which it was submitted; the same for a job as long as the
  /// server runs.
  StartGate(std::unique_ptr<Placement> behind, base::EventLoop& loop, JobTable& jobs,
            OtherJobs others, const base::Clock& clock, Attempts& attempts,
            std::function<void()> wake, std::function<bool(const job::Job&)> lacks_isolation);

  /// Enters a job that has not ended. Of stored jobs, all are entered before any is restored.
  void enter(JobEntry& entry);
  /// A job or an array has ended, and may be deleted from now on.
  void object_ended(const std::string& id);

  Result<void> check(const job::Job& job, uint64_t sequence) const override {
    return behind_->check(job, sequence);
  }
  job::Fact first_reason() const override { return behind_->first_reason(); }
  job::Forecast forecast(const job::Job& job, uint64_t sequence, const job::Project& project,
                         const job::ProjectStatus& before) const override;
  void explain(const JobEntry& entry, job::Explanation& answer) const override;
  std::vector<const job::Job*> queue() const override { return behind_->queue(); }
  schedule::Amounts requested(const job::Job& job) const override;

  void enqueue(JobEntry& entry, std::chrono::milliseconds delay) override;
  void requeue(JobEntry& entry, std::chrono::milliseconds delay) override;
  bool evicted(JobEntry& entry, EvictedGang gang) override;
  void start_on_kept(JobEntry& entry) override { behind_->start_on_kept(entry); }
  void ended(JobEntry& entry) override;
  void restore(JobEntry& entry) override;
  void restore_ended(const job::JobFacts& job) override { behind_->restore_ended(job); }
  /// Decides about the jobs that a change concerns, and plans behind the gate.
  void plan() override;

  bool reports_lost_nodes() const override { return behind_->reports_lost_nodes(); }
  void nodes_added(const std::set<std::string>& nodes) override { behind_->nodes_added(nodes); }
  void pools_changed() override { behind_->pools_changed(); }
  void release_node(const std::string& node) override { behind_->release_node(node); }

 private:
  using SingletonKey = std::tuple<std::string, std::string, std::string>;  ///< project, owner, text

  bool has_conditions(const job::Job& job) const;
  StartConditions conditions_of(const job::Job& job, uint64_t sequence) const;
  void decide(JobEntry& entry);
  void note_met(JobEntry& entry);
  bool may_end_yet(const std::string& id) const;
  void hold(JobEntry& entry, StartDecision decision);
  void pass(JobEntry& entry);
  void forget(JobEntry& entry);
  JobEntry* held_entry(uint64_t sequence) const;
  void decide_due();

  std::unique_ptr<Placement> behind_;
  base::EventLoop& loop_;
  JobTable& jobs_;
  const OtherJobs others_;
  const base::Clock& clock_;
  Attempts& attempts_;
  std::function<void()> wake_;
  const std::function<bool(const job::Job&)> lacks_isolation_;
  std::map<uint64_t, std::string> held_;  ///< sequence of a job that is held back -> constraint
  std::set<uint64_t> undecided_;          ///< held jobs whose conditions may have changed
  std::set<std::pair<base::Time, uint64_t>> begins_;  ///< of held jobs
  /// Held jobs that wait for arrays: every plan decides about them.
  std::set<uint64_t> behind_arrays_;
  /// The id of a job, of an array or of its member ("ARRAY/INDEX") -> the sequences of the jobs that
  /// wait for its end.
  std::map<std::string, std::vector<uint64_t>> dependents_;
  std::map<SingletonKey, std::set<uint64_t>> singletons_;  ///< the jobs that have not ended
  base::EventLoop::Interest timer_;
};

}  // namespace muster::control
