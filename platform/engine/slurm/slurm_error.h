// Errors from the messages of Slurm's programs and slurmrestd: the code, the value at fault, and
// advice. Slurm has no error codes that are stable across versions, but its sentences have stayed
// the same over many.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// The message without the names of programs and their prefixes: "sbatch: error: Batch job
/// submission failed: Invalid qos specification" is "Invalid qos specification". Warnings are
/// omitted if there are other lines.
std::string sentence_of(std::string_view output);

/// For a job that was not accepted. kUnavailable: the controller was not reached. kTimeout: the job
/// may have been accepted. kExhausted: there are too many jobs at the moment. kRefused: all else.
base::Error refusal_of(std::string_view output, const Submission& submission);

/// For any other request; `what`: "Slurm's queue cannot be read". kRefused: Slurm refused it;
/// kUnavailable: all else, since nothing was changed.
base::Error failure_of(std::string_view what, std::string_view output);

}  // namespace muster::engine::slurm
