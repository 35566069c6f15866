// The engine whose tasks are containers of Docker or Podman, on one host or a few. The shim
// (engine/shim) is process 1 of each container. As for a process, it keeps the program's output,
// terminal and exit code, so nothing is lost when the server ends. What the shim reports is copied
// to the same files on this machine.
//
// docs/decisions/0019 explains the design. The parts of the engine are one class each: Hosts,
// TaskTable, GangStarts, GangNetworks, JobVolumes, ContainerTasks, FileChanges, Leftovers and
// Removals.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/options.h"
#include "engine/engine.h"

namespace muster::engine {

class ContainerEngine : public Engine {
 public:
  /// Connects to the hosts. Succeeds if none answers yet: each is then a silent node.
  ///
  /// kInvalid: no host can be used as it is configured.
  static Result<std::unique_ptr<ContainerEngine>> open(base::EventLoop& loop,
                                                       ContainerEngineOptions options);
  ~ContainerEngine() override;

  bool runs_images() const override { return true; }
  std::shared_ptr<void> prepare(const GangId& gang, std::vector<ImageRequest> images,
                                std::function<void(const job::Fact&)> progress,
                                Prepared done) override;
  launch::Reach reach(const std::vector<std::string>& nodes) const override;
  ProgramsInTasks programs_in_tasks() const override;
  std::string mpi_of(const GangId& gang, const std::string& task) const override;
  std::vector<Node> nodes() override;
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
  std::vector<std::string> jobs_with_tasks() const override;
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
  std::vector<RankPlace> ranks(const GangId& gang,
                               const std::vector<std::string>& tasks) const override;

 private:
  struct Impl;
  explicit ContainerEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
