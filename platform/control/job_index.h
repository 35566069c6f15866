// The jobs of a table (control/job_table.h): found by id, by name and in the order of submission, and
// counted by phase.
//
// A listing of a million jobs waits mostly for memory, so the slots of jobs are side by side and have
// all that most listings read. Texts stay in the packed jobs, which are scattered over the heap.
//
// On the EventLoop's thread; see JobTable::each_job_of_part().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "store/packed_job.h"

namespace muster::control {

/// A job, with the facts about it that are not stored.
struct JobEntry {
  job::Job job;
  uint64_t sequence = 0;  ///< order of submission
  /// How many starts in a row failed because the engine of a node did not answer.
  int unanswered_starts = 0;
  bool is_held_back = false;  ///< by its start conditions (control/start_gate.h)
  /// The cause of the stop request, where it did not come from a user of Muster.
  std::optional<job::Fact> cancelled_by;
  bool is_in_whole = false;  ///< among the ended jobs that are whole (JobTable::whole_)
};

/// How many jobs are in each phase (job::count_of_phase()).
struct PhaseCounts {
  int64_t queued = 0;
  int64_t starting = 0;
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t stopped = 0;

  bool operator==(const PhaseCounts&) const = default;
};

/// A job of the table: whole, packed, or both while its packed form is up to date.
struct JobSlot {
  JobEntry* entry = nullptr;
  store::PackedJob packed;   ///< if `entry` is nullptr
  job::FactsAtHand at_hand;  ///< of `packed`, if `entry` is nullptr and the index has the slot
  uint64_t sequence : 56 = 0;
  uint64_t counted : 7 = 0;  ///< the phase in which the index has counted it; kNotCounted: none
  uint64_t is_member : 1 = 0;

  static constexpr uint64_t kNotCounted = 127;

  job::JobFacts facts() const;
  job::PackedNames names() const;
};

/// The name and the project of a job. No two jobs have both in common.
using JobName = std::pair<std::string, std::string>;

inline JobName name_of(const job::JobSpec& spec) {
  return {spec.name, spec.project};
}

/// Makes slots side by side, in the order in which they are asked for, because listings read all of
/// them in that order.
class SlotPool {
 public:
  JobSlot& make(JobSlot slot);
  void remove(JobSlot& slot);

 private:
  static constexpr size_t kInChunk = 512;
  using Chunk = std::array<JobSlot, kInChunk>;

  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t used_ = kInChunk;  ///< of the last chunk
  std::vector<JobSlot*> removed_;
};

/// Owns the slots of jobs, and finds them by id, by name, and by the time of submission.
///
/// In the index, no two jobs have the same time of submission: a job whose time is taken gets the
/// next free one. The facts that visitors get have the time in the index, so that a listing can
/// continue after any job.
class JobIndex {
 public:
  using Visit = std::function<bool(const job::JobFacts&)>;

  JobSlot& add(JobSlot slot);
  void erase(JobSlot& slot);
  /// Switches the slot from its whole job to `slot.packed`, which must be set.
  void pack(JobSlot& slot);
  /// The job of the slot may be in another phase than before.
  void count(JobSlot& slot);
  /// The counts of all jobs, or without the members of arrays and sweeps.
  const PhaseCounts& counts(bool with_members) const { return with_members ? all_ : top_; }

  /// nullptr: no job has this id.
  JobSlot* with_id(std::string_view id) const;
  /// The facts of the job in the slot, as a visitor gets them.
  job::JobFacts facts_of(const JobSlot& slot) const;
  bool has_name(const JobName& name) const { return by_name_.contains(name); }
  /// As JobTable::each_job() and JobTable::each_job_from().
  void each_by_time(bool newest_first, std::optional<base::Time> after, job::FactTexts read,
                    const Visit& visit) const;
  /// As JobTable::each_job_of_part().
  void each_of_part(bool newest_first, size_t part, size_t parts, job::FactTexts read,
                    const Visit& visit) const;
  void each_by_name(const JobName& first, const Visit& visit) const;
  size_t size() const { return by_id_.size(); }

 private:
  struct ById {
    using is_transparent = void;
    size_t operator()(std::string_view id) const { return std::hash<std::string_view>()(id); }
    size_t operator()(const JobSlot* slot) const { return (*this)(slot->names().id); }
    bool operator()(const JobSlot* left, const JobSlot* right) const {
      return left->names().id == right->names().id;
    }
    bool operator()(const JobSlot* slot, std::string_view id) const {
      return slot->names().id == id;
    }
    bool operator()(std::string_view id, const JobSlot* slot) const { return (*this)(slot, id); }
  };
  struct ByName {
    using is_transparent = void;
    using Name = std::pair<std::string_view, std::string_view>;
    static Name of(const JobSlot* slot) {
      const job::PackedNames names = slot->names();
      return {names.name, names.project};
    }
    static Name of(const JobName& name) { return {name.first, name.second}; }
    template <class Left, class Right>
    bool operator()(const Left& left, const Right& right) const {
      return of(left) < of(right);
    }
  };
  std::unordered_set<JobSlot*, ById, ById> by_id_;
  std::set<JobSlot*, ByName> by_name_;
  /// By time of submission. An erased job leaves a place without a slot, until such places are the
  /// majority: removing 10,000 of 100,000 jobs must not move the others 10,000 times.
  struct TimeSlot {
    base::Time submitted;
    JobSlot* slot = nullptr;
  };
  /// Visits the slots from `at` on, `step` apart, before `end`.
  void visit_slots(ptrdiff_t at, ptrdiff_t end, ptrdiff_t step, job::FactTexts read,
                   const Visit& visit) const;
  /// The first slot after `time`, or also at it.
  std::vector<TimeSlot>::const_iterator first_slot(base::Time time, bool after) const;

  /// Copies the packed facts that listings read into the slot.
  void copy_facts(JobSlot& slot);

  SlotPool slots_;
  std::vector<TimeSlot> by_time_;
  size_t empty_slots_ = 0;
  /// The times of the slots whose own times were taken, which are few.
  std::unordered_map<const JobSlot*, base::Time> moved_;
  /// Projects and owners of packed jobs. They are never removed: few differ, and slots refer to them.
  std::set<std::string, std::less<>> shared_texts_;
  PhaseCounts all_;
  PhaseCounts top_;
};

}  // namespace muster::control
