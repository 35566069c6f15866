// How the files of a task that runs are changed: what is asked for, and who does it. Where the
// task's folder is on this machine its engine does it; else `muster-shim --change FOLDER`, started
// in the task, with the files on its standard input: an engine's own way to put files into a
// container leaves moments in which they are not there, or half there.
//
// I/O; blocking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// For the standard input of --change.
std::string encode(const std::vector<launch::PlannedFile>& files);
base::Result<std::vector<launch::PlannedFile>> decode_files(std::string_view text);

/// Replaces files of a task that runs (replace_files.h), each by what the MPI of the task reads
/// there. kNotFound: the task does not run, or not any more.
base::Result<void> change_files(const TaskFolder& folder, std::vector<launch::PlannedFile> files);

/// An exit code; why not it says on the standard error (refusal_text() of plan.h).
int run_change(const char* task_folder);

}  // namespace muster::engine
