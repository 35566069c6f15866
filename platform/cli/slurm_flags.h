// How it is shown what was said to Slurm of a job.
//
// Pure.
#pragma once

#include <string>

#include "job/job.h"

namespace muster::cli {

/// "job 17, partition gpu, account vision": its last job there, as its events tell, and what was
/// said of it. Empty where there is nothing of either.
std::string slurm_words(const job::Job& job);

}  // namespace muster::cli
