// What lies on a node of an attempt whose folder is the node's own: made before its first task
// there is started, and removed with its last. Each task has a muster-node of its own, and so may
// the next attempt of the same job by then. One that is killed leaves its folder to the next on
// that node.
//
// I/O; waits for others that make or remove the same one, for a moment.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/engine.h"

namespace muster::engine::slurm {

/// JOBS/JOB/ATTEMPT. What is returned is held on to for as long as anything in it is used: by that
/// others know that it is. Errors of the file system.
base::Result<base::UniqueFd> make_attempt_folder(const std::filesystem::path& jobs,
                                                 const Gang& gang);

/// Removes the folders of attempts that nobody holds on to: of muster-nodes that were killed, or
/// whose server did not come back for what was there.
void remove_forsaken_attempts(const std::filesystem::path& jobs);

/// Removes the task's folder, and whatever is then needed by nobody. What cannot be removed stays,
/// and is said in the log.
void remove_task_folder(const std::filesystem::path& jobs, const Gang& gang,
                        const std::string& task);

}  // namespace muster::engine::slurm
