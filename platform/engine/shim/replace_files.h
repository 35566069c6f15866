// Puts files into the generated folder of a task that runs. Whoever reads has the old file or the
// new one, never half of it and never none.
//
// The folder is the task's to write, so anything may stand anywhere in it. What stands in the place
// of a file, or of a folder above one, is replaced and never followed: a link leads nowhere.
//
// Blocking; thread-safe (no state).
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// Each comes in the place of the one of its path, with its mode. Errors name the file: of several,
/// those before it have been replaced. kConflict: the task has put a folder in its place.
base::Result<void> replace_files(const std::filesystem::path& generated,
                                 const std::vector<launch::PlannedFile>& files);

}  // namespace muster::engine
