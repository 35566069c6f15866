// The attempts of all jobs that hold places: begins an attempt when a placement grants a job its
// places, hands it the engine's reports, and carries out what follows its end.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/attempt.h"
#include "control/placement.h"

namespace muster::control {

/// The places that a gang is granted, by seat.
struct Grant {
  SeatPlaces places;
  bool kept_some = false;  ///< places of its last attempt are among them
  uint64_t slurm_job = 0;  ///< the Slurm job of their allocation; 0: no allocation
};

class Attempts {
 public:
  explicit Attempts(AttemptServices services) : services_(std::move(services)) {}

  /// To be called before anything else. `job_ended` is called when a job ends, before that is
  /// committed.
  void connect(Placement& placement, std::function<void()> wake,
               std::function<void(JobEntry&)> job_ended);
  void set_pace(const ResizePace& pace) { services_.pace = pace; }

  using All = std::map<uint64_t, std::unique_ptr<Attempt>>;
  const All& all() const { return attempts_; }  ///< by the job's sequence
  /// nullptr: the job has no attempt now.
  Attempt* of(const JobEntry& entry) const;
  Attempt* of(const engine::GangId& gang) const;

  void place(JobEntry& entry, Grant grant);
  /// Recovers an attempt that an earlier server began. `may_grow`: this server isolates the workers
  /// that join it as the earlier one did.
  void recover(JobEntry& entry, bool may_grow);
  /// `entry`: the job of the report.
  void report(const JobEntry& entry, const engine::TaskReport& report);
  /// A node is gone: its tasks are reported as lost, after `release` has been called.
  void lose_node(const std::string& node, const std::function<void()>& release);

  /// Ends the job, with its attempt if it has one.
  void finish(JobEntry& entry, job::Phase phase);

 private:
  Attempt& add(JobEntry& entry, bool grows, std::string cannot_grow);
  void remove(JobEntry& entry);
  void end_attempt(job::Job& job);
  void wait_again(JobEntry& entry, const job::Fact& why);
  void evicted(Attempt& attempt);
  void abandoned(Attempt& attempt, job::Fact why, std::chrono::milliseconds delay);

  AttemptServices services_;
  Placement* placement_ = nullptr;
  std::function<void()> wake_;
  std::function<void(JobEntry&)> job_ended_;
  All attempts_;
  std::vector<std::unique_ptr<Attempt>> retired_;  ///< destroyed in a later turn of the loop
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
