// Why a job does not start yet: the scheduler has no room for it, or the job waits for something before the
// scheduler looks at it. Facts as in job/fact.h. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "job/fact_parts.h"

namespace muster::job {

// --- why a job waits for the scheduler

/// Its project, or a project above it, is at its limit; or the job is not preemptible, and the
/// quota is used up.
struct OverCapacity {
  static constexpr std::string_view kKind = "over_capacity";
  std::string job;  ///< the name of the waiting job
  ProjectRef project;
  bool is_quota = false;  ///< the quota of jobs that are not preemptible; otherwise a limit
  Resource resource = Resource::kGpu;
  int64_t bound = 0;
  int64_t allocated = 0;
  int64_t requested = 0;

  bool operator==(const OverCapacity&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("project", self.project);
    visit("is_quota", self.is_quota);
    visit("resource", self.resource);
    visit("bound", self.bound);
    visit("allocated", self.allocated);
    visit("requested", self.requested);
  }
};

/// A node that does not answer.
struct NodeFault {
  std::string node;
  std::string fault;  ///< why it does not answer; empty: unknown

  bool operator==(const NodeFault&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("node", self.node);
    visit("fault", self.fault);
  }
};

/// No set of nodes has room for it.
struct NoRoom {
  static constexpr std::string_view kKind = "no_room";
  /// True: it can start when other jobs end; false: it could not start on an empty cluster either.
  bool ever = true;
  int tasks = 0;                       ///< of the minimum
  int placed = 0;                      ///< the largest number of these for which there is room
  Claim claim;                         ///< the claim of the task without room
  bool alike = true;                   ///< all tasks have this claim
  std::string topology;                ///< the required level; empty: none
  int nodes = 0;                       ///< the nodes that it may use
  int cordoned = 0;                    ///< further nodes, which are cordoned
  int silent = 0;                      ///< further nodes, which do not answer
  std::vector<NodeFault> faults;       ///< of the first of the silent nodes
  int64_t free_gpu_milli = 0;          ///< the sum over `nodes`
  int64_t largest_free_gpu_milli = 0;  ///< the maximum over `nodes`
  int64_t largest_free_cpu_milli = 0;
  int64_t largest_free_memory_bytes = 0;
  // The number of nodes that lack each resource for one more task. A node may lack several.
  int lack_gpu = 0;
  int lack_cpu = 0;
  int lack_memory = 0;
  int lack_task_slots = 0;
  // What the job requires of its nodes; empty unless `nodes` is 0.
  std::vector<std::string> pools;
  std::vector<std::string> gpu_models;
  std::vector<std::string> labels;  ///< "zone=a"
  std::vector<std::string> excluded_nodes;

  bool operator==(const NoRoom&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("ever", self.ever);
    visit("tasks", self.tasks);
    visit("placed", self.placed);
    visit("claim", self.claim);
    visit("alike", self.alike);
    visit("topology", self.topology);
    visit("nodes", self.nodes);
    visit("cordoned", self.cordoned);
    visit("silent", self.silent);
    visit("faults", self.faults);
    visit("free_gpu_milli", self.free_gpu_milli);
    visit("largest_free_gpu_milli", self.largest_free_gpu_milli);
    visit("largest_free_cpu_milli", self.largest_free_cpu_milli);
    visit("largest_free_memory_bytes", self.largest_free_memory_bytes);
    visit("lack_gpu", self.lack_gpu);
    visit("lack_cpu", self.lack_cpu);
    visit("lack_memory", self.lack_memory);
    visit("lack_task_slots", self.lack_task_slots);
    visit("pools", self.pools);
    visit("gpu_models", self.gpu_models);
    visit("labels", self.labels);
    visit("excluded_nodes", self.excluded_nodes);
  }
};

/// Its project is unknown, or has subprojects.
struct NoProject {
  static constexpr std::string_view kKind = "no_project";
  std::string project;
  bool has_children = false;

  bool operator==(const NoProject&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("project", self.project);
    visit("has_children", self.has_children);
  }
};

/// The free resources are reserved for a job that precedes it.
struct Reserved {
  static constexpr std::string_view kKind = "reserved";
  JobRef held_for;

  bool operator==(const Reserved&) const = default;
  static void fields(auto& self, auto&& visit) { visit("held_for", self.held_for); }
};

/// It has placements, and evicted tasks are still leaving them.
struct Promised {
  static constexpr std::string_view kKind = "promised";
  int tasks = 0;
  Others leaving;

  bool operator==(const Promised&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("tasks", self.tasks);
    visit("leaving", self.leaving);
  }
};

/// In a forecast: it would start after these jobs have been evicted.
struct AfterEvictions {
  static constexpr std::string_view kKind = "after_evictions";
  Others jobs;

  bool operator==(const AfterEvictions&) const = default;
  static void fields(auto& self, auto&& visit) { visit("jobs", self.jobs); }
};

struct TriedAgain {
  static constexpr std::string_view kKind = "tried_again";
  int64_t in_seconds = 0;

  bool operator==(const TriedAgain&) const = default;
  static void fields(auto& self, auto&& visit) { visit("in_seconds", self.in_seconds); }
};

/// A detail: the holders of the resources that it needs, in the pool, or in a project that is at
/// its limit.
struct HeldByOthers {
  static constexpr std::string_view kKind = "held_by";
  std::optional<ProjectRef> below;
  Holders holders;

  bool operator==(const HeldByOthers&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("below", self.below);
    visit("holders", self.holders);
  }
};

// --- why the scheduler does not get a job yet

/// It starts after other jobs, some of which have not ended yet.
struct WaitsForJobs {
  static constexpr std::string_view kKind = "waits_for_jobs";
  std::vector<AwaitedEnd> jobs;  ///< those that have not ended

  bool operator==(const WaitsForJobs&) const = default;
  static void fields(auto& self, auto&& visit) { visit("jobs", self.jobs); }
};

struct WaitsUntil {
  static constexpr std::string_view kKind = "waits_until";
  base::Time begin;

  bool operator==(const WaitsUntil&) const = default;
  static void fields(auto& self, auto&& visit) { visit("begin", self.begin); }
};

/// An earlier job with the same singleton has not ended.
struct WaitsForSingleton {
  static constexpr std::string_view kKind = "waits_for_singleton";
  JobRef job;
  std::string singleton;

  bool operator==(const WaitsForSingleton&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("singleton", self.singleton);
  }
};

/// Its owner has an account, and this server does not isolate the jobs of users from each other and
/// from itself.
struct WaitsForIsolation {
  static constexpr std::string_view kKind = "waits_for_isolation";
  std::string owner;

  bool operator==(const WaitsForIsolation&) const = default;
  static void fields(auto& self, auto&& visit) { visit("owner", self.owner); }
};

}  // namespace muster::job
