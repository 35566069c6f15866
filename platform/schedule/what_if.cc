#include "schedule/what_if.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::schedule {

namespace {

/// The virtual cluster: which gang ends when.
class VirtualCluster {
 public:
  VirtualCluster(const ClusterState& cluster, const WhatIfOptions& options)
      : options_(options), scheduler_(cluster.options), now_(options.now) {
    for (const Node& node : cluster.nodes) scheduler_.set_node(node);
    scheduler_.set_projects(cluster.projects);
    for (const RunningGang& running : cluster.running) {
      scheduler_.adopt(running.gang, running.places, running.started);
      add(running.gang);
      tasks_held_[running.gang.id] =
          std::count_if(running.places.begin(), running.places.end(),
                        [](const auto& place) { return place.has_value(); });
      note_end(running.gang.id, running.started);
    }
    for (const Gang& gang : cluster.waiting) {
      scheduler_.submit(gang);
      add(gang);
      waiting_.insert(gang.id);
    }
  }

  WhatIfResult run() {
    const Time end = options_.now + options_.horizon;
    for (int plans = 0; !waiting_.empty(); ++plans) {
      if (plans == options_.most_plans) {
        result_.complete = false;
        break;
      }
      const Plan plan = scheduler_.plan(now_);
      // A plan starts gangs before it evicts others.
      for (const PlannedStart& start : plan.starts) began(start);
      for (const Eviction& eviction : plan.evictions) evict(eviction);
      // Evicted tasks have left at once; the gangs that wait for their places start now.
      if (!plan.evictions.empty()) continue;
      const auto next = next_moment(plan.again_at);
      if (!next || *next > end) break;
      now_ = std::max(now_, *next);
      end_gangs();
    }
    return std::move(result_);
  }

 private:
  void add(const Gang& gang) { limits_[gang.id] = gang.time_limit; }

  void note_end(const std::string& id, Time started) {
    const auto limit = limits_[id] ? limits_[id] : options_.run_time;
    // A gang past its limit ends any moment.
    if (limit) ends_[id] = std::max(started + *limit, now_ + Milliseconds(1));
  }

  void began(const PlannedStart& start) {
    tasks_held_[start.id] += std::ssize(start.tasks);
    if (waiting_.erase(start.id) > 0) result_.starts.emplace(start.id, now_);
    if (!ends_.contains(start.id)) note_end(start.id, now_);
  }

  void evict(const Eviction& eviction) {
    ++result_.evictions;
    // An elastic gang may lose some of its tasks, and continues.
    std::ptrdiff_t& held = tasks_held_[eviction.id];
    held -= std::ssize(eviction.tasks);
    if (held == 0) ends_.erase(eviction.id);
    scheduler_.released(eviction.id, eviction.tasks);
  }

  std::optional<Time> next_moment(const std::optional<Time>& again_at) const {
    std::optional<Time> next = again_at;
    for (const auto& [id, time] : ends_) {
      if (!next || time < *next) next = time;
    }
    return next;
  }

  void end_gangs() {
    for (auto entry = ends_.begin(); entry != ends_.end();) {
      if (entry->second > now_) {
        ++entry;
        continue;
      }
      scheduler_.ended(entry->first);
      entry = ends_.erase(entry);
    }
  }

  const WhatIfOptions& options_;
  Scheduler scheduler_;
  Time now_;
  std::map<std::string, std::optional<Milliseconds>> limits_;
  std::map<std::string, std::ptrdiff_t> tasks_held_;  ///< how many tasks of each gang run
  std::map<std::string, Time> ends_;
  std::set<std::string> waiting_;
  WhatIfResult result_;
};

}  // namespace

WhatIfResult what_if(const ClusterState& cluster, const WhatIfOptions& options) {
  return VirtualCluster(cluster, options).run();
}

}  // namespace muster::schedule
