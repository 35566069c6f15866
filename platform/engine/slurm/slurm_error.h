// What Slurm's programs and slurmrestd say went wrong: as an error with its code, which value it is
// about, and what changes it. They have no codes that hold from version to version, only sentences,
// which have been the same for many.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// What was said, without the names of programs and what they put before it: "sbatch: error: Batch
/// job submission failed: Invalid qos specification" is "Invalid qos specification". Lines that are
/// no more than warnings are left out, where others are there.
std::string sentence_of(std::string_view said);

/// Of a job that was not taken. kUnavailable: the controller was not reached. kTimeout: it may have
/// been taken all the same. kExhausted: there are too many jobs right now. kRefused: anything else
/// that Slurm answers.
base::Error refusal_of(std::string_view said, const Submission& submission);

/// Of anything else that was asked; `what`: "Slurm's queue cannot be read". kRefused: Slurm says
/// no; kUnavailable: everything else, as it was not changed.
base::Error failure_of(std::string_view what, std::string_view said);

}  // namespace muster::engine::slurm
