// Changes files of a running task: the content of a hostfile, the keys of a gang that grows.
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

// --- one file after another
//
// Puts files into the generated folder of a task that runs. Whoever reads has the old file or the
// new one, never half of it and never none.
//
// The folder is the task's to write, so anything may stand anywhere in it. What stands in the place
// of a file, or of a folder above one, is replaced and never followed: a link leads nowhere.
//
// Blocking; thread-safe (no state).

/// Each comes in the place of the one of its path, with its mode. Errors name the file: of several,
/// those before it have been replaced. kConflict: the task has put a folder in its place.
base::Result<void> replace_files(const std::filesystem::path& generated,
                                 const std::vector<launch::PlannedFile>& files);

// --- all files of one change
//
// How the files of a task that runs are changed: what is asked for, and who does it. Where the
// task's folder is on this machine its engine does it; else `muster-shim --change FOLDER`, started
// in the task, with the files on its standard input: an engine's own way to put files into a
// container leaves moments in which they are not there, or half there.
//
// I/O; blocking.

/// For the standard input of --change.
std::string encode(const std::vector<launch::PlannedFile>& files);
base::Result<std::vector<launch::PlannedFile>> decode_files(std::string_view text);

/// Replaces files of a task that runs , each by what the MPI of the task reads
/// there. kNotFound: the task does not run, or not any more.
base::Result<void> change_files(const TaskFolder& folder, std::vector<launch::PlannedFile> files);

}  // namespace muster::engine
