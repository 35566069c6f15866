// The parts of heterogeneous jobs, which Slurm lists each by itself, as one job.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

struct ListedPart {
  ListedJob job;
  uint64_t leader = 0;  ///< its own id, where it is no part of another
  int offset = 0;
};

/// Each job once, where its first part was, with the nodes of all its parts in their order. It goes
/// on while a part does, and has ended as the part that says why.
std::vector<ListedJob> whole_jobs(const std::vector<ListedPart>& parts);

/// How it ended, as wait(2) says it.
void set_exit(ListedJob& job, uint32_t status);

}  // namespace muster::engine::slurm
