// What is run in a task for an ExecPlan: a program of the task, or one of Muster's own.
//
// Pure.
#pragma once

#include <filesystem>

#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// `task`: what the task itself was started with. `shim`: muster-shim, beside which muster-helper
/// stands; a sandbox shows it where the machine has it.
///
/// A helper has nothing of the task's environment: LD_LIBRARY_PATH and the like, set for the
/// program of the job, would have it load what it was not built with.
InnerPlan exec_program(const ExecPlan& plan, const InnerPlan& task,
                       const std::filesystem::path& shim);

}  // namespace muster::engine
