// The launcher of a kMpi job whose ranks Slurm's srun starts: they run in a step of the gang's
// Slurm job, with what PMIx tells an MPI, and within the tasks of the gang. The command of such a
// job is the program of a rank alone.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/task_plan.h"

namespace muster::launch {

/// A task that takes ranks.
struct SrunHost {
  std::string task;
  std::string node;  ///< as Slurm calls it
  int slots = 1;
};

struct SrunSite {
  std::string srun;    ///< as the launcher sees it
  std::string joiner;  ///< `JOINER --join TASKS PROGRAM...`: enters the task of the rank
  std::string folder;  ///< the generated folder, as the launcher sees it
};

/// In the generated folder of the launcher: the node of each rank, a line each.
inline constexpr const char* kSrunNodesFile = "srun_nodes";

/// What runs srun, and tells the ranks where it is told to end.
inline constexpr const char* kSrunScript = "srun_ranks";

/// The variable that says to JOINER where the folders of the gang's tasks lie on the node: the
/// engine sets it for the launcher.
inline constexpr const char* kAttemptFolder = "MUSTER_ATTEMPT_FOLDER";

/// Whether the command is an srun of the user's own, which is run as it is.
bool is_own_srun(const std::vector<std::string>& program);

/// kRefused: there is no program, or one of the words is the launcher of an MPI, which would start
/// all ranks once for each rank.
base::Result<void> check_srun_program(const std::vector<std::string>& program);

/// Rank 0 is the first of the first host, and so on.
std::vector<std::string> srun_command(const SrunSite& site, const std::vector<SrunHost>& hosts,
                                      const std::vector<std::string>& program);

PlannedFile srun_script();
PlannedFile srun_nodes_file(const std::vector<SrunHost>& hosts);

}  // namespace muster::launch
