// Starts of tasks in pods: when all pods of a start run, and the files that the job brings are
// unpacked, the muster-nodes get their orders (lent/gang_start.h).
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/preparations.h"
#include "engine/lent/lent_tasks.h"

namespace muster::engine::kubernetes {

class PodStarts {
 public:
  struct Hooks {
    /// Creates the pods that are missing, and waits for all; as Preparations::add().
    std::function<std::shared_ptr<void>(const PodJob&, std::vector<PodTask>, Preparations::Done)>
        prepare;
    /// The pods of these tasks are not needed any more.
    std::function<void(const PodGangPointer&, const std::vector<std::string>& tasks)> give_up;
    std::function<std::string(const std::string& node)> gpu_model_on;
  };

  PodStarts(lent::LentTasks& tasks, PodGangTable& gangs, Hooks hooks)
      : tasks_(tasks), gangs_(gangs), hooks_(std::move(hooks)) {}

  /// As Engine::start().
  void start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done);
  /// Whether the pods of a start that includes the task do not all run yet.
  bool is_pending(const GangId& gang, const std::string& task) const;
  /// Makes pending starts that include one of these tasks fail: all tasks of a start come up or none.
  /// The pods of tasks that were prepared and that no start includes are not needed any more.
  void stop(const GangId& gang, const std::vector<std::string>& names);

 private:
  struct Pending;
  void unpack_trees(const std::shared_ptr<Pending>& start);
  void fail(const std::shared_ptr<Pending>& start, base::Error error);
  void give_up_prepared(const GangId& gang, const std::vector<std::string>& names);
  void start_if_ready(const std::shared_ptr<Pending>& start);

  lent::LentTasks& tasks_;
  PodGangTable& gangs_;
  Hooks hooks_;
  std::list<std::shared_ptr<Pending>> pending_;
};

/// The host names and addresses of the gang's pods.
std::vector<std::pair<std::string, std::string>> hosts_of(const PodGang& gang);

}  // namespace muster::engine::kubernetes
