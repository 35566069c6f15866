// Which task of its Slurm job a muster-node is there for, and what Slurm gave it, as the variables
// of its step say.
//
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine::slurm {

using Variables = std::map<std::string, std::string>;

struct StepFacts {
  int component = 0;
  int index = 0;           ///< of the task in it
  uint64_t slurm_job = 0;  ///< of a heterogeneous one, its leader
  int restarts = 0;
  std::string node;
  std::vector<std::string> gpus;  ///< CUDA_VISIBLE_DEVICES, where Slurm has set it
  std::vector<int> gpu_indices;   ///< their numbers on the node

  bool operator==(const StepFacts&) const = default;
};

/// `component`: that the step was started for; -1: the step is of several, and which one is found
/// by how many tasks each has. kInvalid: it was not started by srun.
base::Result<StepFacts> read_step_facts(int component, const Variables& variables);

/// Of the lines of an environment.
Variables variables_of(const std::vector<std::string>& environment);

}  // namespace muster::engine::slurm
