// Starts of gangs: all tasks of a start come up, or none stays.
//
// The trees of the job are unpacked first. Then each task's folder is laid out and its shim is
// started. The start ends when every shim has reported that its task is up; if one could not start
// its task, or a task is stopped meanwhile, all shims are stopped, their folders are removed, and
// the start ends with the error.
//
// On the loop's thread. The parts that the constructor takes must outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/engine.h"
#include "engine/folder/mounts.h"
#include "engine/folder/trees.h"
#include "engine/process/options.h"
#include "engine/process/process_networks.h"
#include "engine/process/process_tasks.h"
#include "launch/task_plan.h"

namespace muster::engine {

class ProcessStarts {
 public:
  ProcessStarts(base::EventLoop& loop, const ProcessEngineOptions& options, ProcessTasks& tasks,
                ProcessNetworks& networks, JobTrees& trees);

  /// See Engine::start().
  void start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done);
  /// Cancels the starts that include any of these tasks and still wait for the trees of their job.
  void stop_unpacking(const GangId& gang, const std::vector<std::string>& tasks);
  /// Whether the task is being started, also before it has a shim.
  bool includes(const GangId& gang, const std::string& task) const;

 private:
  struct GangStart;
  using Start = std::shared_ptr<GangStart>;

  void make_leash();
  VolumeFolders volume_folders(const std::string& job_id) const;
  Result<void> check_volumes(const GangStart& start) const;
  void trees_unpacked(const Start& start, Result<void> unpacked);
  void launch_all(const Start& start);
  Result<void> launch(const Start& start, const launch::TaskPlan& plan);
  std::vector<int> own_cpus_for(const launch::TaskPlan& plan) const;
  void read_report(const Start& start, ProcessTask& task);
  void fail(const Start& start, base::Error error);
  void settle(const Start& start);
  void undo(const GangStart& start);
  void task_started(ProcessTask& task);
  void await_answer(ProcessTask& task);

  base::EventLoop& loop_;
  const ProcessEngineOptions& options_;
  ProcessTasks& tasks_;
  ProcessNetworks& networks_;
  JobTrees& trees_;
  std::vector<Start> unpacking_;   ///< starts that wait for the trees of their job
  base::UniqueFd leash_;           ///< the kernel closes this end when this process ends
  base::UniqueFd leash_of_shims_;  ///< the other end, for shims that must end with this process
};

}  // namespace muster::engine
