// The default engine: tasks are processes of this machine, each in a bubblewrap sandbox held by a
// shim that outlives the server. No daemon, no root needed.
//
// Its parts, and the data that each of them owns:
//
//   ProcessTasks     the tasks that have a shim; ends; adoption
//   ProcessStarts    the starts of gangs that are not settled yet
//   ProcessNetworks  the network namespaces of gangs
//   JobTrees         the files of jobs (engine/folder/trees.h)
//   ExecHelpers      the processes that hold programs beside the tasks' own
//   GroupRemovals    the control groups that killed shims have left behind
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/trees.h"
#include "engine/process/options.h"
#include "engine/process/process_exec.h"
#include "engine/process/process_networks.h"
#include "engine/process/process_starts.h"
#include "engine/process/process_tasks.h"
#include "engine/shim/task_groups.h"
#include "engine/shim/task_limits.h"

namespace muster::engine {

/// Removes the control groups of ended tasks that a killed shim has left behind, and kills what is in
/// them. The kernel removes no group with a process in it, so the removal is tried again until the
/// last process has ended; up to a minute. Never blocks.
class GroupRemovals {
 public:
  explicit GroupRemovals(base::EventLoop& loop) : loop_(loop) {}
  ~GroupRemovals() { try_once(); }

  void add(const TaskFolder& folder);

 private:
  struct Left {
    TaskGroups groups;
    int tries = 0;
  };

  void try_once();
  void try_all();

  base::EventLoop& loop_;
  std::vector<Left> left_;
  base::EventLoop::Interest timer_;
};

class ProcessEngine : public Engine {
 public:
  ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options);
  /// For a caller that already has the description of the machine.
  ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options, Node node);
  ~ProcessEngine() override;

  std::vector<Node> nodes() override { return {node_}; }
  /// Never calls `changed`: the server describes the machine as it was when the server started. To
  /// pick up new CPUs or GPUs, restart the server; jobs run on.
  std::shared_ptr<void> watch_nodes(std::function<void()> changed) override;
  void listen(Listener listener) override;
  std::string generated_folder(const GangId& gang, std::string_view task,
                               job::Sandbox sandbox) const override;
  void start(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) override;
  void change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                    Done done) override;
  void stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) override;
  AdoptionResult adopt(const GangId& gang, const std::string& task) override;
  std::optional<std::vector<RunningTask>> running_tasks(const std::string& job_id) const override;
  std::vector<std::string> unknown_jobs(
      const std::function<bool(const std::string& job_id)>& is_known) const override;
  std::vector<std::string> jobs_with_tasks() const override { return jobs_of_shims("/proc"); }
  void scrub(const GangId& gang) override;
  Result<void> remove(const std::string& job_id) override;
  void measure(const std::string& job_id, Measured done) override;
  Result<std::unique_ptr<LogCursor>> open_log(const GangId& gang, const std::string& task) override;
  std::shared_ptr<void> watch_log(const GangId& gang, const std::string& task,
                                  std::function<void()> grown) override;
  Result<std::unique_ptr<Exec>> exec(const GangId& gang, const std::string& task,
                                     const ExecPlan& plan, ExecHandlers handlers) override;
  Result<std::unique_ptr<Exec>> attach(const GangId& gang, const std::string& task,
                                       ExecHandlers handlers) override;
  MetricReader open_metrics(const GangId& gang, const std::string& task) override;
  std::optional<std::filesystem::path> artifacts_folder(const std::string& job_id) const override;
  std::string mpi_of(const GangId& gang, const std::string& task) const override;
  std::vector<RankPlace> ranks(const GangId& gang,
                               const std::vector<std::string>& tasks) const override;

 private:
  Result<void> change(const GangId& gang, const launch::FileChange& change);

  base::EventLoop& loop_;
  ProcessEngineOptions options_;
  Node node_;  ///< this machine, as it was when the engine was made
  ProcessTasks tasks_;
  ProcessNetworks networks_;
  JobTrees trees_;
  ProcessStarts starts_;
  ExecHelpers helpers_;
  GroupRemovals removals_;
};

}  // namespace muster::engine
