// The jobs of a server, in memory: found by id, by name and in the order of submission. A change is
// handed to the journal, which commits it by the end of this turn of the event loop. After the
// commit, the callers that watch a job and the change feed are notified.
//
// A job that has ended is packed (store/packed_job.h): its facts stay at hand, and the rest is
// unpacked when a caller asks for the job. The jobs that ended or were unpacked last stay whole.
//
// Pointers and references to a job, and facts, are valid until the end of this turn of the loop, for
// a job that has not ended until it is removed.
//
// On the EventLoop's thread; the clock and the journal must outlive it.
#pragma once

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/change_feed.h"
#include "control/job_index.h"
#include "control/job_maker.h"
#include "control/journal.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "store/packed_job.h"

namespace muster::control {

using base::Result;

/// {project, id} of uploaded file trees (workspace/tree_store.h).
using FileTrees = std::set<std::pair<std::string, std::string>>;
/// The trees of the spec's volumes.
FileTrees trees_of(const job::JobSpec& spec);

/// Names with a number in one place: "train-{n}".
struct NamePattern {
  std::string project;
  std::string before;  ///< the text before the number
  std::string behind;

  /// The number in a name of this pattern; 0: the name does not fit, or its number is above 10^18.
  uint64_t number_in(std::string_view name, std::string_view of_project) const;
  auto operator<=>(const NamePattern&) const = default;
};

/// The highest numbers of patterns, so that not every use of a pattern examines all of its jobs.
class HighestNumbers {
 public:
  /// Nothing: it is not known.
  std::optional<uint64_t> of(const NamePattern& pattern) const;
  void set(const NamePattern& pattern, uint64_t highest);
  void name_added(std::string_view name, std::string_view project);
  /// Patterns whose highest number this was become unknown.
  void name_removed(std::string_view name, std::string_view project);

 private:
  std::map<NamePattern, uint64_t> highest_;
};

class JobTable {
 public:
  JobTable(const base::Clock& clock, base::RandomSource& random, Journal& journal);

  // Questions. A name may be an id, too. A name that several projects use is kConflict.

  /// The job that find(), named(), with_id() and the entries return is unpacked first, if it is
  /// packed; the facts of a job are there without that.

  /// kNotFound with the nearest name.
  Result<const job::Job*> find(const std::string& name) const;
  /// The jobs of this name, at most one in each project; oldest first.
  std::vector<const job::Job*> named(const std::string& name) const;
  /// nullptr: no job has this id.
  const job::Job* with_id(const std::string& id) const;
  /// Nothing: no job has this id.
  std::optional<job::JobFacts> facts_with_id(const std::string& id) const;
  /// Calls `visit` with the job, which stays packed if it is packed: for the examination of many
  /// jobs. The job is valid during the call. Returns false if no job has this id.
  bool visit_whole(std::string_view id, const std::function<void(const job::Job&)>& visit) const;
  /// All jobs, unpacked, oldest first: for tests.
  std::vector<const job::Job*> list() const;
  /// Calls `visit` for each job in the order of submission, or in reverse order, until it returns
  /// false. Begins after the job that was submitted at `after`, if that is given. (The submission
  /// times that `visit` gets are unique: see JobIndex.) `read`: the texts to prefetch; `visit` may
  /// read others, but more slowly.
  void each_job(bool newest_first, std::optional<base::Time> after, const JobIndex::Visit& visit,
                job::FactTexts read = job::FactTexts::kAll) const {
    index_.each_by_time(newest_first, after, read, visit);
  }
  /// The same for one of `parts` parts of about equal size, in which each job is once. Threads may
  /// visit the parts at the same time, while the loop's thread waits for them.
  void each_job_of_part(bool newest_first, size_t part, size_t parts, job::FactTexts read,
                        const JobIndex::Visit& visit) const {
    index_.each_of_part(newest_first, part, parts, read, visit);
  }
  size_t size() const { return index_.size(); }
  /// How many of the jobs that each_job() visits are in each phase; with or without the members of arrays
  /// and sweeps.
  const PhaseCounts& counts(bool with_members) const { return index_.counts(with_members); }
  /// As each_job() in the order of names, and jobs of one name in the order of projects; begins with the
  /// first job that is not before `name` and `project`.
  void each_job_from(const std::string& name, const std::string& project,
                     const JobIndex::Visit& visit) const {
    index_.each_by_name({name, project}, visit);
  }
  /// Whether the project has a job of this name, or an object holds the name.
  bool is_taken(const job::JobSpec& spec) const;
  /// `pattern` with the next number in place of its "{n}": one more than the highest of the names in
  /// use. The name without a number counts as 1: "train-{n}" becomes "train-2" if only "train"
  /// exists. Numbers of deleted jobs below the highest are not used again, and numbers above 10^18
  /// do not count. Names that an object holds are left out, and so are names for which `is_held` is
  /// true.
  std::string next_name(const std::string& project, const std::string& pattern,
                        const std::function<bool(const std::string& name)>& is_held) const;
  /// Every uploaded file tree that a job uses.
  FileTrees trees_in_use() const;
  /// Whether every job has ended.
  bool all_ended() const { return not_ended_ == 0 && uncommitted_.empty(); }

  // Entries, for the parts of the controller.

  using Entries = std::map<uint64_t, std::unique_ptr<JobEntry>>;
  /// The whole jobs, by sequence: all that have not ended, and some that have.
  const Entries& entries() const { return entries_; }
  /// Sequences of the jobs that are Queued.
  const std::set<uint64_t>& waiting() const { return waiting_; }
  JobEntry& at(uint64_t sequence) const { return *entries_.at(sequence); }
  JobEntry* entry_with_id(const std::string& id) const;
  /// As find().
  Result<JobEntry*> entry_of(const std::string& name) const;
  /// The same; kConflict for a job whose record cannot be read.
  Result<JobEntry*> readable_entry_of(const std::string& name) const;

  /// To be called before anything else. `maker` must outlive the table's last change.
  void add_maker(JobMaker& maker) { makers_.push_back(&maker); }
  /// The same. `complete` adds to an ended job what is not stored, each time it is unpacked.
  void complete_with(std::function<void(job::Job&)> complete) { complete_ = std::move(complete); }
  /// How many ended jobs stay whole.
  void keep_whole(size_t most) { kept_whole_ = most; }

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
  /// The same of a packed job.
  void restore(store::PackedJob job);
  /// Removes jobs, whose files are removed already, from the store and the table.
  Result<void> remove(const std::vector<JobEntry*>& entries,
                      std::vector<access::AuditRecord> audit);
  /// Calls `action` with the id of each job that was removed.
  void on_removed(std::function<void(const std::string& id)> action) {
    removed_ = std::move(action);
  }

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
  /// Later stamps are after `time`, too.
  void stamp_after(base::Time time) { last_stamp_ = std::max(last_stamp_, time); }

  /// Calls after each change of the job, its removal included, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& name,
                                            std::function<void()> changed) const;
  JobWatchers& watchers() { return watchers_; }

 private:
  void enter(JobEntry& entry);
  uint64_t highest_number(const NamePattern& pattern) const;
  JobEntry* whole(JobSlot& slot) const;
  job::Job unpacked(const JobSlot& slot) const;
  void keep_among_whole(JobEntry& entry) const;
  void pack_old() const;

  const base::Clock& clock_;
  Journal& journal_;
  mutable JobWatchers watchers_;
  mutable Entries entries_;
  mutable JobIndex index_;
  /// Sequences of the ended jobs that are whole, in the order in which they became that.
  mutable std::deque<uint64_t> whole_;
  size_t kept_whole_ = 256;
  mutable bool packs_soon_ = false;
  std::function<void(job::Job&)> complete_;
  std::map<JobName, std::unique_ptr<JobEntry>> uncommitted_;
  std::set<std::string> uncommitted_keys_;
  mutable HighestNumbers highest_numbers_;  ///< without the names in `uncommitted_`
  std::vector<JobMaker*> makers_;
  std::set<uint64_t> waiting_;
  uint64_t next_sequence_ = 1;
  size_t not_ended_ = 0;
  base::Time last_stamp_{};
  std::function<void(const std::string& id)> removed_;
};

}  // namespace muster::control
