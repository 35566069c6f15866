// The default engine: tasks are processes of this machine, each in a bubblewrap sandbox held by a
// shim that outlives the server. No daemon, no root needed.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "engine/engine.h"
#include "engine/folder/file_watch.h"
#include "engine/folder/mounts.h"
#include "engine/folder/trees.h"
#include "engine/process/options.h"
#include "engine/process/way_out.h"
#include "engine/shim/network.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class ProcessEngine : public Engine {
 public:
  ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options);
  /// For whoever knows the machine without looking at it.
  ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options, Node node);
  ~ProcessEngine() override;

  std::vector<Node> nodes() override { return {node_}; }
  /// Never calls: a server sees the machine as it was when it started. CPUs and GPUs that come and
  /// go while it runs are taken note of by starting it again, which no job notices.
  std::shared_ptr<void> watch_nodes(std::function<void()> changed) override;
  void listen(Listener listener) override;
  std::string generated_folder(const Gang& gang, std::string_view task,
                               job::Sandbox sandbox) const override;
  void start(const Gang& gang, std::vector<launch::TaskPlan> tasks, Done done) override;
  void change_files(const Gang& gang, std::vector<launch::FileChange> changes, Done done) override;
  void stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) override;
  Found adopt(const Gang& gang, const std::string& task) override;
  std::optional<std::vector<RunningTask>> running_tasks(const std::string& job_id) const override;
  void scrub(const Gang& gang) override;
  Result<void> remove(const std::string& job_id) override;
  void measure(const std::string& job_id, Measured done) override;
  Result<std::unique_ptr<LogCursor>> open_log(const Gang& gang, const std::string& task) override;
  std::shared_ptr<void> watch_log(const Gang& gang, const std::string& task,
                                  std::function<void()> grown) override;
  Result<std::unique_ptr<Exec>> exec(const Gang& gang, const std::string& task,
                                     const ExecPlan& plan, ExecHandlers handlers) override;
  Result<std::unique_ptr<Exec>> attach(const Gang& gang, const std::string& task,
                                       ExecHandlers handlers) override;
  MetricReader open_metrics(const Gang& gang, const std::string& task) override;
  std::optional<std::filesystem::path> artifacts_folder(const std::string& job_id) const override;
  std::string mpi_of(const Gang& gang, const std::string& task) const override;
  std::vector<RankPlace> ranks(const Gang& gang,
                               const std::vector<std::string>& tasks) const override;

 private:
  struct HeldTask;
  struct Start;
  using TaskKey = std::pair<Gang, std::string>;
  /// What holds a program of exec(), until it is reaped.
  struct Helper {
    base::Child process;
    base::EventLoop::Interest end;
  };

  TaskFolder folder_of(const Gang& gang, std::string_view task) const;
  VolumeFolders volume_folders(const std::string& job_id) const;
  Result<void> check_volumes(const Start& start) const;
  Result<void> launch(const std::shared_ptr<Start>& start, const launch::TaskPlan& plan);
  Result<const NetworkNamespace*> network_of_gang(const Gang& gang);
  void leave_network(const Gang& gang);
  void launch_all(const std::shared_ptr<Start>& start);
  void trees_unpacked(const std::shared_ptr<Start>& start, Result<void> unpacked);
  void stop_unpacking(const Gang& gang, const std::vector<std::string>& tasks);
  void hear_shim(const std::shared_ptr<Start>& start, HeldTask& task);
  void settle(const std::shared_ptr<Start>& start);
  void await_answer(HeldTask& task);
  void undo(const Start& start);
  void fail_start(const std::shared_ptr<Start>& start, base::Error error);
  bool is_being_started(const Gang& gang, const std::string& task) const;
  Result<void> change(const Gang& gang, const launch::FileChange& change);
  Result<NetworkNamespace> make_network();
  void make_way_out();
  void make_leash();
  void watch_end(HeldTask& task);
  void watch_ranks(HeldTask& task);
  void take_up(HeldTask& task);
  void ended(const TaskKey& key);
  void reap(base::Child helper);
  void report(const TaskKey& key, TaskNews what);

  base::EventLoop& loop_;
  ProcessEngineOptions options_;
  Node node_;                      ///< this machine, as it was when the engine was made
  base::UniqueFd leash_;           ///< of tasks that end with this process
  base::UniqueFd leash_of_shims_;  ///< what their shims hold of it
  Listener listener_;
  FileWatch files_;
  std::map<TaskKey, std::unique_ptr<HeldTask>> tasks_;
  std::map<pid_t, Helper> helpers_;
  std::optional<WayOut> way_out_;              ///< of the gangs' networks
  std::map<Gang, NetworkNamespace> networks_;  ///< of gangs with tasks; empty ones: the machine's
  JobTrees trees_;
  std::vector<std::shared_ptr<Start>> unpacking_;  ///< those that wait for their trees
};

}  // namespace muster::engine
