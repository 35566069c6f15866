// Tasks run in the pods of a Kubernetes cluster, one pod a task. Muster's scheduler chooses the nodes;
// the engine creates the pods there, and the muster-node in each pod runs its task as the process
// engine does, under a shim that writes the log. The pod is the sandbox. See docs/decisions/0030.
//
// The engine only connects its parts. Each owns the data of its topic:
//
//   gangs.h         the gangs, their records on disk, the pods of their tasks
//   cluster_view.h  the watches: pods, nodes, warnings
//   cluster_news.h  what they report, passed on to the parts below
//   objects.h       creating and deleting the objects of gangs
//   pod_lines.h     connections to muster-nodes
//   descriptor_room.h  gangs that wait for descriptors
//   gang_pods.h     which pods a gang has
//   preparations.h  waiting for pods
//   losses.h        tasks whose pods ended
//   pod_allocations.h  gangs that wait in a queue of the cluster
//   lent/           the tasks, once their muster-nodes are connected
//
// On the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/kubernetes/options.h"

namespace muster::engine {

class KubernetesEngine : public Engine {
 public:
  /// Errors: those of open_access(). An API server that does not answer is not an error, because it
  /// may answer later.
  static Result<std::unique_ptr<KubernetesEngine>> open(base::EventLoop& loop,
                                                        kubernetes::KubernetesOptions options);
  ~KubernetesEngine() override;

  bool runs_images() const override { return true; }
  bool runs_pods() const override { return true; }
  std::string cluster_name() const override { return "Kubernetes"; }
  Result<void> check_spec(const job::JobSpec& spec) const override;
  std::shared_ptr<void> prepare(const GangId& gang, std::vector<ImageRequest> images,
                                std::function<void(const job::Fact&)> progress,
                                Prepared done) override;
  bool has_cluster_queue() const override;
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
  explicit KubernetesEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::engine
