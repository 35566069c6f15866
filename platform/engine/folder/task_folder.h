// What is read in a task's folder by whoever keeps one: how the task ended, its log, its ranks. The
// folder is a shim's (process engine), or a copy of one (container engine).
//
// I/O; thread-safe (no state).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// How the task ended, from the record its shim left; lost where it left none.
TaskEnded end_left_in(const TaskFolder& folder);

/// Reads its log from the beginning. kNotFound where the task never started.
base::Result<std::unique_ptr<LogCursor>> open_log_in(const TaskFolder& folder,
                                                     const std::string& task);

/// The ranks that signed in with the task, as it wrote them or as they were kept for it. Some of
/// what is read may be the task's own doing: nothing of it leads elsewhere, or holds the reader up.
std::vector<RankPlace> ranks_in(const TaskFolder& folder, const std::string& task);

/// What its mpirun said it is; empty: none was asked, or none knows it.
std::string mpi_in(const TaskFolder& folder);

}  // namespace muster::engine
