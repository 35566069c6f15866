// What is said to Slurm of a job: its flags, the keys of a job file, and how it is shown.
//
// Pure.
#pragma once

#include <string>

#include "cli/flag_reader.h"
#include "cli/yaml_fields.h"
#include "job/spec.h"

namespace muster::cli {

/// --slurm-partition, --slurm-account, --slurm-qos, --slurm-reservation, --slurm-constraint.
job::SlurmSpec read_slurm_flags(FlagReader& reader);

/// `slurm`, a map with the same names.
YamlFields::Keys slurm_keys(YamlFields& fields, job::SlurmSpec& slurm);

/// "partition gpu, account vision". Empty where nothing is said.
std::string slurm_words(const job::SlurmSpec& slurm);

}  // namespace muster::cli
