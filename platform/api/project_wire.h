// Projects over the wire, both ways. docs/api.md shows the shape by example.
//
// Amounts are decimal numbers of GPUs and CPUs (thousandths count, what is finer is a fault) and
// bytes of memory. null in their place: no bound in a limit, all there is in a quota.
//
// Pure; thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/project.h"

namespace muster::api {

using base::Result;

std::string project_to_json(const job::ProjectStatus& project);
Result<job::ProjectStatus> project_from_json(std::string_view text);

/// {"projects": [...]}
std::string projects_to_json(const std::vector<job::ProjectStatus>& projects);
Result<std::vector<job::ProjectStatus>> projects_from_json(std::string_view text);

/// What is not set stays as it is; what is set to nothing is unbounded from then on.
struct ShareChange {
  using Amount = std::optional<std::optional<int64_t>>;
  Amount gpu_milli;
  Amount cpu_milli;
  Amount memory_bytes;

  bool operator==(const ShareChange&) const = default;
};

struct QuotaChange {
  ShareChange deserved;
  ShareChange limit;
  std::optional<double> weight;

  bool operator==(const QuotaChange&) const = default;
};

/// What a request says to create a project, or to change one. What is not set stays as it is, and
/// in a new project has its default.
struct ProjectChange {
  std::optional<std::string> parent;  ///< empty: to the top
  QuotaChange quota;
  std::map<std::string, QuotaChange> pools;
  std::vector<std::string> removed_pools;  ///< that have no quota of their own any more
  std::optional<int> priority;
  std::optional<std::chrono::milliseconds> reclaim_min_runtime;
  std::optional<std::chrono::milliseconds> preempt_min_runtime;
  std::optional<bool> takes_the_rest;

  bool operator==(const ProjectChange&) const = default;
};

/// The body of POST /v1/projects (with the name) and of PATCH /v1/projects/NAME (without: empty).
std::string project_change_to_json(const std::string& name, const ProjectChange& change);

/// `start` with what such a body changes. A null takes a bound away, or a pool's own quota. What a
/// listing says beside (status, sequence, created) is passed over, so that a project that was read
/// can be sent back.
Result<job::Project> read_project(std::string_view text, job::Project start);

}  // namespace muster::api
