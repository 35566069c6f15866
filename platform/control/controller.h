// The loop of the orchestrator: store -> schedule -> launch -> engine -> store. The controller
// connects the parts that own the data, and carries out the requests of callers:
//
//   Arrays           the arrays, which make jobs
//   Schedules        the schedules, which make jobs at their times
//   JobTable         the jobs, their changes and their watchers; Journal commits the changes
//   StartGate        the jobs that wait for other jobs, for a time or for a singleton
//   Placement        when and where other waiting jobs start: SchedulerQueue or AllocationQueue
//   Attempts         the running attempts; Attempt is the life of one of them
//   NodeService      the nodes of the engine
//   ProjectService   the projects and their quotas
//   RetentionKeeper  how long ended jobs are kept
//   Sweeps           the sweeps, which submit and pause the jobs of their trials
//
// Only the controller and its parts change jobs. Every change is committed before it is reported,
// and all changes in one turn of the event loop are committed together. recover() continues what an
// earlier server left, at whatever point that server stopped.
//
// On the EventLoop's thread; what ControllerDependencies refers to must outlive the controller.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "control/accounts.h"
#include "control/arrays.h"
#include "control/attempts.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/launch_planner.h"
#include "control/metrics.h"
#include "control/node_service.h"
#include "control/placement.h"
#include "control/project_service.h"
#include "control/retention.h"
#include "control/scheduler_book.h"
#include "control/schedules.h"
#include "control/start_gate.h"
#include "control/submission.h"
#include "control/unreadable_jobs.h"
#include "engine/engine.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "store/store.h"

namespace muster::logs {
class LogFollower;
class MetricBook;
class ProgressBook;
}  // namespace muster::logs

namespace muster::control {

using base::Result;

/// How a job is submitted, beside its spec.
struct SubmitManner {
  /// "train-{n}": the job gets the next such name (JobTable::next_name) instead of the name in its
  /// spec. Empty: the name in its spec.
  std::string name_template = {};
  /// A taken name becomes NAME-2, NAME-3 ...
  bool name_suffix = false;
  std::optional<job::JobOrigin> origin = {};
};

class Sweeps;

struct ControllerDependencies {
  base::EventLoop& loop;
  store::Store& store;
  engine::Engine& engine;
  const base::Clock& clock;
  base::RandomSource& random;
  /// Loaded by recover(). Opens the secrets of jobs. nullptr: this server has no accounts.
  Accounts* accounts = nullptr;
};

class Controller {
 public:
  Controller(ControllerDependencies parts, SiteFacts site, schedule::Options options = {});
  ~Controller();

  /// Loads every job, and continues the jobs that had not ended. To be called once, before anything
  /// else.
  Result<void> recover();

  const JobTable& jobs() const { return jobs_; }
  ProjectService& projects() { return projects_; }
  const ProjectService& projects() const { return projects_; }
  Sweeps& sweeps() { return *sweeps_; }
  const Sweeps& sweeps() const { return *sweeps_; }
  NodeService& nodes() { return nodes_; }
  const NodeService& nodes() const { return nodes_; }

  // Wherever a job is named, its id may be given, too; a name that several projects use is
  // kConflict. `by` is the caller: the audit log records the change in the same commit, if `by`
  // names a user.

  /// Commits a new job of `by` and wakes the scheduler. The same key again gives the first job
  /// again.
  ///
  /// Errors: kInvalid with every fault of the spec; kConflict: the name is taken in the project, or
  /// the key was used for another spec; kNotFound: there is no such project; kRefused, with the
  /// numbers: the job could never run.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key,
                          const access::Actor& by = {}, const SubmitManner& manner = {});

  /// The same for many jobs: `done` is called once the job is committed, together with everything
  /// else that changes in this turn of the loop.
  using Submitted = std::function<void(Result<job::Job>)>;
  void submit(const job::JobSpec& spec, const std::string& idempotency_key, Submitted done,
              const access::Actor& by = {}, const SubmitManner& manner = {});

  /// The job that an earlier submit() with this key created. nullptr if nothing has the key, or if
  /// the key is empty. Valid until the table of jobs changes. kConflict: the key was used for another
  /// spec, or for an array.
  Result<const job::Job*> submitted_with(const job::JobSpec& spec,
                                         const std::string& idempotency_key,
                                         const SubmitManner& manner = {});
  /// The same for submit_array().
  Result<std::optional<job::Array>> array_submitted_with(const job::JobSpec& spec,
                                                         const std::string& idempotency_key,
                                                         const SubmitManner& manner = {});

  /// Commits a new array of `by`. Errors, the key and the manner as for submit(); an array has no
  /// origin.
  Result<job::Array> submit_array(const job::JobSpec& spec, const std::string& idempotency_key,
                                  const access::Actor& by = {}, const SubmitManner& manner = {});
  Arrays& arrays() { return *arrays_; }
  const Arrays& arrays() const { return *arrays_; }
  Schedules& schedules() { return schedules_; }
  const Schedules& schedules() const { return schedules_; }

  /// The result that submit() would have with this spec now. Stores and starts nothing. Of an
  /// array, that of its first member.
  Result<job::Forecast> forecast(const job::JobSpec& spec, const SubmitManner& manner = {}) const;

  /// The spec with the ids of the jobs that it waits for in place of their names, which other jobs
  /// may have later. A member of an array that has no job yet stays named.
  job::JobSpec with_awaited_ids(job::JobSpec spec) const;

  /// When the waiting jobs would start with more nodes.
  struct WhatIfChange {
    int add_nodes = 0;
    std::string like;  ///< the node of which the new nodes are copies
    std::optional<std::chrono::milliseconds> run_time;  ///< of jobs without a time limit
  };
  struct WhatIfJob {
    job::JobRef job;
    std::optional<base::Time> before;  ///< as the cluster is; nothing: not within a week
    std::optional<base::Time> after;
  };
  struct WhatIfAnswer {
    std::vector<WhatIfJob> jobs;  ///< in the order in which they are expected to start now
    int evictions = 0;
    bool complete = true;  ///< false: there are too many jobs to look a week ahead
  };
  /// The computation, which may run on any thread, and takes up to seconds. kNotFound: there is no
  /// such node. kConflict: the cluster has a queue of its own. kExhausted: too many jobs.
  Result<std::function<WhatIfAnswer()>> what_if(const WhatIfChange& change) const;

  /// Requests the end of a job; an ended job is not an error. Ends the tasks of a job that cannot
  /// be read.
  Result<job::Job> stop(const std::string& name, bool now, const access::Actor& by = {});

  /// Stops the job's tasks (SIGTERM, grace, SIGKILL), releases its resources and holds the job back
  /// until resume(). A suspended job is not an error; an ended one is kConflict.
  Result<job::Job> suspend(const std::string& name, const access::Actor& by = {});
  Result<job::Job> resume(const std::string& name, const access::Actor& by = {});

  /// Sets the labels that have a value, and removes the others. Also of ended jobs. kInvalid: the
  /// result is not a valid set of labels.
  using LabelChanges = std::map<std::string, std::optional<std::string>>;
  Result<job::Job> set_labels(const std::string& name, const LabelChanges& changes,
                              const access::Actor& by = {});

  /// Deletes an ended job and its logs. kConflict: the job has not ended.
  Result<void> remove(const std::string& name, const access::Actor& by = {});

  /// Why the job waits, or what happened to it.
  Result<job::Explanation> explain(const std::string& name) const;

  /// The waiting jobs in the order in which they are expected to start, suspended jobs last. Their
  /// reasons are the last that were noted: explain() has those of now.
  std::vector<const job::Job*> queue() const { return placement_->queue(); }

  /// Runs a program in a running task; as engine::Engine::exec().
  Result<std::unique_ptr<engine::Exec>> exec(const std::string& name, const std::string& task,
                                             const engine::ExecPlan& plan,
                                             engine::ExecHandlers handlers,
                                             const access::Actor& by = {});
  /// Attaches to the program of a running task; as engine::Engine::attach().
  Result<std::unique_ptr<engine::Exec>> attach(const std::string& name, const std::string& task,
                                               engine::ExecHandlers handlers,
                                               const access::Actor& by = {});

  /// The folder of this machine with the artifacts of the job of this id, if it has any.
  std::optional<std::filesystem::path> artifacts_folder(const std::string& id) const {
    return parts_.engine.artifacts_folder(id);
  }

  void set_resize_pace(const ResizePace& pace) { attempts_.set_pace(pace); }
  void set_retention(const RetentionRules& rules) { retention_.set_rules(rules); }
  /// How many ended jobs stay unpacked (control/job_table.h).
  void keep_whole(size_t most) { jobs_.keep_whole(most); }

  /// The log of one task of an attempt, from its beginning. kNotFound: the task has no log.
  Result<std::unique_ptr<engine::LogCursor>> open_log(const std::string& id, int attempt,
                                                      const std::string& task);
  /// The merged log of a job that exists now.
  std::unique_ptr<logs::LogFollower> follow_logs(const std::string& name,
                                                 const job::LogQuery& query);

  /// The measurements of a job's present or last attempt (logs/measurements.h): `measured` is
  /// called once, usually in a later turn of the loop. kNotFound: the job does not exist, or was
  /// deleted meanwhile.
  using Measured = std::function<void(Result<std::vector<job::MetricSeries>>)>;
  void read_metrics(const std::string& name, const job::MetricQuery& query,
                    Measured measured) const;

  /// The progress that the job's program reports (logs/measurements.h).
  std::optional<job::Progress> progress_of(const job::Job& job) const;

  /// Every uploaded file tree that a job, an array, a sweep or a schedule uses, now or later.
  FileTrees trees_in_use() const;

  /// Whether every job has ended, and no sweep is about to submit one.
  bool idle() const;
  /// Whether the store has jobs that cannot be read: the resources they use are unknown.
  bool has_unreadable_jobs() const { return unreadable_.any(); }

  const Metrics& metrics() const { return metrics_; }
  ChangeFeed& feed() { return jobs_.watchers().feed(); }
  /// Whether the store takes changes right now.
  Result<void> ready() { return parts_.store.ping(); }

 private:
  /// The spec with the name that the job gets.
  Result<job::JobSpec> named_spec(const job::JobSpec& spec, const SubmitManner& manner) const;
  std::unique_ptr<StartGate> make_placement();
  std::unique_ptr<Arrays> make_arrays();
  Schedules make_schedules();
  OtherJobs other_jobs() const;
  const job::Job* repeated_by(const SubmitManner& manner) const;
  Result<const job::Job*> job_with_key(const job::JobSpec& spec,
                                       const std::string& idempotency_key);
  std::optional<job::Array> array_with_key(const std::string& idempotency_key) const;
  Result<job::JobSpec> resolved_array(const job::JobSpec& spec) const;
  Result<void> check_siblings(const job::JobSpec& spec, const std::vector<int>& indexes) const;
  void add_retained_objects();
  size_t count_open_objects(const std::string& project) const;
  Result<void> check_made(const job::JobSpec& spec, const std::string& owner) const;
  void make_job(MadeJob made, std::function<void(Result<JobEntry*>)> done);
  void enter_queue(JobEntry& entry);
  void end_by_request(JobEntry& entry, bool now);
  void hold_back(JobEntry& entry);
  void release(JobEntry& entry);
  void wake();
  void report(const engine::TaskReport& report);
  Result<void> check_running(const store::Contents& stored) const;
  void recover_jobs(store::Contents stored);
  /// Makes the change, and commits it with its audit record. If the commit fails, the change takes
  /// effect nevertheless, and is stored later; the error reports `effect`: "is being stopped".
  Result<job::Job> act(JobEntry& entry, const access::Actor& by, const std::string& action,
                       const std::string& effect, const std::function<void()>& change);
  bool lacks_isolation(const job::Job& job) const;
  Result<job::Job> stop_unreadable(const JobEntry& entry, bool now, const access::Actor& by);
  Result<const job::Task*> task_to_enter(job::Job& job, const std::string& task,
                                         const std::string& action, const access::Actor& by);

  ControllerDependencies parts_;
  SiteFacts site_;
  schedule::Options options_;
  Metrics metrics_;
  Journal journal_;
  JobTable jobs_;
  NodeTable node_table_;
  SchedulerBook book_;
  LaunchPlanner planner_;
  Attempts attempts_;
  std::unique_ptr<StartGate> placement_;
  ProjectService projects_;
  NodeService nodes_;
  UnreadableJobs unreadable_;
  RetentionKeeper retention_;
  std::unique_ptr<Arrays> arrays_;
  Schedules schedules_;
  std::unique_ptr<logs::MetricBook> measurements_;
  std::unique_ptr<logs::ProgressBook> progress_;
  std::unique_ptr<Sweeps> sweeps_;
  bool is_woken_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
