// --gpu, --cpu, --memory and their kin as job::Resources.
//
// What a task claims is what it asks for; where it names a limit alone, that is what it asks for,
// as Kubernetes has it. A limit is kept as an annotation of the job: nothing holds a task to it,
// which is said.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "job/spec.h"

namespace muster::dialects::runai {

struct Claims {
  job::Resources resources;                   ///< of the task, or of each worker
  std::map<std::string, std::string> limits;  ///< annotations: runai/cpu-limit, runai/memory-limit
};

/// Faults go into `reader`, `notes`: what is not as it would be with Run:AI.
Claims read_claims(cli::FlagReader& reader, std::vector<std::string>& notes);

/// `flag` ("--master-gpu") into the GPUs of `resources`: whole ones, or a part of one.
void read_gpus(const std::string& flag, cli::FlagReader& reader, job::Resources& resources);

}  // namespace muster::dialects::runai
