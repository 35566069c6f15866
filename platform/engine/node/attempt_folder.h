// The folders of attempts on a node.
//
// A node may share the server's folder of jobs. If it does not, an attempt's folder is the node's
// own: it is made before the first task of the attempt starts there, and removed with the last.
// Each task has its own muster-node, and the next attempt of the job may already have some on the
// node. A muster-node that was killed leaves its folder behind; the next one on the node removes
// it. It removes only folders of jobs that a muster-node has made: each of them has a mark.
//
// I/O; may wait a moment for other muster-nodes that use the same folder, and as long as the file
// system takes.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/engine.h"
#include "engine/node/brief.h"

namespace muster::engine::node {

/// A file in each folder of a job that a muster-node has made.
inline constexpr const char* kJobMark = ".muster-job";

/// Whether this node shares the server's folder: it holds the server's mark, and files can be made
/// in it. With Sharing::kYes, a folder that is not shared is an error.
base::Result<bool> shares_folder(const NodeBrief& brief);

/// Makes JOBS/JOB/ATTEMPT. Hold on to the result for as long as anything in the folder is used: it
/// is a lock that other muster-nodes respect. Errors of the file system; kRefused: JOBS belongs to
/// another user.
base::Result<base::UniqueFd> make_attempt_folder(const std::filesystem::path& jobs,
                                                 const GangId& gang);

/// Removes the folders of attempts that no process holds: of muster-nodes that were killed, or
/// whose server never came back to fetch them. Folders without the mark, and links, stay.
void remove_forsaken_attempts(const std::filesystem::path& jobs);

/// Removes the task's folder, and every folder above it that no process needs any more. Logs what
/// cannot be removed. `keeps_artifacts`: the job's folder with its artifacts belongs to the user
/// from now on, and no muster-node removes it.
void remove_task_folder(const std::filesystem::path& jobs, const GangId& gang,
                        const std::string& task, bool keeps_artifacts = false);

}  // namespace muster::engine::node
