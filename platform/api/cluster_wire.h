// Projects on the wire, in both directions. docs/api.md shows the shape by example.
//
// Amounts are decimal numbers of GPUs and CPUs (at most three decimals) and bytes of memory. Null
// instead of an amount: no limit, or in a quota all resources.
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
#include "job/machine_type.h"
#include "job/node.h"
#include "job/project.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

/// POST /v1/what-if: when would the waiting jobs start with more nodes?
struct WhatIfRequest {
  int add_nodes = 0;
  std::string like;
  std::optional<std::chrono::milliseconds> run_time;

  bool operator==(const WhatIfRequest&) const = default;
};
const record::Table& table_of(const WhatIfRequest*);
Result<WhatIfRequest> what_if_request_from_json(std::string_view text);

struct WhatIfJob {
  std::string id;
  std::string name;
  std::string project;
  std::optional<base::Time> before;
  std::optional<base::Time> after;

  bool operator==(const WhatIfJob&) const = default;
};
const record::Table& table_of(const WhatIfJob*);

struct WhatIf {
  std::vector<WhatIfJob> jobs;
  int evictions = 0;
  bool complete = true;

  bool operator==(const WhatIf&) const = default;
};
const record::Table& table_of(const WhatIf*);
std::string what_if_to_json(const WhatIf& answer);

std::string project_to_json(const job::ProjectStatus& project);
Result<job::ProjectStatus> project_from_json(std::string_view text);

/// {"projects": [...]}
std::string projects_to_json(const std::vector<job::ProjectStatus>& projects);
Result<std::vector<job::ProjectStatus>> projects_from_json(std::string_view text);

/// A change of a Share. An amount that is not set does not change; an amount that is set to nothing
/// is unlimited from then on.
struct ShareChange {
  using Amount = std::optional<std::optional<int64_t>>;
  Amount gpu_milli;
  Amount cpu_milli;
  Amount memory_bytes;

  bool operator==(const ShareChange&) const = default;
};
const record::Table& table_of(const ShareChange*);

struct QuotaChange {
  ShareChange deserved;
  ShareChange limit;
  std::optional<double> weight;

  bool operator==(const QuotaChange&) const = default;
};
const record::Table& table_of(const QuotaChange*);

/// The body of a request that creates or changes a project. Fields that are not set do not change,
/// or have their default in a new project.
struct ProjectChange {
  std::string name = {};  ///< required for a new project; for an existing one its name, or empty
  std::optional<std::string> parent;  ///< empty: to the top level
  QuotaChange quota;
  std::map<std::string, std::optional<QuotaChange>> pools;  ///< nothing: removes the pool's quota
  std::optional<int> priority;
  std::optional<std::chrono::milliseconds> reclaim_min_runtime;
  std::optional<std::chrono::milliseconds> preempt_min_runtime;
  std::optional<bool> takes_the_rest;

  bool operator==(const ProjectChange&) const = default;
};
const record::Table& table_of(const ProjectChange*);

/// The body of POST /v1/projects (with the name) and of PATCH /v1/projects/NAME (without: empty).
std::string project_change_to_json(const std::string& name, const ProjectChange& change);

/// Applies such a body to `start`; a `start` without a name is a new project. Fields that only
/// listings have (status, sequence, created) are ignored, so that a client can send back a project
/// that it has read.
Result<job::Project> read_project(std::string_view text, job::Project start);

/// `project` with its change. A number of GPUs in the quota ends `takes_the_rest`, unless the
/// change sets that, too.
job::Project changed(job::Project project, const ProjectChange& change);

// Nodes on the wire, in both directions. docs/api.md shows the shape by example.
//
// Pure; thread-safe.

std::string node_to_json(const job::Node& node);
Result<job::Node> node_from_json(std::string_view text);

/// {"nodes": [...]}
std::string nodes_to_json(const std::vector<job::Node>& nodes);
Result<std::vector<job::Node>> nodes_from_json(std::string_view text);

// The machine types of a server: {"machine_types": [{"name", "gpus", "gpu_share",
// "gpu_memory_bytes", "gpu_model", "cpus", "memory_bytes"}, ...]}, with all fields in each.
//
// Pure; see api/wire.h.

std::string machine_types_to_json(const job::MachineTypes& types);
base::Result<job::MachineTypes> machine_types_from_json(std::string_view text);

}  // namespace muster::api
