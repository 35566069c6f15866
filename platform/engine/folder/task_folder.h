// Reads the folder of a task (how the task ended, its log, its ranks), and the folders of its
// attempt and its job. The task's shim writes the folder, or it is a copy that Mirror keeps of such
// a folder (mirror.h). A task may have changed the folder: no link in it is followed, and no read
// blocks.
//
// I/O; thread-safe (no state).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// How the task ended, from the record of its shim; lost if there is no record.
TaskEnded end_left_in(const TaskFolder& folder);

/// Reads the task's log from the beginning. kNotFound: the task never started.
base::Result<std::unique_ptr<LogCursor>> open_log_in(const TaskFolder& folder,
                                                     const std::string& task);

/// The ranks that have registered with the task.
std::vector<RankPlace> ranks_in(const TaskFolder& folder, const std::string& task);
/// The ranks of several tasks, whose folders are in the attempt's.
std::vector<RankPlace> ranks_in(const std::filesystem::path& attempt,
                                const std::vector<std::string>& tasks);

/// The name and version that the task's mpirun has printed; empty: unknown.
std::string mpi_in(const TaskFolder& folder);

/// The folder of artifacts in a job's folder, if the job has artifacts.
std::optional<std::filesystem::path> artifacts_in(const std::filesystem::path& job);

}  // namespace muster::engine
