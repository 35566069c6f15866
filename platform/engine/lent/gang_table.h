// The gangs that a cluster runs for an engine, with their tasks: the state that is common to all
// engines of clusters, their records on disk, and their folders.
//
// An engine derives its own gang from HeldGang, to which it adds what only its cluster has: data,
// no behaviour. It creates all gangs of its table.
//
// On the loop's thread, which the table must not outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/mirror.h"
#include "engine/lent/gang_record.h"
#include "engine/node/connection.h"
#include "engine/shim/plan.h"

namespace muster::engine::lent {

struct HeldTask;
using TaskPointer = std::shared_ptr<HeldTask>;

/// One call of start(), until every task of it is up or none is left.
struct GangStart {
  GangId gang;
  std::map<std::string, launch::TaskPlan> plans;  ///< by task, until the task has answered
  /// The host names of all tasks with their addresses, for each plan; empty: as the plans have them.
  std::vector<std::pair<std::string, std::string>> hosts;
  Engine::Done done;  ///< empty once it was called
  std::optional<base::Error> error;
  std::set<std::string> tasks;
  std::set<std::string> unanswered;  ///< tasks that have neither come up nor failed
  std::set<std::string> ordered;     ///< tasks whose muster-nodes have the order
  bool waits_for_trees = false;
  /// Called when a task of it has come up, or has failed to.
  std::function<void(const TaskPointer&, const std::optional<base::Error>&)> on_answer;
  std::function<void()> on_end;  ///< called when a task of it has ended
};

/// The fetch of a task's artifacts. A try that has failed may be repeated.
struct ArtifactsFetch {
  bool is_under_way = false;  ///< or waits for its next try
  uint64_t stream = 0;        ///< of the present try; 0: none
  bool is_connected = false;  ///< that stream has arrived
  bool is_complete = false;   ///< with all of its bytes, which are being unpacked
  int failures = 0;
  bool has_failed = false;  ///< for good: the copy on the node is to be kept
};

/// A task with a seat in an allocation.
struct HeldTask {
  std::string name;
  size_t seat = 0;                             ///< in the gang's record
  std::shared_ptr<node::NodeConnection> line;  ///< to its muster-node
  bool holds_task = false;                     ///< as its muster-node's latest Hello had it
  std::vector<int> gpu_indices;
  std::shared_ptr<GangStart> start;  ///< until the whole start is settled
  std::optional<Mirror> mirror;      ///< copy of the task's folder, unless the folder is shared
  ArtifactsFetch fetch;
  bool up = false;
  bool answered = false;
  bool is_answer_reported = false;
  bool stop_requested = false;
  std::optional<StopMode> pending_stop;  ///< sent again when its muster-node reconnects
  int signal = 0;                        ///< of the cluster, which has ended the task or may end it
  /// The cluster may have sent `signal`: a look later than this one will show whether it did.
  std::optional<uint64_t> suspicion;
  std::optional<TaskEnded> end;
  /// It has ended by itself, as the record shows that an earlier server has stored; its muster-node
  /// still has its artifacts, and will report the end again.
  bool ended_earlier = false;
  int record_failures = 0;  ///< in a row: records that could not be written to the mirror
  bool is_leaving = false;  ///< its muster-node is removing the task's files
  bool is_reported = false;
  std::map<uint64_t, Engine::Done> changes;
  std::set<uint64_t> streams;           ///< ordered connections that have not arrived
  std::vector<node::NodeOrder> orders;  ///< for its muster-node, until that reconnects
  std::vector<std::weak_ptr<std::function<void()>>> log_watchers;
  std::vector<std::function<void()>> when_over;  ///< called when nothing more comes from it
  base::EventLoop::Interest timer;  ///< for a lost connection, or an end that waits for its reason

  bool runs() const { return up && !end; }
  /// The task has ended, a signal of the cluster may have ended it, and no caller had requested its
  /// stop. The exit code of its program (which may have saved its work and exited with 0) does not
  /// show how the task would have ended otherwise.
  bool was_ended_by_cluster() const { return end && signal != 0 && !stop_requested; }
};

struct HeldGang {
  GangId gang;
  GangRecord record;
  bool is_unsaved = false;                   ///< its first record is being written
  bool is_saved = true;                      ///< the record on disk is the latest
  std::map<std::string, TaskPointer> tasks;  ///< by name
  std::optional<AllocationRequest> request;  ///< empty after a restart until the caller repeats it
  std::optional<AllocationRequest>
      next_request;           ///< requested while the previous one is being ended
  bool is_awaited = false;    ///< the caller waits for reports of its allocation
  bool is_announced = false;  ///< this server has reported its allocation
  std::optional<AllocationPending> reported_waits;

  /// Makes a task for each seat of the record.
  HeldGang(GangId name, GangRecord its_record);
  Seat& seat_of(const HeldTask& task) { return record.seats[task.seat]; }
  const Seat& seat_of(const HeldTask& task) const { return record.seats[task.seat]; }
};

using GangPointer = std::shared_ptr<HeldGang>;

class GangTable {
 public:
  struct Options {
    std::filesystem::path jobs;  ///< the folder of jobs
    std::string record_file;     ///< the name of a gang's record in the folder of its attempt
    /// The text of a record, with the fields of the engine.
    std::function<std::string(const HeldGang&)> encode;
  };

  GangTable(base::EventLoop& loop, Options options)
      : options_(std::move(options)), loop_(loop), writer_(loop) {}

  void add(const GangPointer& gang) { gangs_[gang->gang] = gang; }
  /// Removes the gang and its record.
  void remove(const GangPointer& gang);
  void clear() { gangs_.clear(); }

  const std::map<GangId, GangPointer>& all() const { return gangs_; }
  GangPointer find(const GangId& gang) const;
  TaskPointer find(const GangId& gang, const std::string& task) const;

  /// Writes the gang's record.
  void save(const GangPointer& gang);
  /// Writes it at the end of this turn of the loop, together with later changes.
  void save_soon(const GangPointer& gang);
  /// Makes the gang's folder and writes its record durably, off the loop's thread. Nothing else
  /// writes the record until then.
  void save_durably(const GangPointer& gang, std::function<void(Result<void>)> done);

  const std::filesystem::path& jobs_folder() const { return options_.jobs; }
  std::filesystem::path job_folder(const std::string& job_id) const {
    return options_.jobs / job_id;
  }
  std::filesystem::path attempt_folder(const GangId& gang) const;
  std::filesystem::path record_of(const GangId& gang) const;
  TaskFolder folder_of(const GangId& gang, std::string_view task) const;

 private:
  Options options_;
  base::EventLoop& loop_;
  RecordWriter writer_;
  std::map<GangId, GangPointer> gangs_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::lent
