// Tasks run on the nodes of a Slurm cluster. A gang is one Slurm job, in which srun starts one
// muster-node for each task. Muster-nodes call the server (node/messages.h) and run their tasks as
// the process engine does: in a sandbox, under a shim that writes the log. Slurm decides when a
// gang runs. See docs/decisions/0023.
//
// The engine only connects its parts. Each owns the data of its topic:
//
//   lent/lent_tasks.h  the tasks, held by muster-nodes
//   gang_table.h       the gangs with their Slurm jobs
//   queue.h            polls of Slurm's queue, cancellations, the list of nodes
//   allocations.h      requesting an allocation and giving it back
//   job_watch.h        what Slurm has done to a job, according to its listings
//   node_calls.h       which muster-nodes belong to a Slurm job
//
// On the loop's thread.
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
  /// kNotFound: there is neither a slurmrestd nor Slurm's programs. A controller that does not
  /// answer is not an error: it may answer later.
  static Result<std::unique_ptr<SlurmEngine>> open(base::EventLoop& loop,
                                                   slurm::SlurmEngineOptions options);
  /// For tests: with this client.
  SlurmEngine(base::EventLoop& loop, slurm::SlurmEngineOptions options,
              std::unique_ptr<slurm::SlurmClient> client);
  ~SlurmEngine() override;

  bool has_cluster_queue() const override { return true; }
  std::string cluster_name() const override { return "Slurm"; }
  Result<void> check_allocation_request(const AllocationRequest& request) const override;
  std::string srun_in_tasks() const override;
  void set_allocation_listener(AllocationListener listener) override;
  void request_allocation(const GangId& gang, AllocationRequest request) override;
  void release_allocation(const GangId& gang) override;
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
  Result<void> check_found_tasks() override;
  AdoptionResult adopt(const GangId& gang, const std::string& task) override;
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
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
