// Nodes, projects and clusters as Run:AI lists them, and what `top` says of nodes and jobs. What is
// not measured is "-": no number here is a guess.
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

/// By name; `in_use` is marked " (default)".
std::string project_list(std::vector<job::ProjectStatus> projects, const std::string& in_use);

struct Cluster {
  std::string name;
  std::string project;  ///< in use there
};
/// `in_use` is marked " (default)".
std::string cluster_list(const std::vector<Cluster>& clusters, const std::string& in_use);

/// `details`: each of their GPUs, too.
std::string top_nodes(const std::vector<job::Node>& nodes, bool details);

/// Those that run, with the most GPUs first.
std::string top_jobs(std::vector<job::Job> jobs, base::Time now);

}  // namespace muster::dialects::runai
