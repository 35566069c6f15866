// The handlers of each path of api/routes.h: they turn requests into calls of the controller, and
// its results into answers.
//
// On the EventLoop's thread. The arguments of each function must outlive the router.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "job/machine_type.h"
#include "notify/notifications.h"
#include "server/page.h"
#include "server/router.h"
#include "server/status_routes.h"
#include "workspace/tree_store.h"

namespace muster::server {

class Authenticator;

/// POST /v1/jobs, /v1/job-file, one job, /v1/queue.                   job_routes.cc
void add_job_routes(Router& router, control::Controller& controller);
/// GET /v1/jobs, /v1/list.                                            list_routes.cc
void add_job_list_route(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/metrics.                                           job_routes.cc
void add_job_metric_routes(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/logs.                                              log_routes.cc
void add_log_routes(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/jobs/{name}/log-window, log-search and log-file.               log_window_routes.cc
void add_log_window_routes(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/log-search.                                                    logs_search_routes.cc
void add_logs_search_route(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/jobs/{name}/attach.                                            program_routes.cc
void add_attach_route(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/exec.                                              program_routes.cc
void add_exec_route(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/copy.                                              program_routes.cc
void add_copy_route(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/forward.                                           program_routes.cc
void add_forward_route(Router& router, control::Controller& controller);
/// /v1/jobs/{name}/artifacts and artifact.                            artifact_routes.cc
void add_artifact_routes(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/arrays and below.                                              array_routes.cc
void add_array_routes(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/watch/jobs, /v1/watch/events.                                  watch_routes.cc
void add_watch_routes(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/sweeps and below.                                              sweep_routes.cc
void add_sweep_routes(Router& router, control::Controller& controller);
/// /v1/projects and below, without members and secrets.               cluster_routes.cc
void add_project_routes(Router& router, control::Controller& controller);
/// /v1/machine-types. Each request reads `types` anew.
void add_machine_route(Router& router, const job::MachineTypes& types);  ///< cluster_routes.cc
/// /v1/nodes and below.                                               cluster_routes.cc
void add_node_routes(Router& router, control::Controller& controller);
/// /v1/what-if.                                                       cluster_routes.cc
void add_what_if_route(Router& router, base::EventLoop& loop, control::Controller& controller);
/// /v1/login, logout, whoami, /v1/users and /v1/tokens and below.     account_routes.cc
/// `session_lifetime` is the longest lifetime of a login. Each login reads it anew.
void add_account_routes(Router& router, control::Accounts& accounts,
                        control::Controller& controller, const base::Clock& clock,
                        const std::chrono::seconds& session_lifetime);
/// The answer of /v1/whoami.                                          account_routes.cc
http::Response whoami(const control::Accounts& accounts, const control::Controller& controller,
                      const access::Identity& who);
/// /v1/projects/{name}/members and secrets.                           account_routes.cc
void add_member_routes(Router& router, control::Accounts& accounts,
                       control::Controller& controller);
/// /v1/projects/{name}/notifications and dead-letters.                notification_routes.cc
void add_notification_routes(Router& router, notify::Notifications& notifications,
                             control::Controller& controller);
/// /v1/schedules and below.                                           schedule_routes.cc
void add_schedule_routes(Router& router, control::Controller& controller);
/// /v1/projects/{name}/chunks and trees.                              tree_routes.cc
/// `trees` is used on the background's thread.
void add_tree_routes(Router& router, control::Controller& controller, workspace::TreeStore& trees,
                     const base::Clock& clock, base::Background& background);
/// /v1/audit.                                                         account_routes.cc
void add_audit_routes(Router& router, control::Accounts& accounts, control::Controller& controller);
/// /v1/ui/codes, session and port.                                   page_routes.cc
struct PageRouteParts {
  PageCodes& codes;
  Authenticator& authenticator;
  control::Accounts& accounts;
  const control::Controller& controller;
  const base::Clock& clock;
  base::RandomSource& random;
  LoopbackDoor* door = nullptr;
  const std::string& address;  ///< HOST:PORT of a server on TLS; empty: the server has no TLS port
  const std::chrono::seconds& session_lifetime;
};
void add_page_routes(Router& router, const PageRouteParts& parts);
/// /healthz, /readyz, /metrics, /openapi.json.                        status_routes.cc
/// /metrics reports `requests`.
void add_status_routes(Router& router, control::Controller& controller,
                       const RequestCounts& requests, std::string version);

}  // namespace muster::server
