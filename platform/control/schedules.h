// The schedules of a server (job/schedule.h): submits the job of each run when its time comes.
//
// A schedule is stored with the time until which its runs are decided. A run's job and the new time
// are one commit, so a server that is killed at any moment neither misses nor doubles a run. The job
// of a planned run is named by the time of the run: "nightly-20261129-0300".
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "control/job_maker.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "cron/cron.h"
#include "job/array.h"
#include "job/schedule.h"

namespace muster::control {

/// What is due at `now`, after the runs until `decided_until`.
struct DueRun {
  enum class What {
    kNothing,
    kRun,
    kReplace,  ///< stops the earlier runs, and starts after them
    kSkip,     ///< an earlier run has not ended
    kMissed,   ///< too late for the schedule's catch_up
  };
  What what = What::kNothing;
  base::Time time;  ///< of the run; the runs before it are decided, too

  bool operator==(const DueRun&) const = default;
};

/// Of several due runs the last one counts. A run is on time within a minute.
///
/// Pure.
DueRun decide_run(const cron::Cron& cron, const cron::Zone& zone, const job::ScheduleSpec& spec,
                  base::Time decided_until, base::Time now, bool has_unfinished_run);

/// "nightly-20261129-0300": the local time; "-2" behind it in the second pass of a repeated hour.
/// By request with seconds. Pure.
std::string run_name(const std::string& schedule, const cron::Zone& zone, base::Time time,
                     bool by_request);

/// The parts of the controller that a schedule uses. None of the functions commits.
struct ScheduleServices {
  base::EventLoop& loop;
  const base::Clock& clock;
  JobTable& jobs;
  Journal& journal;
  MakeJob make;
  /// Whether the server would accept this job of the owner now; the name is not checked.
  std::function<Result<void>(const job::JobSpec& spec, const std::string& owner)> check;
  std::function<void(JobEntry& job)> stop;
  /// For runs that are arrays, as functions of Arrays.
  std::function<Result<job::Array>(const job::JobSpec& spec, const std::string& id,
                                   const std::string& owner, const store::Object& schedule)>
      make_array;  ///< commits the array and the schedule together
  std::function<void(const std::string& array)> stop_array;
  std::function<std::optional<job::Array>(const std::string& id)> array;
  /// Whether an array or a sweep has the name, or one of their jobs.
  std::function<bool(const JobName& name)> is_held_by_others;
  std::function<std::string()> new_id;
  std::function<void()> wake;
};

/// The faults of the cron expression and of the time zone.
std::vector<base::Fault> faults_of_times(const job::ScheduleSpec& spec);

class Schedules : public JobMaker {
 public:
  explicit Schedules(ScheduleServices services) : services_(std::move(services)) {}

  // Questions. A name may be an id.

  /// By project and name. Without `project`: in every project.
  std::vector<job::Schedule> list(const std::optional<std::string>& project) const;
  /// The schedules with this id or name, at most one in each project.
  std::vector<job::Schedule> named(const std::string& name) const;
  std::optional<job::Schedule> with_id(const std::string& id) const;
  /// Every uploaded file tree that future runs use.
  FileTrees trees_in_use() const;

  // Requests. Each is committed when it returns, with its record in the audit log.

  /// Errors: kInvalid with every fault; kConflict: the project has a schedule of this name; and why
  /// its job would not be accepted now.
  Result<job::Schedule> create(job::ScheduleSpec spec, const access::Actor& by);
  Result<job::Schedule> pause(const std::string& id, const access::Actor& by);
  /// Runs whose time passed while it was paused are left out.
  Result<job::Schedule> resume(const std::string& id, const access::Actor& by);
  /// A run now, as the job of the schedule's owner; returns its place in the history. kConflict: an
  /// earlier run has not ended, and overlap is kForbid.
  Result<job::ScheduledRun> run(const std::string& id, const access::Actor& by);
  /// Jobs of its runs stay.
  Result<void> remove(const std::string& id, const access::Actor& by);

  // From the controller.

  void load(const std::vector<store::Object>& objects);
  /// To be called once the arrays and the jobs are loaded.
  void recovered();
  /// The array may be a run of a schedule.
  void array_ended(const job::Array& array);
  /// Members of the array, which may be a run of a schedule, run again.
  void array_reopened(const std::string& array);

  bool holds(const std::pair<std::string, std::string>& name) const override;
  void job_changed(const job::JobFacts& job) override;
  void job_leaves(const job::Job& job, store::Batch& batch) override;
  void advance() override;

 private:
  struct Held;
  using Name = std::pair<std::string, std::string>;  ///< project and name

  Result<Held*> usable(const std::string& id) const;
  Held& hold(job::Schedule schedule);
  job::Schedule shown(const Held& held) const;
  void plan_next(Held& held);
  void postpone(Held& held);
  void follow_the_clock(base::Time now);
  void decide(Held& held);
  void add_to_history(Held& held, job::ScheduledRun run);
  void note(Held& held, job::ScheduledRun run);
  Result<void> check_run(const job::JobSpec& spec, const std::string& owner) const;
  void stop_earlier_runs(const Held& held, job::JobSpec& next);
  Result<void> start_array(Held& held, job::ScheduledRun run, const job::JobSpec& spec);
  void start(Held& held, job::ScheduledRun run, bool replaces,
             std::function<void(const Result<job::ScheduledRun>&)> done);
  void start_job(Held& held, job::ScheduledRun run, job::JobSpec spec,
                 std::function<void(const Result<job::ScheduledRun>&)> done);
  Result<void> commit(const Held& held, const access::Actor& by, const std::string& action,
                      std::vector<access::FieldChange> changes);

  ScheduleServices services_;
  std::map<std::string, std::shared_ptr<Held>> schedules_;  ///< by id
  std::map<Name, std::string> by_name_;                     ///< to id
  std::set<std::pair<base::Time, std::string>> next_;       ///< time of the next run, id
  std::optional<base::Time> looked_at_;                     ///< when runs were decided last
  base::EventLoop::Interest timer_;
};

}  // namespace muster::control
