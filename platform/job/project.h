// A project: who may use how much. Projects form a tree; jobs belong to its leaves.
//
// Plain values. Which sets of projects make sense is validate_project()'s question here, and
// schedule::check_projects()'s for the tree.
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

/// What of each resource; nothing stands for "no bound" in a limit, and for "all of it" in a quota.
struct Share {
  std::optional<int64_t> gpu_milli;
  std::optional<int64_t> cpu_milli;
  std::optional<int64_t> memory_bytes;

  bool operator==(const Share&) const = default;
};

struct Quota {
  Share deserved{.gpu_milli = 0};  ///< what the project can always claim
  Share limit;                     ///< what it never exceeds
  double weight = 1;               ///< its part of what others leave unused; 0: none

  bool operator==(const Quota&) const = default;
};

struct Project {
  std::string name;
  std::string parent;  ///< empty: at the top
  Quota quota;         ///< in every pool that is not in `pools`
  std::map<std::string, Quota> pools;
  int priority = 100;  ///< larger ones are served first of what others leave unused
  std::chrono::milliseconds reclaim_min_runtime{0};
  std::chrono::milliseconds preempt_min_runtime{0};
  /// The default project until it is given a number of GPUs: it deserves the GPUs that no other
  /// project was promised, in each pool in which its quota has no GPUs.
  bool takes_the_rest = false;
  uint64_t sequence = 0;  ///< order of creation
  base::Time created;

  bool operator==(const Project&) const = default;
};

/// A project as it stands, for listings.
struct ProjectStatus {
  struct Amounts {
    int64_t gpu_milli = 0;
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;

    bool operator==(const Amounts&) const = default;
  };
  Project project;
  Share deserved;  ///< in force: of a project that takes the rest, what that is
  Amounts allocated;
  Amounts allocated_non_preemptible;
  Amounts requested;  ///< what runs and what waits
  Share fair_share;
  int running = 0;  ///< jobs, those of projects below included
  int waiting = 0;

  bool operator==(const ProjectStatus&) const = default;
};

/// Empty when the project can be kept: its name, its numbers.
std::vector<base::Fault> validate_project(const Project& project);

// The fields of a Project, as the store keeps it, and of a ProjectStatus, as the API lists it, one
// row each (record/table.h). The API's document of a project is its ProjectStatus.

const record::Table& table_of(const Project*);
const record::Table& table_of(const ProjectStatus*);
const record::Table& table_of(const ProjectStatus::Amounts*);
const record::Table& table_of(const Quota*);
const record::Table& table_of(const Share*);

// Which of Slurm's accounts a project's jobs are charged to: one answer for whoever submits them
// and for whoever says what jobs may name beside it.
//
// Pure.

/// That of the project in `accounts`, else `fallback`, in which "%p" is the project's name. Empty:
/// Slurm's own for the user.
std::string slurm_account_of(const std::string& project,
                             const std::map<std::string, std::string>& accounts,
                             const std::string& fallback);

}  // namespace muster::job
