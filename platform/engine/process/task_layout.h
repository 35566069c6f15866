// What lies in a task's folder before its shim is started: what is generated for it, its log, and
// the shim's plan (shim/plan.h).
//
// I/O.
#pragma once

#include "base/result.h"
#include "engine/folder/mounts.h"
#include "engine/process/options.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// Makes the folder. What was made stays where something cannot be: errors name it.
base::Result<void> lay_out_task(const launch::TaskPlan& plan, const TaskFolder& folder,
                                const VolumeFolders& volumes, const ProcessEngineOptions& options);

}  // namespace muster::engine
