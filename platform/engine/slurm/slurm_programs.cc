#include "engine/slurm/slurm_programs.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::engine::slurm {

namespace {

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

/// Variables that identify the cluster and the user.
bool identifies_cluster(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kNames{"SLURM_CONF", "SLURM_JWT",
                                                          "LD_LIBRARY_PATH"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         name.starts_with("SLURM_SACK_");
}

/// Slurm's programs read options from variables that begin with their names; and a server that was
/// started within a Slurm job has the variables of that job.
bool is_slurms(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kPrefixes{
      "SLURM_",    "SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_",
      "SCONTROL_", "SACCT_",  "SALLOC_", "SRUN_",  "SLURMD_"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> environment_for_asking(const std::vector<std::string>& own) {
  std::vector<std::string> environment;
  for (const std::string& variable : own) {
    const std::string_view name = name_of(variable);
    if (name == "TZ" || name == "LC_ALL" || (is_slurms(name) && !identifies_cluster(name))) {
      continue;
    }
    environment.push_back(variable);
  }
  environment.insert(environment.end(),
                     {"TZ=UTC0", "LC_ALL=C", "SLURM_TIME_FORMAT=%Y-%m-%dT%H:%M:%S"});
  return environment;
}

std::vector<std::string> environment_for_submitting(
    const std::vector<std::string>& own, const std::map<std::string, std::string>& script) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : script) environment.push_back(name + "=" + value);
  for (const std::string& variable : own) {
    const std::string name(name_of(variable));
    if (identifies_cluster(name) && !script.contains(name)) environment.push_back(variable);
  }
  return environment;
}

}  // namespace muster::engine::slurm
