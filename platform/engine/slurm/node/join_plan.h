// What a rank that Slurm has started is to be, by what its step says: which rank, in which task of
// the gang, with which environment.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/slurm/node/step_facts.h"

namespace muster::engine::slurm {

struct JoiningRank {
  std::string task;
  int rank = 0;
  int local_rank = 0;  ///< in its task
  int world_size = 0;

  bool operator==(const JoiningRank&) const = default;
};

/// `tasks`: who takes how many ranks, in their order: "worker-0=2,worker-1=2". kInvalid: they are
/// none, or the step has another number of ranks.
base::Result<JoiningRank> joining_rank(std::string_view tasks, const Variables& step);

/// What the rank's program finds: the task's environment, with what Slurm and PMIx tell the rank.
std::vector<std::string> environment_of_rank(const std::vector<std::string>& task,
                                             const Variables& step, const JoiningRank& rank);

}  // namespace muster::engine::slurm
