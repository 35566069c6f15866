// The flags on resources, containers, workers and the master.
//
// --gpu, --cpu, --memory and related flags become job::Resources. A limit without a request is also the
// request, as in Kubernetes. Tasks are limited to what they request (docs/isolation.md), so a note
// explains what a limit besides a request means. Limits are stored as annotations of the job.
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
  job::Resources resources;                   ///< of the task or of each worker
  std::map<std::string, std::string> limits;  ///< annotations: runai/cpu-limit, runai/memory-limit
};

/// Reports faults to `reader`. `notes`: differences from Run:AI.
Claims read_claims(cli::FlagReader& reader, std::vector<std::string>& notes);

/// Reads the GPUs of `flag`, such as "--master-gpu": a whole number or a fraction of one.
void read_gpus(const std::string& flag, cli::FlagReader& reader, job::Resources& resources);

/// Reads --image-pull-policy and its deprecated names, --large-shm, --run-as-user, --add-capability,
/// --allow-privilege-escalation. The image is writable, as in Kubernetes.
void read_container(cli::FlagReader& reader, const cli::Caller& caller, job::JobSpec& spec);

/// The flag with the number of workers: --processes, --num-processes or --workers.
std::string workers_flag(const cli::FlagReader& reader, const std::vector<std::string>& path);

void read_workers(cli::FlagReader& reader, const std::vector<std::string>& path,
                  job::JobSpec& spec);

/// Reads the flags of the master (launcher, chief). REQUIRES: command, arguments and resources of `spec`
/// were read.
void read_master(cli::FlagReader& reader, job::JobSpec& spec);

/// How long an ended job is kept: --ttl-after-finish, or its name in Run:AI's second command line.
/// Nothing: the server's default.
std::optional<std::chrono::milliseconds> keep_for_of(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
