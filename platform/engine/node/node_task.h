// The task of a muster-node, run by a process engine of its own. TaskReports reports it to the
// server; TaskStreams connects users to its programs.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/node/folder_streams.h"
#include "engine/node/messages.h"
#include "engine/node/program_streams.h"
#include "engine/node/task_reports.h"
#include "engine/process/process_engine.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine::node {

/// Adapts a task's plan to its node. GPUs get the names that the cluster has given them there; the
/// plan's devices are numbers of NodeFacts::gpu_indices. The limits of CPUs and memory are dropped:
/// the cluster enforces them. Pure.
launch::TaskPlan plan_on_node(launch::TaskPlan plan, const NodeFacts& facts);

/// Where a task runs.
struct TaskSite {
  /// Adapts a plan to the cluster. `attempt_folder`: where the gang's tasks are on each node.
  using AdaptPlan =
      std::function<launch::TaskPlan(launch::TaskPlan plan, const std::string& attempt_folder)>;

  NodeFacts facts;
  AdaptPlan adapt;  ///< may be empty
  /// Set in a container that the cluster has made for this task (a pod): the container is its
  /// sandbox, and holds it to its limits. The folder of the container with the generated files.
  std::filesystem::path generated_in_container;
};

class NodeTask {
 public:
  /// `open`: opens the connection of a stream.
  NodeTask(base::EventLoop& loop, GangId gang, TaskSite site, StartOrder order,
           const TaskReports::Send& send, const TreeFetch::Open& open);
  ~NodeTask();

  void start();

  /// What the server gets of the task, and when.
  TaskReports& reports() { return reports_; }

  void stop(StopMode mode);
  void change(const ChangeOrder& order);
  void exec(const ExecOrder& order);
  void attach(const AttachOrder& order);
  void send_artifacts(const ArtifactsOrder& order);

  /// StartOrder::start.
  uint64_t start_number() const { return order_.start; }
  bool is_starting() const { return !reports_.answer(); }
  bool failed_to_start() const { return reports_.answer() && reports_.answer()->error; }
  /// The task failed to start, or has ended.
  bool has_ended() const { return failed_to_start() || (reports_.answer() && reports_.end()); }
  const std::optional<TaskEnded>& end() const { return reports_.end(); }
  bool is_shared() const { return order_.is_shared; }
  /// Removes the task's files, unless the folder is shared. REQUIRES: has_ended().
  void remove_files(bool keeps_artifacts = false);
  std::string folder() const { return folder_.path.string(); }
  std::string artifacts_folder() const { return artifacts_.string(); }
  /// Called once has_ended() and all reports that can be sent have been sent.
  void on_end(std::function<void()> ended) { ended_ = std::move(ended); }

  /// Whether the server may not have the exit code of a program beside the task yet.
  bool has_programs() const { return streams_.has_programs(); }
  /// `over` is called from the event loop whenever no such program is left.
  void on_programs_end(std::function<void()> over) { streams_.on_programs_end(std::move(over)); }

 private:
  bool is_in_container() const { return !site_.generated_in_container.empty(); }
  ProcessEngineOptions engine_options() const;
  std::vector<std::filesystem::path> tree_places() const;
  base::Result<void> prepare();
  void launch();
  void answered(std::optional<base::Error> error);
  void watch_growth();
  void handle(const TaskReport& report);
  void refuse_program(uint64_t stream);

  base::EventLoop& loop_;
  GangId gang_;
  TaskSite site_;
  StartOrder order_;
  std::string name_;
  TaskReports::Send send_;
  TaskFolder folder_;
  base::UniqueFd held_;  ///< lock of the attempt's folder, if that is the node's own
  std::unique_ptr<ProcessEngine> engine_;
  TreeFetch trees_;
  bool is_fetching_ = false;
  std::filesystem::path artifacts_;
  TaskStreams streams_;
  TaskReports reports_;
  std::shared_ptr<void> log_watch_;
  std::function<void()> ended_;
};

}  // namespace muster::engine::node
