// The loop of the orchestrator: store -> schedule -> launch -> engine -> store. It alone changes
// jobs. Whatever it does is committed before anybody is told, and recover() takes up what an
// earlier server left at any point in between.
//
// On the EventLoop's thread; the store, the engine and the clock must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/engine.h"
#include "job/job.h"
#include "job/log_record.h"
#include "launch/plan.h"
#include "store/store.h"

namespace muster::control {

using base::Result;

struct Parts {
  base::EventLoop& loop;
  store::Store& store;
  engine::Engine& engine;
  const base::Clock& clock;
  base::RandomSource& random;
};

/// What the machine's side of launch::Site is.
struct SiteFacts {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;
  std::string rank_agent;
};

class LogFollower;

class Controller {
 public:
  Controller(Parts parts, SiteFacts site);
  ~Controller();

  /// Loads every job and takes up those that had not ended. To be called once, before anything
  /// else.
  Result<void> recover();

  /// Commits a new job and wakes the scheduler. kInvalid with every fault of the spec; kConflict
  /// where the name is taken. The same key again gives the first job again.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key);

  /// Asks a job to end. Ended jobs are no error.
  Result<job::Job> stop(const std::string& name, bool now);

  /// Forgets an ended job and its logs. kConflict while it has not ended.
  Result<void> remove(const std::string& name);

  /// kNotFound with the nearest name.
  Result<const job::Job*> find(const std::string& name) const;
  /// Oldest first.
  std::vector<const job::Job*> list() const;

  /// The merged log of a job that exists now.
  std::unique_ptr<LogFollower> follow_logs(const std::string& name, const job::LogQuery& query);

  /// Nothing waits and nothing runs.
  bool idle() const;

  /// Calls after each change of the job, its removal included, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& name, std::function<void()> changed);

 private:
  struct Run;

  void wake();
  void schedule();
  void begin(job::Job& job, const std::vector<std::string>& nodes);
  void start_stage(job::Job& job, std::vector<launch::TaskPlan> tasks);
  void stage_started(const std::string& id, int attempt, const Result<void>& started);
  void answered(job::Job& job, job::Task& task);
  void ended(job::Job& job, job::Task& task, const engine::TaskEnded& end);
  void hear(const engine::TaskReport& report);
  void start_timed_out(const std::string& id, int attempt);

  void fail(job::Job& job, job::Failure failure);
  void end_gang(job::Job& job, engine::StopMode mode);
  void end_gang_gently(job::Job& job);
  void finish_if_over(job::Job& job);
  void finish(job::Job& job);
  void requeue(job::Job& job, const std::string& why);

  void take_up(job::Job& job);
  void take_up_task(job::Job& job, job::Task& task);

  void commit(job::Job& job);
  void note(job::Job& job, std::string text);
  void changed(const std::string& name);
  engine::Gang gang_of(const job::Job& job) const { return {job.id, job.attempt}; }
  job::Job* by_id(const std::string& id);
  job::Job* by_name(const std::string& name) const;

  Parts parts_;
  SiteFacts site_;
  std::vector<std::unique_ptr<job::Job>> jobs_;       ///< oldest first
  std::map<std::string, std::unique_ptr<Run>> runs_;  ///< by id: jobs that hold room
  std::multimap<std::string, std::weak_ptr<std::function<void()>>> watchers_;  ///< by name
  bool woken_ = false;
};

}  // namespace muster::control
