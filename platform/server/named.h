// What a request names, looked up for its caller.
//
// On the EventLoop's thread.
#pragma once

#include <optional>
#include <string>

#include "access/role.h"
#include "base/result.h"
#include "control/controller.h"
#include "server/call.h"

namespace muster::server {

/// The project in the path, if the caller has `needed` there; errors as Sight::project().
base::Result<std::string> project_in_path(const control::Controller& controller, const Call& call,
                                          access::Role needed);

/// kNotFound where a task is named that the job does not have.
base::Result<void> check_task(const job::Job& job, const std::optional<std::string>& task);

}  // namespace muster::server
