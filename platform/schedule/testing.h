// For the tests of the scheduler: short names for gangs, nodes and projects.
#pragma once

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduler.h"

namespace muster::schedule::testing {

using Ids = std::vector<std::string>;

inline constexpr Time kStart{std::chrono::seconds{1'700'000'000}};
inline constexpr int64_t kAmple = int64_t{1} << 50;

inline Node node(const std::string& name, int gpus, const std::string& pool = kDefaultPool) {
  return {.name = name, .pool = pool, .gpus = gpus, .cpu_milli = kAmple, .memory_bytes = kAmple};
}

struct Share {
  int64_t deserved = 0;
  double weight = 0;
  int64_t limit = -1;
  int priority = 100;
  std::string parent = {};
};

inline Project project(const std::string& name, const Share& share) {
  Project project{.name = name, .parent = share.parent, .priority = share.priority};
  project.quota.deserved.gpu_milli = share.deserved * kWholeGpu;
  project.quota.weight = share.weight;
  if (share.limit >= 0) project.quota.limit.gpu_milli = share.limit * kWholeGpu;
  return project;
}

/// The project "q" alone.
inline std::vector<Project> one_project(int64_t deserved = 4) {
  return {project("q", {.deserved = deserved, .weight = 1})};
}

/// In order of their creation.
inline std::vector<Project> projects(std::vector<Project> list) {
  for (size_t i = 0; i < list.size(); ++i) list[i].sequence = i;
  return list;
}

inline constexpr int kTrain = 50;
inline constexpr int kBuildPreempt = 75;
inline constexpr int kBuild = 100;

/// A gang of `tasks` with `gpus` each; submitted in the order of the calls to Stage.
inline Gang gang(const std::string& id, const std::string& project, int gpus, int tasks = 1,
                 int priority = kTrain) {
  Gang gang{.id = id, .name = id, .project = project, .priority = priority};
  gang.preemptible = priority < kBuild;
  gang.groups = {TaskGroup{.claim = {.gpus = gpus}, .count = tasks, .minimum = tasks}};
  gang.submitted = kStart;
  return gang;
}

inline Gang elastic(Gang gang, int minimum) {
  gang.groups[0].minimum = minimum;
  return gang;
}

inline Gang limited(Gang gang, std::chrono::seconds limit) {
  gang.time_limit = limit;
  return gang;
}

/// A scheduler, its input, and the state of each gang.
class Stage {
 public:
  explicit Stage(Options options = {}) : scheduler(options) {}
  Stage(const std::vector<Node>& nodes, std::vector<Project> list, Options options = {})
      : scheduler(options) {
    for (const Node& node : nodes) scheduler.set_node(node);
    scheduler.set_projects(projects(std::move(list)));
  }

  void wait(Gang gang) {
    gang.sequence = next_++;
    scheduler.submit(std::move(gang));
  }
  /// Each task on the node of its place in the list, on the lowest devices that no other call took.
  void run(Gang gang, const std::vector<std::string>& nodes) {
    gang.sequence = next_++;
    std::vector<std::optional<TaskPlace>> places;
    size_t task = 0;
    for (const std::string& node : nodes) {
      const Claim& claim = group_of(gang, static_cast<int>(task++)).claim;
      if (node.empty()) {
        places.emplace_back();
        continue;
      }
      TaskPlace place{.node = node, .share_milli = claim.gpus > 0 ? kWholeGpu : 0};
      for (int i = 0; i < claim.gpus; ++i) place.devices.push_back(taken_[node]++);
      tasks_[gang.id].insert(static_cast<int>(task) - 1);
      places.emplace_back(std::move(place));
    }
    scheduler.adopt(std::move(gang), places, now - std::chrono::seconds{1});
  }

  /// One plan, which is not carried out yet.
  Plan plan(unsigned actions = kAllActions) {
    Plan plan = scheduler.plan(now, actions);
    for (const PlannedStart& start : plan.starts) {
      tasks_[start.id].insert(start.tasks.begin(), start.tasks.end());
    }
    return plan;
  }
  void leave(const Plan& plan) {
    for (const Eviction& eviction : plan.evictions) {
      for (const int task : eviction.tasks) tasks_[eviction.id].erase(task);
      scheduler.released(eviction.id, eviction.tasks);
    }
  }
  void end(const std::string& id) {
    tasks_.erase(id);
    scheduler.ended(id);
  }
  /// Plans until a plan is empty; evicted tasks end before the next plan. Returns the number of
  /// plans with evictions.
  int settle(std::chrono::seconds step = std::chrono::seconds{1}) {
    constexpr int kMostPlans = 200;
    int evicting = 0;
    for (int i = 0; i < kMostPlans; ++i) {
      const Plan made = plan();
      if (made.evictions.empty() && made.starts.empty()) return evicting;
      evicting += !made.evictions.empty();
      leave(made);
      now += step;
    }
    return -1;
  }

  bool runs(const std::string& id) const { return tasks_of(id) > 0; }
  int tasks_of(const std::string& id) const {
    const auto tasks = tasks_.find(id);
    return tasks == tasks_.end() ? 0 : static_cast<int>(tasks->second.size());
  }
  /// Sorted.
  std::vector<std::string> running() const {
    std::vector<std::string> ids;
    for (const auto& [id, tasks] : tasks_) {
      if (!tasks.empty()) ids.push_back(id);
    }
    return ids;
  }

  Scheduler scheduler;
  Time now = kStart;

 private:
  uint64_t next_ = 1;
  std::map<std::string, int> taken_;
  std::map<std::string, std::set<int>> tasks_;
};

inline std::vector<std::string> started(const Plan& plan) {
  std::vector<std::string> ids;
  for (const PlannedStart& start : plan.starts) ids.push_back(start.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline std::vector<std::string> evicted(const Plan& plan) {
  std::vector<std::string> ids;
  for (const Eviction& eviction : plan.evictions) ids.push_back(eviction.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

inline std::vector<std::string> promised(const Plan& plan) {
  std::vector<std::string> ids;
  for (const PlannedStart& start : plan.promises) ids.push_back(start.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace muster::schedule::testing
