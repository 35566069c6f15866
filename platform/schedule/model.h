// The input of the scheduler: nodes, projects, gangs. Its output is in plan.h.
//
// Plain values. They are not checked here: job::validate() and check_projects() run before.
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

using job::Amounts;
using job::Claim;
using job::kBoundless;
using job::kNothing;
using job::kResources;
using job::kUnlimited;
using job::kWholeGpu;
using job::Resource;

__extension__ using Wide = __int128;

/// Sums of amounts in 128 bits. They cannot overflow, so that every addition can be undone exactly,
/// even of absurd amounts.
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
  void add(Resource resource, Wide amount) { sums_[static_cast<size_t>(resource)] += amount; }
  WideAmounts& operator+=(const WideAmounts& other) {
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
    return *this;
  }
  friend WideAmounts operator+(WideAmounts sum, const Amounts& amounts) { return sum += amounts; }

  /// As plain amounts, at most kUnlimited.
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
  /// A device plug-in chooses the GPUs of each task: here, their numbers only count them.
  bool anonymous_gpus = false;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;  ///< of each GPU; 0: unknown
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int task_slots = 0;                           ///< maximum number of tasks; 0: no bound
  bool cordoned = false;                        ///< gets no new tasks; running tasks continue
  bool silent = false;                          ///< does not answer. REQUIRES: cordoned
  std::string fault;                            ///< why it is silent; empty: unknown
  std::map<std::string, std::string> topology;  ///< level -> domain: {"rack": "r1", "block": "b1"}
  std::map<std::string, std::string> labels;
  /// Only gangs that tolerate all of these use the node: "dedicated=train:NoSchedule".
  std::vector<std::string> taints;

  bool operator==(const Node&) const = default;
};

/// A share of one pool. kUnlimited is a valid value of `deserved` and `limit`.
struct Quota {
  Amounts deserved{0, kUnlimited, kUnlimited};  ///< the quota, which the project can always claim
  Amounts limit = kBoundless;                   ///< the project never exceeds it
  double weight = 1;  ///< weight of its share of unclaimed resources; 0: no share

  bool operator==(const Quota&) const = default;
};

struct Project {
  std::string name;
  std::string parent;                   ///< empty: at the top. Gangs belong to leaves.
  int priority = 100;                   ///< larger ones get unclaimed resources first
  uint64_t sequence = 0;                ///< order of creation; breaks ties, the oldest first
  std::map<std::string, Quota> quotas;  ///< by pool; `quota` applies to all other pools
  Quota quota;
  Milliseconds reclaim_min_runtime{0};  ///< gangs that run shorter are not reclaimed
  Milliseconds preempt_min_runtime{0};  ///< and not preempted
  Amounts past_use;  ///< decayed use over time, in thousandths of the cluster; see Options

  bool operator==(const Project&) const = default;
};

/// Tasks of a gang with the same claim.
struct TaskGroup {
  Claim claim;
  int count = 1;
  int minimum = 1;        ///< the gang can run with this many; more start when resources are free
  bool launcher = false;  ///< evicted last

  bool operator==(const TaskGroup&) const = default;
};

enum class Packing {
  kFragmentation,  ///< the node where usual claims lose the least room (FGD); the default
  kPack,           ///< the fullest node that fits
  kSpread,         ///< the emptiest
};

/// A job as the scheduler sees it. Its tasks are numbered through its groups, from groups[0] on.
struct Gang {
  std::string id;
  std::string name;  ///< for messages
  std::string project;
  int priority = 50;
  bool preemptible = true;  ///< may run over quota, and may be evicted
  uint64_t sequence = 0;    ///< order of submission
  std::vector<TaskGroup> groups;
  std::vector<std::string> pools;                  ///< tried in this order; empty: the default pool
  std::vector<std::string> gpu_models;             ///< any of these; empty: any
  std::vector<std::string> excluded_nodes;         ///< never on these nodes
  std::map<std::string, std::string> node_labels;  ///< only on nodes with all of these labels
  /// Taints that are no obstacle, as job::tolerates() compares them.
  std::vector<std::string> tolerations;
  std::string required_topology;   ///< a level: all tasks in one of its domains
  std::string preferred_topology;  ///< a level: in one domain if possible
  std::optional<Packing> packing;  ///< else Options::packing
  std::optional<Milliseconds>
      time_limit;  ///< the gang's latest end; used by reservations and backfill
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
