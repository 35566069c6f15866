// The near end of what a task's shim tells and hears of those who sit before its program
// (shim/attach_wire.h).
//
// On the EventLoop's thread. REQUIRES: this process ignores SIGPIPE, as servers do.
#pragma once

#include <memory>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// kConflict: the task does not run, or was started by a release whose shims know nothing of this.
Result<std::unique_ptr<Exec>> attach_to(base::EventLoop& loop, const TaskFolder& folder,
                                        const std::string& task, ExecHandlers handlers);

}  // namespace muster::engine
