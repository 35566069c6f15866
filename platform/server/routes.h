// What the server answers on each path of api/routes.h: requests turned into calls of the
// controller, and what it says into answers.
//
// On the EventLoop's thread; the controller must outlive the router.
#pragma once

#include "control/controller.h"
#include "server/router.h"

namespace muster::server {

/// /v1/jobs and below, /v1/queue.
void add_job_routes(Router& router, control::Controller& controller);
/// /v1/projects and below.
void add_project_routes(Router& router, control::Controller& controller);
/// /v1/nodes and below.
void add_node_routes(Router& router, control::Controller& controller);

}  // namespace muster::server
