// A project and its quota. Projects form a tree; jobs belong to its leaves.
//
// Plain values. validate_project() checks one project, and schedule::check_projects() the tree.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "record/table.h"

namespace muster::job {

inline constexpr std::string_view kDefaultProject = "default";
inline constexpr std::string_view kDefaultPool = "default";

/// An amount of each resource. Nothing means no bound in a limit, and all there is in a quota.
struct Share {
  std::optional<int64_t> gpu_milli;
  std::optional<int64_t> cpu_milli;
  std::optional<int64_t> memory_bytes;

  bool operator==(const Share&) const = default;
};

struct Quota {
  Share deserved{.gpu_milli = 0};  ///< what the project can always claim
  Share limit;                     ///< what it never exceeds
  double weight = 1;               ///< its part of resources that others leave unused; 0: no part

  bool operator==(const Quota&) const = default;
};

struct Project {
  std::string name;
  std::string parent;  ///< empty: at the top
  Quota quota;         ///< in every pool that is not in `pools`
  std::map<std::string, Quota> pools;
  int priority = 100;  ///< larger: served first from resources that others leave unused
  std::chrono::milliseconds reclaim_min_runtime{0};
  std::chrono::milliseconds preempt_min_runtime{0};
  /// Of the default project until it gets a quota of GPUs: it deserves the GPUs that are in no
  /// other project's quota, in each pool in which its own quota has no GPUs.
  bool takes_the_rest = false;
  uint64_t sequence = 0;  ///< order of creation
  base::Time created;

  bool operator==(const Project&) const = default;
};

/// A project with its use of the cluster, for listings.
struct ProjectStatus {
  struct Amounts {
    int64_t gpu_milli = 0;
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;

    bool operator==(const Amounts&) const = default;
  };
  Project project;
  Share deserved;  ///< the quota in force; of a project that takes the rest, the rest
  Amounts allocated;
  Amounts allocated_non_preemptible;
  Amounts requested;  ///< by running and waiting jobs
  Share fair_share;
  int running = 0;  ///< jobs, including those of projects below
  int waiting = 0;

  bool operator==(const ProjectStatus&) const = default;
};

/// Empty if the project is valid by itself.
std::vector<base::Fault> validate_project(const Project& project);

// The fields of a Project, as the store keeps it, and of a ProjectStatus, as the API lists it, one
// row each (record/table.h). The API's document of a project is its ProjectStatus.

const record::Table& table_of(const Project*);
const record::Table& table_of(const ProjectStatus*);
const record::Table& table_of(const ProjectStatus::Amounts*);
const record::Table& table_of(const Quota*);
const record::Table& table_of(const Share*);

/// The Slurm account that a project's jobs are charged to: the project's in `accounts`, else
/// `fallback`, in which "%p" is the project's name. Empty: Slurm's default for the user.
std::string slurm_account_of(const std::string& project,
                             const std::map<std::string, std::string>& accounts,
                             const std::string& fallback);

}  // namespace muster::job
