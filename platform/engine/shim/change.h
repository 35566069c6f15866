// Changes generated files of a running task, such as the hostfile of a gang that grows.
//
// If the task's folder is on the engine's machine, the engine calls change_files(). If not, the
// engine runs `muster-shim --change FOLDER` in the task, with the files on its standard input: the
// copy command of a container engine would leave moments without the file, or with half of it.
//
// I/O; blocking; thread-safe (no state).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// Replaces files in the generated folder of a task. A reader sees either the old file or the new
/// one. If a file fails, the error names it, and the files before it are replaced already.
/// kConflict: the task has made a folder of that name.
///
/// The task can write to the folder, so any entry may be a trap: a symbolic link in the place of a
/// file or folder is replaced and never followed.
base::Result<void> replace_files(const std::filesystem::path& generated,
                                 const std::vector<launch::PlannedFile>& files);

/// Replaces generated files of a running task, and the files that are copies of them for the task's
/// MPI (InnerPlan::taken_from). kNotFound: the task does not run.
base::Result<void> change_files(const TaskFolder& folder, std::vector<launch::PlannedFile> files);

/// The files as the standard input of --change.
std::string encode(const std::vector<launch::PlannedFile>& files);
base::Result<std::vector<launch::PlannedFile>> decode_files(std::string_view text);

}  // namespace muster::engine
