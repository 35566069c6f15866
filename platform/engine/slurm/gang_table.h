// The gangs of a Slurm engine: the table of all that Slurm may have anything of, their records on
// disk, and their folders.
//
// On the loop's thread, which the table must not outlive.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/mirror.h"
#include "engine/node/connection.h"
#include "engine/shim/plan.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

using Steady = std::chrono::steady_clock;

enum class Stage {
  kUnsaved,    ///< its record is being written
  kUnsent,     ///< Slurm has no job of it
  kSending,    ///< the job is being submitted
  kUnsure,     ///< Slurm may have the job: look at the queue before submitting again
  kQueued,     ///< Slurm has the job; not all of its muster-nodes have called
  kAllocated,  ///< the allocation was reported
  kOver,       ///< Slurm has nothing of it any more
};

struct HeldTask;
using TaskPointer = std::shared_ptr<HeldTask>;

/// One call of start(), until every task of it is up or none is left.
struct GangStart {
  GangId gang;
  std::map<std::string, launch::TaskPlan> plans;  ///< by task, until the task has answered
  Engine::Done done;                              ///< empty once it was called
  std::optional<base::Error> error;
  std::set<std::string> tasks;
  std::set<std::string> unanswered;  ///< tasks that have neither come up nor failed
  std::set<std::string> ordered;     ///< tasks whose muster-nodes have the order
  bool waits_for_trees = false;
  /// Called when a task of it has come up, or has failed to.
  std::function<void(const TaskPointer&, const std::optional<base::Error>&)> on_answer;
  std::function<void()> on_end;  ///< called when a task of it has ended
};

/// A task with a seat in a Slurm job.
struct HeldTask {
  std::string name;
  size_t seat = 0;                             ///< in the gang's record
  std::shared_ptr<node::NodeConnection> line;  ///< to its muster-node
  bool holds_task = false;                     ///< as its muster-node's latest Hello had it
  std::vector<int> gpu_indices;
  std::shared_ptr<GangStart> start;  ///< until the whole start is settled
  std::optional<Mirror> mirror;      ///< copy of the task's folder, unless the folder is shared
  bool is_fetching = false;          ///< its artifacts are being fetched
  bool up = false;
  bool answered = false;
  bool is_answer_reported = false;
  bool was_told_to_stop = false;
  std::optional<StopMode> stop_wish;  ///< sent again when its muster-node reconnects
  int signal = 0;                     ///< that Slurm has sent it
  /// Slurm may have sent `signal`: a poll later than this one will show whether it did.
  std::optional<uint64_t> suspicion;
  std::optional<TaskEnded> end;
  bool is_leaving = false;  ///< its muster-node is removing the task's files
  bool is_reported = false;
  std::map<uint64_t, Engine::Done> changes;
  std::set<uint64_t> streams;           ///< ordered connections that have not arrived
  std::vector<node::NodeOrder> orders;  ///< for its muster-node, until that reconnects
  std::vector<std::weak_ptr<std::function<void()>>> log_watchers;
  std::vector<std::function<void()>> when_over;  ///< called when nothing more comes from it
  base::EventLoop::Interest timer;  ///< for a lost connection, or an end that waits for its reason

  bool runs() const { return up && !end; }
  /// Slurm has sent the task a signal before it ended. The exit code of its program (which may have
  /// saved its work and exited with 0) does not show how the task would have ended otherwise.
  bool was_ended_by_slurm() const { return end && signal != 0 && !was_told_to_stop; }
};

struct HeldGang {
  GangId gang;
  GangRecord record;
  Stage stage = Stage::kUnsaved;
  std::optional<AllocationRequest> wish;  ///< empty after a restart until the caller repeats it
  std::optional<AllocationRequest>
      next_wish;  ///< requested while the previous job is still being ended
  std::map<std::string, TaskPointer> tasks;
  std::optional<ListedJob> listed;  ///< the latest listing of its job
  uint64_t submitted_at_poll = 0;   ///< latest poll number at submission
  int missed_polls = 0;             ///< polls in a row that did not list its job
  bool is_awaited = false;          ///< the caller waits for reports of it
  bool is_announced = false;        ///< this server has reported its allocation
  bool is_saved = true;
  std::optional<AllocationPending> reported_waits;
  std::optional<job::SlurmState> reported_state;
  bool is_cancelled = false;  ///< Slurm has accepted the cancellation
  std::optional<Steady::time_point> over_since;
  std::optional<Steady::time_point> released_since;  ///< given back; the job is ending by itself
  base::EventLoop::Interest callback_deadline;       ///< until its nodes must have called
  base::EventLoop::Interest retry;

  Seat& seat_of(const HeldTask& task) { return record.seats[task.seat]; }
  const Seat& seat_of(const HeldTask& task) const { return record.seats[task.seat]; }
};

using GangPointer = std::shared_ptr<HeldGang>;

class GangTable {
 public:
  /// `jobs`: the folder of jobs.
  GangTable(base::EventLoop& loop, std::filesystem::path jobs)
      : jobs_(std::move(jobs)), loop_(loop), writer_(loop) {}

  /// Adds the gangs whose records an earlier server has left.
  void load();
  GangPointer add(const GangId& gang, GangRecord record, Stage stage);
  /// Removes the gang and its record.
  void remove(const GangPointer& gang);
  void clear() { gangs_.clear(); }

  const std::map<GangId, GangPointer>& all() const { return gangs_; }
  GangPointer find(const GangId& gang) const;
  TaskPointer find(const GangId& gang, const std::string& task) const;
  /// The latest attempt that uses the Slurm job of the caller's attempt.
  GangPointer current_of(const GangId& caller) const;
  /// The latest earlier attempt whose Slurm job is queued again, and free to be taken over.
  GangPointer requeued_before(const GangId& gang) const;
  /// Whether a later attempt uses the gang's Slurm job.
  bool is_taken_over(const HeldGang& gang) const;

  /// Writes the gang's record.
  void save(const GangPointer& gang);
  /// Writes it at the end of this turn of the loop, together with later changes.
  void save_soon(const GangPointer& gang);
  /// Makes the gang's folder and writes its record durably, off the loop's thread.
  void save_durably(const GangPointer& gang, std::function<void(Result<void>)> done);

  std::filesystem::path job_folder(const std::string& job_id) const { return jobs_ / job_id; }
  std::filesystem::path attempt_folder(const GangId& gang) const;
  TaskFolder folder_of(const GangId& gang, std::string_view task) const;

 private:
  std::filesystem::path jobs_;
  base::EventLoop& loop_;
  GangRecordWriter writer_;
  std::map<GangId, GangPointer> gangs_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::slurm
