// The part of validate() that is about what is said to Slurm: names that may stand in a line of
// #SBATCH, in an argument and in a table as they are.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

void check_slurm(const SlurmSpec& slurm, Checker& check);

/// Whether it may be the name of a partition, an account, a QOS or a reservation: letters, digits
/// and "_-.+:@", none of "-." first.
bool is_slurm_name(std::string_view text);

}  // namespace muster::job
