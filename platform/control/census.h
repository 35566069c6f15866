// Compares the rank census of an MPI program with the job's request: the size of its world, and the
// tasks that its ranks run in.
//
// A misconfigured launcher runs every rank on its own host and exits with 0. A program that was
// built for another MPI than its launcher's runs once for each rank, with a world of one. Both look
// like success. But a job may run mpirun on one host on purpose, several times, or with fewer ranks
// than slots: only a census that no healthy job has is a fault.
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
  std::vector<std::string> evidence;  ///< "launcher: ranks 0 to 3", for every task that takes ranks
  /// False: it may be intended. The job gets a note, and runs on.
  bool is_certain = true;
};

/// The fault of a running job in which a rank waits for ever (engine/rank_files.h, kHangs).
std::optional<CensusFault> hanging_rank(const job::Job& job,
                                        const std::vector<engine::RankPlace>& census);

/// The result of a check while the job runs.
struct CensusVerdict {
  /// A later check cannot find more: the only world that there will be is complete.
  bool is_final = false;
  std::optional<CensusFault> fault;
};

/// The check once all ranks of a world have reported.
CensusVerdict judge_at_start(const job::Job& job, const std::vector<engine::RankPlace>& census);

/// The check of a job whose launcher succeeded. It is a fault if no rank ran in a worker: a program
/// of one process would pass for a distributed one.
std::optional<CensusFault> judge_at_end(const job::Job& job,
                                        const std::vector<engine::RankPlace>& census);

/// The options of a job whose command is a single call of mpirun.
struct SoleMpirun {
  std::optional<int> ranks;   ///< -np; nothing: not given, or given more than once
  bool places_ranks = false;  ///< hosts, a hostfile or a mapping are given
};

/// Nothing: the job's command is a script, the program of an image, or not certain to be
/// understood. Such a job may run several programs in several places.
std::optional<SoleMpirun> sole_mpirun(const job::JobSpec& spec);

}  // namespace muster::control
