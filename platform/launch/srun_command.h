// The launcher of a kMpi job whose ranks Slurm's srun starts: they run in a step of the gang's
// Slurm job, get MPI's parameters from PMIx, and run inside the tasks of the gang. The command of
// such a job is the program of a single rank.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/task_plan.h"

namespace muster::launch {

/// A task that runs ranks.
struct SrunHost {
  std::string task;
  std::string node;  ///< Slurm's name of the node
  int slots = 1;
};

struct SrunSite {
  std::string srun;    ///< the path as the launcher sees it
  std::string joiner;  ///< `JOINER --join TASKS PROGRAM...` moves a rank into its task
  std::string folder;  ///< the generated folder, as the launcher sees it
};

/// In the launcher's generated folder: the node of each rank, one in each line.
inline constexpr const char* kSrunNodesFile = "srun_nodes";

/// Runs srun, and passes signals on to the ranks.
inline constexpr const char* kSrunScript = "srun_ranks";

/// The variable with the folder of the gang's tasks on a node, for JOINER; the engine sets it for
/// the launcher.
inline constexpr const char* kAttemptFolder = "MUSTER_ATTEMPT_FOLDER";

/// Whether the command is the user's own srun, which is run unchanged.
bool is_own_srun(const std::vector<std::string>& program);

/// kRefused: there is no program, or a word of it is an MPI launcher, which would start all ranks
/// once for each rank.
base::Result<void> check_srun_program(const std::vector<std::string>& program);

/// Rank 0 is the first rank of the first host, and so on.
std::vector<std::string> srun_command(const SrunSite& site, const std::vector<SrunHost>& hosts,
                                      const std::vector<std::string>& program);

PlannedFile srun_script();
PlannedFile srun_nodes_file(const std::vector<SrunHost>& hosts);

}  // namespace muster::launch
