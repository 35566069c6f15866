// The gangs of a Slurm engine: the table of gangs of which Slurm may still have a job
// (lent/gang_table.h, with what only Slurm has).
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/lent/gang_table.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

using Steady = std::chrono::steady_clock;
using lent::HeldTask;
using lent::TaskPointer;

enum class Stage {
  kUnsaved,    ///< its record is being written
  kUnsent,     ///< Slurm has no job of it
  kSending,    ///< the job is being submitted
  kUnsure,     ///< Slurm may have the job: look at the queue before submitting again
  kQueued,     ///< Slurm has the job; not all of its muster-nodes have called
  kAllocated,  ///< the allocation was reported
  kOver,       ///< Slurm has nothing of it any more
};

struct HeldGang : lent::HeldGang {
  SlurmJob job;
  Stage stage = Stage::kUnsaved;
  /// An earlier server has left a record that this server cannot read. The gang has no connection,
  /// its Slurm job is found by its comment, and it is_unsaved: a later server may be able to read the
  /// file.
  bool is_unreadable = false;
  std::optional<ListedJob> listed;  ///< the latest listing of its job
  uint64_t submitted_at_poll = 0;   ///< latest poll number at submission
  uint64_t allocated_at_poll = 0;   ///< latest poll number when all its muster-nodes had called
  int missed_polls = 0;             ///< polls in a row that did not list its job
  /// Since when the accounting database has not answered whether it has the missing job.
  std::optional<Steady::time_point> unanswered_since;
  std::optional<job::SlurmState> reported_state;
  bool is_cancelled = false;          ///< Slurm has accepted the cancellation
  bool is_stopped_by_cancel = false;  ///< its tasks were to stop, and could get no order
  std::optional<Steady::time_point> suspended_at;  ///< when its job was last listed as suspended
  std::map<std::string, int> excuses;  ///< by task: silences that a recent suspension has excused
  std::optional<Steady::time_point> over_since;
  std::optional<Steady::time_point> released_since;  ///< given back; the job is ending by itself
  base::EventLoop::Interest callback_deadline;       ///< until its nodes must have called
  base::EventLoop::Interest retry;

  HeldGang(const GangId& name, GangRecord its_record, Stage its_stage)
      : lent::HeldGang(name, std::move(its_record.common)),
        job(std::move(its_record.job)),
        stage(its_stage) {}
};

using GangPointer = std::shared_ptr<HeldGang>;

/// The gang of Slurm that the shared parts hold: all gangs of a Slurm engine's table are.
inline GangPointer in_slurm(const lent::GangPointer& gang) {
  return std::static_pointer_cast<HeldGang>(gang);
}

/// The options of the shared table.
lent::GangTable::Options table_options(std::filesystem::path jobs);

class GangTable {
 public:
  explicit GangTable(lent::GangTable& shared) : shared_(shared) {}

  /// Adds the gangs whose records an earlier server has left. `owner`: the id of the server. An
  /// error: gangs may be missing, whose Slurm jobs would be cancelled as unknown.
  Result<void> load(const std::string& owner);
  GangPointer add(const GangId& gang, GangRecord record, Stage stage);
  /// Removes the gang and its record.
  void remove(const GangPointer& gang) { shared_.remove(gang); }

  /// In the order of their ids.
  std::vector<GangPointer> all() const;
  bool is_empty() const { return shared_.all().empty(); }
  GangPointer find(const GangId& gang) const { return in_slurm(shared_.find(gang)); }
  /// The latest attempt that uses the Slurm job of the caller's attempt.
  GangPointer current_of(const GangId& caller) const;
  /// The latest earlier attempt whose Slurm job is queued again, and free to be taken over.
  GangPointer requeued_before(const GangId& gang) const;
  /// Whether a later attempt uses the gang's Slurm job.
  bool is_taken_over(const HeldGang& gang) const;

  /// As in lent::GangTable.
  void save(const GangPointer& gang) { shared_.save(gang); }
  void save_durably(const GangPointer& gang, std::function<void(Result<void>)> done);
  std::filesystem::path attempt_folder(const GangId& gang) const {
    return shared_.attempt_folder(gang);
  }

 private:
  Result<void> add_unreadable(const std::string& owner, const GangId& gang,
                              const base::Error& error);
  /// The attempts of the gang's job, in their order.
  std::vector<GangPointer> attempts_of(const std::string& job_id) const;

  lent::GangTable& shared_;
};

}  // namespace muster::engine::slurm
