// The arrays of a server: many jobs from one spec (job/array.h).
//
// A waiting member costs a few bytes until it becomes a job. Of each array, a window of members
// waits as jobs for the scheduler; when some of these start, the next members follow. In the store,
// an array is two objects: "array" with its spec and its lines, which never changes, and
// "array-state" with what callers asked for and the results of members whose jobs are gone.
// Everything else follows from the jobs: so a server that is killed at any moment neither loses nor
// doubles a member.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <cstdint>
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
#include "control/array_members.h"
#include "control/job_maker.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/retention.h"
#include "control/start_conditions.h"
#include "engine/engine.h"
#include "job/array.h"

namespace muster::control {

/// The parts of the controller that carry out decisions about members. None of the functions
/// commits.
struct ArrayServices {
  base::EventLoop& loop;
  const base::Clock& clock;
  engine::Engine& engine;
  JobTable& jobs;
  Journal& journal;
  OtherJobs others;
  MakeJob make;
  /// Whether tasks run of the ended job with this id, or of an ended member of this array.
  std::function<bool(const std::string& id)> has_tasks;
  std::function<void(JobEntry& member, bool now)> stop;
  std::function<void(JobEntry& member)> suspend;
  std::function<void(JobEntry& member)> resume;
  std::function<void(const job::Array& array)> ended;  ///< in the commit that follows
  /// Members of the array run again; in the commit that follows.
  std::function<void(const std::string& array)> reopened;
  std::function<void()> wake;
};

class Arrays : public JobMaker {
 public:
  /// How many members of an array wait as jobs.
  static constexpr int kWindow = HeldArray::kWindow;

  explicit Arrays(ArrayServices services);
  ~Arrays() override = default;

  // Questions. A name may be an id. The arrays that are being removed are left out.

  /// An array is copied with its spec, which may be large. Rights and names are checked with facts.
  std::optional<job::Array> with_id(const std::string& id) const;
  std::optional<ArrayFacts> facts_with_id(const std::string& id) const;
  /// The arrays with this id or name, at most one in each project.
  std::vector<ArrayFacts> named(const std::string& name) const;
  /// False: visits no further array.
  using Visit = std::function<bool(const ArrayFacts& array)>;
  /// All arrays, in any order.
  void each(const Visit& visit) const;
  /// The ids of the arrays that `takes` selects, oldest first.
  using Takes = std::function<bool(const ArrayFacts& array)>;
  std::vector<std::string> ids_of(const Takes& takes) const;
  std::vector<std::string> lines_of(const std::string& id) const;
  std::optional<job::Array> with_key(const std::string& idempotency_key) const;

  /// A member of an array that has no job.
  struct JoblessMember {
    std::string array;  ///< its id
    int index = 0;
    job::Job job;  ///< as it would be; Queued, or ended with its result
    bool had_job = false;
  };
  /// `name`: "train[17]" or "train-17". The members of this name in the arrays that `takes` selects
  /// (empty: in all arrays), at most one in each project.
  std::vector<JoblessMember> jobless(const std::string& name, const Takes& takes = nullptr) const;

  /// The jobs of members from `first` on, in the order of the indexes; at most `most`. Members that
  /// have no job are left out. `first`: a position, counted from 0.
  struct MemberJob {
    size_t position = 0;
    int index = 0;
    std::string job;  ///< its id
  };
  std::vector<MemberJob> jobs_of(const std::string& id, size_t first, size_t most) const;

  /// The id of the array to which the job belongs; nothing: it is no member.
  static std::optional<std::string> array_of(const job::JobFacts& job);

  /// The arrays that have ended, for the rules of retention.
  std::vector<EndedJob> ended() const;
  /// Every uploaded file tree that members use, now or later.
  FileTrees trees_in_use() const;

  // Requests. Each is committed when it returns; the audit log records it in the same commit.

  /// kConflict: the array or one of its members has a name that is in use. The rest of the spec is
  /// checked already.
  Result<job::Array> create(const job::JobSpec& spec, const std::string& id,
                            const std::string& idempotency_key, const access::Actor& by);
  /// The same for a run of a schedule, which holds the names; `schedule` is in the same commit.
  Result<job::Array> create_run(const job::JobSpec& spec, const std::string& id,
                                const std::string& owner, const store::Object& schedule);
  Result<job::Array> stop(const std::string& id, bool now, const access::Actor& by);
  Result<job::Array> suspend(const std::string& id, const access::Actor& by);
  Result<job::Array> resume(const std::string& id, const access::Actor& by);
  struct Limits {
    std::optional<int> max_running;
    std::optional<int> max_failures;
  };
  /// Members that failed or were stopped run again; the jobs and the logs of their former runs are
  /// removed when they do. kConflict: there are no such members.
  Result<job::Array> rerun_failed(const std::string& id, const Limits& limits,
                                  const access::Actor& by);
  /// kConflict: not all members have ended. `rule`: of retention, for the audit log.
  Result<void> remove(const std::string& id, const access::Actor& by, const std::string& rule = "");
  /// Ends a member that has no job.
  Result<void> stop_jobless(const JoblessMember& member, const access::Actor& by);

  // From the controller.

  void load(const std::vector<store::Object>& objects);
  /// To be called once the jobs are loaded.
  void recovered();
  /// A job or an array has ended, and may be deleted from now on: notes for which arrays it has ended
  /// as required.
  void object_ended(const std::string& id);

  bool holds(const std::pair<std::string, std::string>& name) const override;
  void job_changed(const job::JobFacts& job) override;
  void job_leaves(const job::Job& job, store::Batch& batch) override;
  void advance() override;

 private:
  using Held = HeldArray;

  Held* held_with_id(const std::string& id) const;
  Result<Held*> usable(const std::string& id) const;
  Result<job::Array> create(ArrayRecord record, const access::Actor& by,
                            std::vector<store::Object> others,
                            const std::vector<access::FieldChange>& causes);
  Held& hold(ArrayRecord record, ArrayState state);
  job::Array shown(const Held& held) const;
  void note_end(Held& held);
  void make_members(Held& held);
  void make_member(Held& held, size_t position);
  void member_made(const std::string& id, size_t position, const Result<JobEntry*>& made);
  void make_again_soon();
  bool clear_former_job(Held& held, size_t position);
  void note_met(Held& held);
  void stop_members(Held& held, bool now, base::Time time);
  void remove_some(std::string id);
  void keep(const Held& held);
  JobEntry* job_of(const Held& held, size_t position) const;
  std::optional<job::JobFacts> facts_of_member(const Held& held, size_t position) const;
  Result<void> commit(const Held& held, const access::Actor& by, const std::string& action,
                      std::vector<access::FieldChange> changes);

  ArrayServices services_;
  std::map<std::string, std::unique_ptr<Held>> arrays_;           ///< by id
  std::map<std::pair<std::string, std::string>, Held*> by_name_;  ///< by name and project
  std::map<std::string, std::string> by_key_;                     ///< key -> id
  std::set<std::string> active_;  ///< ids of the arrays that advance() looks at
  /// Ids of arrays, and the jobs and arrays for which they wait: {awaited, array}.
  std::set<std::pair<std::string, std::string>> awaited_;
  base::EventLoop::Interest make_retry_;
  bool makes_nothing_ = false;  ///< until then, because the store has failed
  std::map<std::string, base::EventLoop::Interest> removal_retries_;  ///< by id of the array
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
