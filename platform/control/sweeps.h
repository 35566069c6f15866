// The sweeps of a server. A sweep is two objects in the store: its spec, which never changes, and the
// state of its search (sweep/search.h). Its trials are ordinary jobs with the sweep as their origin.
//
// Every decision of the search is committed before it is carried out. Carrying out brings the jobs to
// the state that the search demands: a missing job is submitted, a promoted one is resumed, a poor one
// is suspended. A server that was killed between any two steps does the rest after its restart, and
// submits no trial twice, because a trial's job has a fixed name.
//
// The metric is read from the reports of each trial's program: when its job changes, and once a
// second while it runs. Once the result of a trial is stored, its job may be removed.
//
// On the EventLoop's thread; what SweepDependencies refers to must outlive the sweeps.
#pragma once

#include <chrono>
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
#include "control/job_maker.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/retention.h"
#include "engine/engine.h"
#include "store/store.h"
#include "sweep/sweep.h"

namespace muster::control {

class Controller;

struct SweepDependencies {
  base::EventLoop& loop;
  const base::Clock& clock;
  base::RandomSource& random;
  engine::Engine& engine;
  Journal& journal;
  JobTable& jobs;
  /// Submits the jobs of trials, and reads their metrics.
  Controller& controller;
  /// Whether tasks run of the ended trials of the sweep with this id.
  std::function<bool(const std::string& id)> has_tasks;

  // Change a job that has not ended; all changes of a turn of the loop are committed together.

  std::function<void(JobEntry&)> stop;
  std::function<void(JobEntry&)> suspend;
  std::function<void(JobEntry&)> resume;

  std::function<void()> settled;  ///< a sweep and all its jobs have ended
};

class Sweeps : public JobMaker {
 public:
  explicit Sweeps(SweepDependencies parts);
  ~Sweeps() override;

  /// To be called once, after the jobs were loaded.
  void load(const std::vector<store::Object>& objects);

  /// Errors: kInvalid with every fault of the spec; kConflict: a job, a sweep or a trial of the name
  /// exists; and those of Controller::submit() for the first trial.
  Result<sweep::Sweep> create(const sweep::SweepSpec& spec, const access::Actor& by);
  /// The result that create() would have. Stores and starts nothing.
  Result<sweep::SweepPlan> plan(const sweep::SweepSpec& spec) const;

  /// Every trial that has not ended is stopped. An ended sweep is not an error.
  Result<sweep::Sweep> stop(const std::string& id, const access::Actor& by);
  /// While a sweep is paused, no trial starts or is promoted; running trials run on. Errors:
  /// kConflict: the sweep has ended.
  Result<sweep::Sweep> set_paused(const std::string& id, bool paused, const access::Actor& by);
  /// Deletes the sweep with the jobs of its trials, and their logs and artifacts. The sweep is
  /// hidden at once; many jobs are removed over several turns of the loop, and by the next server
  /// if this one ends before. kConflict: the sweep, or a trial's job, has not ended. `rule`: of
  /// retention, for the audit log.
  Result<void> remove(const std::string& id, const access::Actor& by, const std::string& rule = "");

  struct Entry;
  using Entries = std::map<std::string, std::unique_ptr<Entry>>;  ///< by id

  /// Oldest first.
  std::vector<sweep::SweepSummary> list() const;
  /// By id or name.
  std::vector<sweep::SweepSummary> named(const std::string& name) const;
  /// False: visits no further sweep.
  using Visit = std::function<bool(const sweep::SweepRecord&, const sweep::SweepSummary&)>;
  /// All sweeps in any order. The record lives as long as the sweep.
  void each(const Visit& visit) const;
  /// nullopt: no sweep has this id.
  std::optional<sweep::Sweep> with_id(const std::string& id) const;

  std::optional<sweep::SweepSummary> summary_with_id(const std::string& id) const;
  /// nullptr: no sweep has this id. The record lives as long as the sweep.
  const sweep::SweepRecord* record_with_id(const std::string& id) const;

  /// Whether a sweep that is not paused has not ended, or jobs of an ended sweep have not.
  bool are_busy() const;
  /// The sweeps that have ended with all their jobs, for the rules of retention.
  std::vector<EndedJob> ended() const;
  /// Whether the job has a result for its trial that is not stored yet.
  bool needs(const job::JobFacts& job) const;
  /// Every uploaded file tree that trials use, now or later.
  FileTrees trees_in_use() const;
  /// Whether the name is that of a sweep, or of one of its trials.
  bool takes(const std::string& project, const std::string& name) const;

  // As a maker of jobs. The names of trials are not held, because trials are submitted like other
  // jobs; takes() checks them.

  bool holds(const JobName& /*name*/) const override { return false; }
  void job_changed(const job::JobFacts& job) override;
  /// A trial whose job is deleted has ended: in the same commit, so that it never starts again.
  void job_leaves(const job::Job& job, store::Batch& batch) override;
  void advance() override {}

  /// Reads the metrics of running trials, and decides. Called by itself; public for tests.
  void look();
  void set_pace(std::chrono::milliseconds pace) { pace_ = pace; }

 private:
  Result<void> check(const sweep::SweepSpec& spec) const;
  const Entry* shown(const std::string& id) const;
  Result<Entry*> entry_of(const std::string& id);
  Entry* sweep_of(const job::JobFacts& job) const;
  void link_jobs();
  JobEntry* job_entry_of(const Entry& entry, int trial) const;
  const job::Job* job_of(const Entry& entry, int trial) const;
  std::optional<job::JobFacts> facts_of(const Entry& entry, int trial) const;
  void remove_soon();
  void remove_some();
  void look_soon();
  void look_later();
  void look_at(Entry& entry);
  void ask(Entry& entry, int trial, const job::Job& job, bool over);
  void measured(Entry& entry, int trial, const std::vector<job::MetricSeries>& series, bool over);
  void note_end(Entry& entry, int trial, const job::Job& job, const sweep::Observation& seen);
  void advance(Entry& entry);
  Result<void> save(Entry& entry, std::vector<access::AuditRecord> audit = {});
  bool carry_out(Entry& entry);
  void start_or_resume(Entry& entry, const sweep::Trial& trial);
  void submit_trial(Entry& entry, const sweep::Trial& trial);
  Result<sweep::Sweep> change(const std::string& id, const access::Actor& by,
                              const std::string& action,
                              const std::function<void(sweep::Search&)>& change);

  SweepDependencies parts_;
  Entries entries_;
  std::chrono::milliseconds pace_{1000};
  base::EventLoop::Interest timer_;
  base::EventLoop::Interest removal_retry_;
  bool is_woken_ = false;
  bool removes_soon_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Whether the program of this trial, which has ended well, may continue at a later rung. The job is
/// suspended then instead of being ended.
bool pauses_at_end(const job::Job& job);
/// Notes at which rung the program ended by itself.
void note_end_at_rung(job::JobSpec& trial);

}  // namespace muster::control
