// Nodes, projects and clusters as text of Run:AI, and the output of `top`. Values that are not measured
// are "-".
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::dialects::runai {

std::string node_list(const std::vector<job::Node>& nodes);
std::string node_description(const job::Node& node);

/// Sorted by name; the project `in_use` is marked " (default)".
std::string project_list(std::vector<job::ProjectStatus> projects, const std::string& in_use);

struct Cluster {
  std::string name;
  std::string project;  ///< the project in use there
};
/// The cluster `in_use` is marked " (default)".
std::string cluster_list(const std::vector<Cluster>& clusters, const std::string& in_use);

/// `details`: also each GPU.
std::string top_nodes(const std::vector<job::Node>& nodes, bool details);

/// Running jobs, those with the most GPUs first.
std::string top_jobs(std::vector<job::Job> jobs, base::Time now);

}  // namespace muster::dialects::runai
