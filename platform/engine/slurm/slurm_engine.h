// Tasks run on the nodes of a Slurm cluster. A gang is one Slurm job; in it srun starts one
// muster-node for each task, which calls the server back (node_wire.h) and does there what the
// process engine does here: the sandbox, the shim, its log. Who runs when is Slurm's to say.
//
// docs/decisions/0023.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine {

class SlurmEngine : public Engine {
 public:
  /// Meets Slurm. kNotFound: neither slurmrestd nor Slurm's programs are there. A controller that
  /// does not answer is no error: it may later.
  static Result<std::unique_ptr<SlurmEngine>> open(base::EventLoop& loop,
                                                   slurm::SlurmEngineOptions options);
  /// For tests: by this client.
  SlurmEngine(base::EventLoop& loop, slurm::SlurmEngineOptions options,
              std::unique_ptr<slurm::SlurmClient> client);
  ~SlurmEngine() override;

  bool asks_for_room() const override { return true; }
  std::string cluster_name() const override { return "Slurm"; }
  Result<void> check_room(const RoomWish& wish) const override;
  std::string srun_in_tasks() const override;
  void hear_of_rooms(RoomListener listener) override;
  void ask_for_room(const Gang& gang, RoomWish wish) override;
  void give_back_room(const Gang& gang) override;
  launch::Reach reach(const std::vector<std::string>& nodes) const override;
  ProgramsInTasks programs_in_tasks() const override;
  std::string mpi_of(const Gang& gang, const std::string& task) const override;
  std::vector<Node> nodes() override;
  std::shared_ptr<void> watch_nodes(std::function<void()> changed) override;
  void listen(Listener listener) override;
  std::string generated_folder(const Gang& gang, std::string_view task,
                               job::Sandbox sandbox) const override;
  void start(const Gang& gang, std::vector<launch::TaskPlan> tasks, Done done) override;
  void change_files(const Gang& gang, std::vector<launch::FileChange> changes, Done done) override;
  void stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) override;
  Found adopt(const Gang& gang, const std::string& task) override;
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
  std::vector<RankPlace> ranks(const Gang& gang,
                               const std::vector<std::string>& tasks) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
