#include "engine/slurm/node/launcher_here.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "engine/slurm/node_list.h"
#include "launch/srun_command.h"

namespace muster::engine::slurm {

namespace {

/// What is said of the job, and not of muster-node's step and its place in that.
bool is_of_the_job(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kNames{
      "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_HET_SIZE", "SLURM_JOBID", "SLURM_RESTART_COUNT"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  // What the batch script was asked for would be asked for again.
  if (name == "SLURM_JOB_NAME") return false;
  return name.starts_with("SLURM_JOB_") || name.starts_with("SLURM_SACK_");
}

std::set<std::string> nodes_in(const launch::TaskPlan& plan) {
  std::set<std::string> nodes;
  for (const launch::PlannedFile& file : plan.files) {
    if (file.path != launch::kSrunNodesFile) continue;
    for (size_t at = 0; at < file.content.size();) {
      const size_t end = std::min(file.content.find('\n', at), file.content.size());
      nodes.insert(file.content.substr(at, end - at));
      at = end + 1;
    }
  }
  return nodes;
}

/// Which component of a heterogeneous job has all of these nodes; -1: none.
int component_with(const std::set<std::string>& nodes, const Variables& variables) {
  const auto size = variables.find("SLURM_HET_SIZE");
  const int components =
      size == variables.end() ? 0 : base::number_of<int>(size->second).value_or(0);
  for (int i = 0; i < components; ++i) {
    const auto list = variables.find("SLURM_JOB_NODELIST_HET_GROUP_" + std::to_string(i));
    const auto names = list == variables.end() ? base::Result<std::vector<std::string>>({})
                                               : expand_nodes(list->second);
    if (!names) continue;
    const bool has_all = std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
      return std::find(names->begin(), names->end(), node) != names->end();
    });
    if (has_all && !nodes.empty()) return i;
  }
  return -1;
}

}  // namespace

launch::TaskPlan launcher_here(launch::TaskPlan plan, const Variables& variables,
                               const std::string& attempt_folder) {
  const std::set<std::string> nodes = nodes_in(plan);
  // Of Muster's making, or of the user's own.
  const bool runs_srun = !nodes.empty() || launch::is_own_srun(plan.argv);
  if (plan.role != job::Role::kLauncher || !runs_srun) return plan;
  for (const auto& [name, value] : variables) {
    if (is_of_the_job(name)) plan.environment[name] = value;
  }
  plan.environment[launch::kAttemptFolder] = attempt_folder;
  const int component = component_with(nodes, variables);
  if (component >= 0) {
    const auto srun = std::find_if(plan.argv.begin(), plan.argv.end(), [](const std::string& word) {
      return launch::is_own_srun({word});
    });
    if (srun == plan.argv.end()) return plan;
    plan.argv.insert(srun + 1, "--het-group=" + std::to_string(component));
  }
  return plan;
}

}  // namespace muster::engine::slurm
