// The jobs of a server, in memory: found by id, by name and in the order of submission. A change is
// handed to the journal, which commits it by the end of this turn of the event loop. After the
// commit, the callers that watch a job and the change feed are notified.
//
// On the EventLoop's thread; the clock and the journal must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/change_feed.h"
#include "control/job_maker.h"
#include "control/journal.h"
#include "job/job.h"

namespace muster::control {

using base::Result;

/// A job, with the facts about it that are not stored.
struct JobEntry {
  job::Job job;
  uint64_t sequence = 0;  ///< order of submission
  /// How many starts in a row failed because the engine of a node did not answer.
  int unanswered_starts = 0;
  bool is_held_back = false;  ///< by its start conditions (control/start_gate.h)
  /// The cause of the stop request, where it did not come from a user of Muster.
  std::optional<job::Fact> cancelled_by;
};

/// The name and the project of a job. No two jobs have both in common.
using JobName = std::pair<std::string, std::string>;

/// {project, id} of uploaded file trees (workspace/tree_store.h).
using FileTrees = std::set<std::pair<std::string, std::string>>;
/// The trees of the spec's volumes.
FileTrees trees_of(const job::JobSpec& spec);

inline JobName name_of(const job::JobSpec& spec) {
  return {spec.name, spec.project};
}

/// Finds the entries of jobs by id, by name, and by the time of submission.
class JobIndex {
 public:
  void add(JobEntry& entry);
  void erase(const JobEntry& entry);

  /// nullptr: no job has this id.
  JobEntry* with_id(const std::string& id) const;
  bool has_name(const JobName& name) const { return by_name_.contains(name); }
  /// As JobTable::each_job() and JobTable::each_job_from().
  void each_by_time(bool newest_first, std::optional<base::Time> after,
                    const std::function<bool(const job::Job&)>& visit) const;
  void each_by_name(const JobName& first, const std::function<bool(const job::Job&)>& visit) const;

 private:
  std::unordered_map<std::string, JobEntry*> by_id_;
  std::map<JobName, JobEntry*> by_name_;
  /// By time of submission. An erased job leaves a slot without an entry, until such slots are the
  /// majority: removing 10,000 of 100,000 jobs must not move the others 10,000 times.
  struct TimeSlot {
    base::Time submitted;
    JobEntry* entry = nullptr;
  };
  /// The first slot after `time`, or also at it.
  std::vector<TimeSlot>::const_iterator first_slot(base::Time time, bool after) const;

  std::vector<TimeSlot> by_time_;
  size_t empty_slots_ = 0;
};

class JobTable {
 public:
  JobTable(const base::Clock& clock, base::RandomSource& random, Journal& journal);

  // Questions. A name may be an id, too. A name that several projects use is kConflict.

  /// kNotFound with the nearest name.
  Result<const job::Job*> find(const std::string& name) const;
  /// The jobs of this name, at most one in each project; oldest first.
  std::vector<const job::Job*> named(const std::string& name) const;
  /// nullptr: no job has this id.
  const job::Job* with_id(const std::string& id) const;
  /// Oldest first.
  std::vector<const job::Job*> list() const;
  /// Calls `visit` for each job in the order of submission, or in reverse order, until it returns
  /// false. Begins after the job that was submitted at `after`, if that is given. (Submission times
  /// are unique.)
  void each_job(bool newest_first, std::optional<base::Time> after,
                const std::function<bool(const job::Job&)>& visit) const {
    index_.each_by_time(newest_first, after, visit);
  }
  /// The same in the order of names, and jobs of one name in the order of projects; begins with the
  /// first job that is not before `name` and `project`.
  void each_job_from(const std::string& name, const std::string& project,
                     const std::function<bool(const job::Job&)>& visit) const {
    index_.each_by_name({name, project}, visit);
  }
  /// Whether the project has a job of this name, or an object holds the name.
  bool is_taken(const job::JobSpec& spec) const;
  /// `pattern` with the next number in place of its "{n}": one more than the highest of the names in
  /// use. The name without a number counts as 1: "train-{n}" becomes "train-2" if only "train"
  /// exists. Numbers of deleted jobs below the highest are not used again. Names that an object holds
  /// are left out, and so are names for which `is_held` is true.
  std::string next_name(const std::string& project, const std::string& pattern,
                        const std::function<bool(const std::string& name)>& is_held) const;
  /// Every uploaded file tree that a job uses.
  FileTrees trees_in_use() const;
  /// Whether every job has ended.
  bool all_ended() const { return not_ended_ == 0 && uncommitted_.empty(); }

  // Entries, for the parts of the controller.

  using Entries = std::map<uint64_t, std::unique_ptr<JobEntry>>;
  const Entries& entries() const { return entries_; }  ///< by sequence
  /// Sequences of the jobs that are Queued.
  const std::set<uint64_t>& waiting() const { return waiting_; }
  JobEntry& at(uint64_t sequence) const { return *entries_.at(sequence); }
  JobEntry* entry_with_id(const std::string& id) const { return index_.with_id(id); }
  /// As find().
  Result<JobEntry*> entry_of(const std::string& name) const;
  /// The same; kConflict for a job whose record cannot be read.
  Result<JobEntry*> readable_entry_of(const std::string& name) const;

  /// To be called before anything else. `maker` must outlive the table's last change.
  void add_maker(JobMaker& maker) { makers_.push_back(&maker); }

  // Changes.

  uint64_t next_sequence() const { return next_sequence_; }
  /// Commits at once if a job of this name or key is not committed yet.
  void settle(const job::JobSpec& spec, const std::string& idempotency_key);
  using Added = std::function<void(Result<JobEntry*>)>;
  /// Adds a new job. It is in the table, and `added` is called, once the job is committed.
  void add(job::Job job, const std::string& idempotency_key, std::vector<access::AuditRecord> audit,
           Added added);
  /// Adds a job that is in the store already. nullptr: its id is in use.
  JobEntry* restore(job::Job job);
  /// Removes jobs, whose files are removed already, from the store and the table.
  Result<void> remove(const std::vector<JobEntry*>& entries,
                      std::vector<access::AuditRecord> audit);

  /// The job has changed: commits and announces it. A state that cannot be committed stays in
  /// memory and is written later: running jobs continue, and a restarted server recovers the state
  /// from the engine.
  void change(JobEntry& entry);
  /// The job has just ended.
  void count_end() { --not_ended_; }
  /// Adds an event to the job.
  void note(job::Job& job, job::Fact what);
  /// Announces a change that is not stored, after the commit of this turn of the loop.
  void announce(const job::Job& job) { watchers_.announce(job.id); }
  /// The present time, made unique: an event's time is also its number. If the clock was set back,
  /// the stamps advance by a nanosecond each.
  base::Time stamp();

  /// Calls after each change of the job, its removal included, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& name,
                                            std::function<void()> changed) const;
  JobWatchers& watchers() { return watchers_; }

 private:
  void enter(JobEntry& entry);

  const base::Clock& clock_;
  Journal& journal_;
  mutable JobWatchers watchers_;
  Entries entries_;
  JobIndex index_;
  std::map<JobName, std::unique_ptr<JobEntry>> uncommitted_;
  std::set<std::string> uncommitted_keys_;
  std::vector<JobMaker*> makers_;
  std::set<uint64_t> waiting_;
  uint64_t next_sequence_ = 1;
  size_t not_ended_ = 0;
  base::Time last_stamp_{};
};

}  // namespace muster::control
