// The parts of a muster-node that are specific to Slurm: the variables of its step, which name the
// task to run and the resources that Slurm has allocated; the ranks that srun starts; and Slurm's
// node lists. Everything else in this folder works the same in any cluster.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/node/messages.h"
#include "launch/task_plan.h"

namespace muster::engine::node {

using Variables = std::map<std::string, std::string>;

/// From lines NAME=VALUE.
Variables variables_of(const std::vector<std::string>& environment);

/// `component`: the component that the step was started for; -1: the step spans several, and the
/// rank in the step determines which. kInvalid: srun did not start this process.
base::Result<NodeFacts> read_step_facts(int component, const Variables& variables);

/// Adapts the plan of a launcher whose ranks srun starts: adds the variables by which srun finds
/// its Slurm job, and the folder of the gang's tasks on each node. No other task gets these
/// variables: an mpirun that saw them would have Slurm start its daemons. Other plans stay as they
/// are. `variables`: those of muster-node's own step.
launch::TaskPlan plan_srun_launcher(launch::TaskPlan plan, const Variables& variables,
                                    const std::string& attempt_folder);

// --- ranks that srun starts

struct JoiningRank {
  std::string task;
  int rank = 0;
  int local_rank = 0;  ///< in its task
  int world_size = 0;

  bool operator==(const JoiningRank&) const = default;
};

/// Which rank this process is to be. `tasks`: the number of ranks of each task, in order:
/// "worker-0=2,worker-1=2". kInvalid: the text is malformed, or the step has another number of
/// ranks.
base::Result<JoiningRank> joining_rank(std::string_view tasks, const Variables& step);

/// The environment of the rank's program: the task's, and what Slurm and PMIx set for the rank.
std::vector<std::string> environment_of_rank(const std::vector<std::string>& task,
                                             const Variables& step, const JoiningRank& rank);

/// muster-node --join TASKS PROGRAM...: with --launch srun, srun starts each rank of a gang through
/// this. It enters the sandbox of the rank's task on this node, registers the rank, and runs the
/// program there. The program stays in Slurm's step: it has the step's PMIx variables, standard
/// streams and signals. `arguments`: from TASKS on. Returns the program's exit code; if a signal
/// ended the program, the same signal ends this process.
int run_join(const std::vector<std::string>& arguments);

// --- node lists

/// More than any cluster has; a longer list is invalid.
inline constexpr size_t kMostNodes = 200'000;

/// Expands a list of nodes as Slurm prints it: "n[1-3,07],gpu-a2" is n1, n2, n3, n07 and gpu-a2. A
/// name may have several brackets. Empty for "", "(null)", "None assigned". kInvalid: malformed.
base::Result<std::vector<std::string>> expand_nodes(std::string_view list);

}  // namespace muster::engine::node
