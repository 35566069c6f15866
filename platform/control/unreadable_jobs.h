// Jobs whose stored records cannot be read, and running jobs of which there is no record, as after the
// restore of an older backup. Each is shown in place of the job, and keeps its name.
// Tasks of jobs that have ended by their records, as after a start with another folder of jobs, are
// ended; their GPUs are free once the tasks have ended.
// The running tasks of the others keep running, and no other job gets their GPUs meanwhile: they count as used by
// the project, and are never evicted, because the record would decide what follows.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/job_table.h"
#include "control/scheduler_book.h"
#include "engine/engine.h"
#include "store/store.h"

namespace muster::control {

/// Logs each record that cannot be read. One record must not keep the others from being served. A
/// project is the exception: without its record its quota is unknown, and jobs would start that the
/// quota forbids. Errors: kInternal: a project's record cannot be read.
Result<void> report_unreadable(const store::Contents& stored);

class UnreadableJobs {
 public:
  UnreadableJobs(engine::Engine& engine, JobTable& jobs, SchedulerBook& book)
      : engine_(engine), jobs_(jobs), book_(book) {}

  /// Adds an entry in place of the job. `submitted`: the time of the job before it.
  void add(const store::Unreadable& record, base::Time submitted);
  /// Adds an entry for each job that runs without a record. Its name is its id: names in its own
  /// environment may have been chosen by its user. Its project is the one named there, if
  /// `has_project`, otherwise the default project.
  void add_unknown(base::Time now, const std::function<bool(const std::string&)>& has_project);
  bool any() const { return any_; }

  /// Finds the running tasks of the job.
  void recover(JobEntry& entry);
  /// Ends the running tasks of jobs that have ended.
  void end_tasks_of_ended();
  /// The engine reports news of a task. True: resources became free.
  bool report(JobEntry& entry, const engine::TaskReport& report);
  bool has_tasks(const JobEntry& entry) const { return tasks_.contains(entry.sequence); }
  /// Whether tasks run of the job with this id, or of a job that the array, sweep or schedule with this
  /// id has made.
  bool has_tasks_of(const std::string& id) const;
  void stop(const JobEntry& entry, bool now);

 private:
  void hold(const JobEntry& entry, std::vector<engine::RunningTask> running);
  void show_tasks(JobEntry& entry) const;

  engine::Engine& engine_;
  JobTable& jobs_;
  SchedulerBook& book_;
  bool any_ = false;
  std::map<uint64_t, std::vector<engine::RunningTask>> tasks_;  ///< by the job's sequence
};

}  // namespace muster::control
