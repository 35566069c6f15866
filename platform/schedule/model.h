// What the scheduler is told: nodes, projects, gangs. What it answers stands in plan.h.
//
// Plain values. Nothing here is checked: job::validate and check_projects() come before.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/amounts.h"

namespace muster::schedule {

// The words of job/amounts.h as the scheduler's own: its books hold nothing else.

using job::Amounts;
using job::Claim;
using job::kBoundless;
using job::kNothing;
using job::kResources;
using job::kUnlimited;
using job::kWholeGpu;
using job::Resource;

// Sums of amounts that cannot overflow, so that what was added can be taken away again exactly,
// however absurd it was. Read where they are compared with bounds, which are plain amounts.

__extension__ using Wide = __int128;

class WideAmounts {
 public:
  WideAmounts() = default;
  explicit WideAmounts(const Amounts& amounts) { *this += amounts; }

  Wide operator[](Resource resource) const { return sums_[static_cast<size_t>(resource)]; }

  WideAmounts& operator+=(const Amounts& amounts) {
    for (const Resource resource : kResources) {
      sums_[static_cast<size_t>(resource)] += amounts[resource];
    }
    return *this;
  }
  WideAmounts& operator-=(const Amounts& amounts) {
    for (const Resource resource : kResources) {
      sums_[static_cast<size_t>(resource)] -= amounts[resource];
    }
    return *this;
  }
  WideAmounts& operator+=(const WideAmounts& other) {
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
    return *this;
  }
  friend WideAmounts operator+(WideAmounts sum, const Amounts& amounts) { return sum += amounts; }

  /// As plain amounts: what is past kUnlimited reads as kUnlimited.
  int64_t clamped(Resource resource) const {
    return static_cast<int64_t>(std::clamp<Wide>((*this)[resource], -kUnlimited, kUnlimited));
  }
  Amounts clamped() const {
    return {clamped(Resource::kGpu), clamped(Resource::kCpu), clamped(Resource::kMemory)};
  }

 private:
  std::array<Wide, kResources.size()> sums_{};
};

using base::Time;
using Milliseconds = std::chrono::milliseconds;

inline constexpr int kMaxGpusPerNode = 64;
inline constexpr const char* kDefaultPool = "default";

/// A machine. Its GPUs are all of one model.
struct Node {
  std::string name;
  std::string pool = kDefaultPool;
  int gpus = 0;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;  ///< of each GPU; 0: unknown
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int task_slots = 0;     ///< how many tasks fit, whatever they ask for; 0: no bound
  bool cordoned = false;  ///< takes nothing new; what runs goes on
  std::map<std::string, std::string> topology;  ///< level -> domain: {"rack": "r1", "block": "b1"}
  std::map<std::string, std::string> labels;

  bool operator==(const Node&) const = default;
};

/// A share of one pool. kUnlimited is a valid value of `deserved` and `limit`.
struct Quota {
  Amounts deserved{0, kUnlimited, kUnlimited};  ///< what the project can always claim
  Amounts limit = kBoundless;                   ///< what it can never exceed
  double weight = 1;                            ///< its part of what nobody claims; 0: none of it

  bool operator==(const Quota&) const = default;
};

struct Project {
  std::string name;
  std::string parent;     ///< empty: at the top. Gangs belong to leaves.
  int priority = 100;     ///< who is served first of what nobody claims; larger first
  uint64_t sequence = 0;  ///< order of creation: the older first where all else is equal
  std::map<std::string, Quota> quotas;  ///< by pool; a pool that is not named has `quota`
  Quota quota;
  Milliseconds reclaim_min_runtime{0};  ///< what runs shorter is safe from other projects
  Milliseconds preempt_min_runtime{0};  ///< and from more important gangs of its own
  Amounts past_use;  ///< decayed use over time, as parts of a thousand of the cluster; see Options

  bool operator==(const Project&) const = default;
};

/// Tasks of a gang that ask for the same.
struct TaskGroup {
  Claim claim;
  int count = 1;
  int minimum = 1;  ///< the gang runs with so many of them; the others come when there is room
  bool launcher = false;  ///< is evicted last

  bool operator==(const TaskGroup&) const = default;
};

enum class Packing {
  kFragmentation,  ///< where the least room is spoilt for what is usually asked (FGD); the default
  kPack,           ///< the fullest node that fits
  kSpread,         ///< the emptiest
};

/// A job as the scheduler sees it. Its tasks are numbered through its groups: those of groups[0]
/// first.
struct Gang {
  std::string id;
  std::string name;  ///< for sentences
  std::string project;
  int priority = 50;
  bool preemptible = true;  ///< may run over quota, and be evicted
  uint64_t sequence = 0;    ///< order of submission
  std::vector<TaskGroup> groups;
  std::vector<std::string> pools;                  ///< tried in this order; empty: the default pool
  std::vector<std::string> gpu_models;             ///< any of these; empty: any
  std::vector<std::string> excluded_nodes;         ///< never there
  std::map<std::string, std::string> node_labels;  ///< only where a node has all of these
  std::string required_topology;                   ///< a level: all tasks within one domain of it
  std::string preferred_topology;                  ///< a level: within one domain if there is one
  std::optional<Packing> packing;                  ///< else Options::packing
  std::optional<Milliseconds>
      time_limit;  ///< it ends by then; what reservations and backfill go by
  Time submitted;

  bool operator==(const Gang&) const = default;
};

/// Where one task runs.
struct TaskPlace {
  std::string node;
  std::vector<int> devices;  ///< indices of its GPUs on that node, ascending
  int share_milli = 0;       ///< of each of them: 1000, or a part of one; 0 without devices

  bool operator==(const TaskPlace&) const = default;
};

int task_count(const Gang& gang);
int minimum_tasks(const Gang& gang);
bool is_elastic(const Gang& gang);
/// The group that task `index` belongs to.
const TaskGroup& group_of(const Gang& gang, int index);

}  // namespace muster::schedule
