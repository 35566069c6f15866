// What is said to Slurm of a job: its flags, the keys of a job file, and how it is shown.
//
// Pure.
#pragma once

#include <string>

#include "cli/flag_reader.h"
#include "cli/yaml_fields.h"
#include "job/job.h"

namespace muster::cli {

/// --slurm-partition, --slurm-account, --slurm-qos, --slurm-reservation, --slurm-constraint.
job::SlurmSpec read_slurm_flags(FlagReader& reader);

/// `slurm`, a map with the same names.
YamlFields::Keys slurm_keys(YamlFields& fields, job::SlurmSpec& slurm);

/// "job 17, partition gpu, account vision": its last job there, as its events tell, and what was
/// said of it. Empty where there is nothing of either.
std::string slurm_words(const job::Job& job);

}  // namespace muster::cli
