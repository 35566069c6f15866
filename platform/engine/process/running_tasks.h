// Which tasks of a job still run on this machine. Needed for a job whose record in the store cannot
// be read: the folders that its supervisors (muster-shim) keep still tell what the job uses.
//
// I/O; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace muster::engine {

/// The tasks of all attempts of the job whose supervisor is alive, with the GPUs of `node` that
/// each was given. `job_id` may be damaged: one that is not a job's id has no tasks.
std::vector<RunningTask> running_tasks_in(const std::filesystem::path& jobs_folder,
                                          const std::string& job_id, const Node& node);

}  // namespace muster::engine
