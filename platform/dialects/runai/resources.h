// --gpu, --cpu, --memory and their kin as job::Resources.
//
// What a task claims is what it asks for; where it names a limit alone, that is what it asks for,
// as Kubernetes has it. A limit is kept as an annotation of the job: nothing holds a task to it,
// which is said.
//
// Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/connection/contexts.h"
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

// What the flags of Run:AI say of the image and of the containers that run it.
//
// Pure.

/// --image-pull-policy and its deprecated names, --large-shm, --run-as-user, --add-capability,
/// --allow-privilege-escalation. An image can be written to, as Kubernetes has it.
void read_container(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec);

// How many workers a job has, and what its master (launcher, chief) has of its own.
//
// Pure.

/// The flag that says how many workers there are: --processes, --num-processes or --workers.
std::string workers_flag(const cli::FlagReader& reader, const std::vector<std::string>& path);

void read_workers(cli::FlagReader& reader, const std::vector<std::string>& path,
                  job::JobSpec& spec);

/// REQUIRES: the command, the arguments and the resources of `spec` have been read.
void read_master(cli::FlagReader& reader, job::JobSpec& spec);

// How long a job is kept after its end: --ttl-after-finish, and the name that it has in Run:AI's
// second command line.
//
// Pure.

/// Nothing: as the server has it.
std::optional<std::chrono::milliseconds> keep_for_of(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
