// One connection that somebody here has made to a forwarded port, carried to the task and back.
//
// Blocking; I/O; each on a thread of its own.
#pragma once

#include <functional>
#include <string>

#include "api/client.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::cli {

/// Until both sides have said all, or one is gone, or `stop` can be read. Either may close its half
/// and hear on.
///
/// Errors: that the port of the task is not reached.
base::Result<void> carry(api::Client& client, const std::string& job,
                         const api::ForwardRequest& request, const base::UniqueFd& local, int stop);

}  // namespace muster::cli
