// What /metrics says: the cluster's jobs, queues and GPUs as they are, what the control loop and
// the server have counted, and what the process costs.
//
// On the EventLoop's thread.
#pragma once

#include <string>

#include "control/controller.h"
#include "server/process_figures.h"
#include "server/request_counts.h"

namespace muster::server {

std::string server_metrics(const control::Controller& controller, const RequestCounts& requests,
                           const ProcessFigures& process, const std::string& version);

}  // namespace muster::server
