// Starts of gangs. The gang's network and the job's volumes are created on each host, then the
// containers of the tasks, a few at a time. If a step fails, or a task is stopped meanwhile,
// everything that was created is removed before the start ends with its error.
//
// On the loop's thread. The parts that the constructor takes must outlive it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/container_plan.h"
#include "engine/container/container_tasks.h"
#include "engine/container/gang_networks.h"
#include "engine/container/hosts.h"
#include "engine/container/job_volumes.h"
#include "engine/container/labels.h"
#include "engine/container/leftovers.h"
#include "engine/container/options.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "engine/folder/trees.h"
#include "launch/task_plan.h"
#include "workspace/small_archive.h"

namespace muster::engine {

class GangStarts {
 public:
  /// The parts of the engine that a start uses.
  struct Dependencies {
    Hosts& hosts;
    TaskTable& tasks;
    ContainerTasks& running;
    GangNetworks& networks;
    JobVolumes& volumes;
    JobTrees& trees;
    Leftovers& leftovers;
    Removals& removals;
  };

  /// `programs`: the files of Muster's programs, which are put into each container.
  GangStarts(base::EventLoop& loop, const ContainerEngineOptions& options,
             const Dependencies& parts, std::vector<workspace::ArchiveEntry> programs);
  ~GangStarts();

  /// See Engine::start().
  void start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done);
  /// Cancels the starts that include any of these tasks: a gang starts as a whole or not at all.
  void stop(const GangId& gang, const std::vector<std::string>& tasks);
  /// Whether the task is being started, also before it has a container.
  bool includes(const GangId& gang, const std::string& task) const;
  /// Drops all starts without removing anything.
  void clear();

 private:
  struct GangStart;
  struct Launch;
  struct Rest;
  using Start = std::shared_ptr<GangStart>;

  base::Result<void> check(const GangStart& start) const;
  base::Result<void> check_task(const GangStart& start, const launch::TaskPlan& plan) const;
  void unpack_trees(const Start& start);
  void prepare_hosts(const Start& start);
  Step network_step(const Start& start, HeldHost& host);
  Step volumes_step(const Start& start, HeldHost& host);
  void launch_all(const Start& start);
  void launch(const Start& start, const launch::TaskPlan& plan);
  base::Result<void> lay_out(Launch& launch);
  std::vector<Step> steps_of(const std::shared_ptr<Launch>& launch);
  void create(const std::shared_ptr<Launch>& launch, int tries, Then then);
  ContainerSite site_for(const GangStart& start, const launch::TaskPlan& plan) const;
  // By value: the caller's reference may be in a closure or task that these functions release.
  void fail(Start start, base::Error error);
  void settle(Start start);
  void undo(const Start& start);
  void remove_unknown(const std::shared_ptr<Rest>& rest, Then then);
  void remove_listed(const Rest& rest, const std::vector<ContainerState>& containers,
                     const NamedWithLabels& networks, Then then);
  void remove_unknown_later(const std::shared_ptr<Rest>& rest, std::chrono::milliseconds pause);
  void succeed(const Start& start);

  base::EventLoop& loop_;
  const ContainerEngineOptions& options_;
  Dependencies parts_;
  std::vector<workspace::ArchiveEntry> programs_;
  Later later_;
  std::vector<Start> starts_;
  std::set<std::shared_ptr<Rest>> rests_;
};

}  // namespace muster::engine
