// What the rank census says against a job: how large the world of its MPI program is and where its
// ranks run, against what was asked for.
//
// A launcher that is misled runs every rank on its own host and ends with 0, and a program that was
// built for another MPI than its launcher runs as many times as there are ranks, each alone. Both
// look like success. But a job may also run mpirun on one host on purpose, several times, or with
// fewer ranks than there are slots: only what no healthy job does is a fault.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::control {

struct CensusFault {
  job::RanksAstray cause;
  std::string advice;
  std::vector<std::string> evidence;  ///< "launcher: ranks 0 to 3", of every task that takes ranks
  /// False: it may be meant so. Worth telling while the job runs, and no reason to end it.
  bool is_certain = true;
};

/// Of a job that runs: a rank is in a wait that has no end (engine/rank_files.h, kHangs).
std::optional<CensusFault> hanging_rank(const job::Job& job,
                                        const std::vector<engine::RankPlace>& census);

/// What is to be said while the job runs.
struct CensusVerdict {
  /// A later look has nothing to add: the one world that there will be is complete.
  bool is_final = false;
  std::optional<CensusFault> fault;
};

/// Once all ranks of a world have been seen.
CensusVerdict judge_at_start(const job::Job& job, const std::vector<engine::RankPlace>& census);

/// Of a job whose launcher succeeded. That nothing ran in a worker is a fault: training of one
/// process would pass for distributed.
std::optional<CensusFault> judge_at_end(const job::Job& job,
                                        const std::vector<engine::RankPlace>& census);

// Whether a job is one call of mpirun and nothing else, and what that asks for.
//
// Pure.

struct SoleMpirun {
  std::optional<int> ranks;   ///< -np; nothing: it does not say, or says it more than once
  bool places_ranks = false;  ///< hosts, a hostfile of its own, a mapping: where ranks go is meant
};

/// Nothing: the job's command is a script, an image's own program, or not to be understood for
/// sure. Such a job may run several programs, here and there.
std::optional<SoleMpirun> sole_mpirun(const job::JobSpec& spec);

}  // namespace muster::control
