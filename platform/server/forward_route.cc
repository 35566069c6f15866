// GET /v1/jobs/{name}/forward: a connection to a port of a task, over a WebSocket.
#include <string>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

Answer forward(control::Controller& controller, const Call& call) {
  return bridged(controller, call,
                 [&](const job::Job& job,
                     engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
                   MUSTER_TRY(const api::ForwardRequest asked,
                              api::forward_request_from_parameters(call.request.query));
                   return controller.exec(
                       job.id, asked.task,
                       {.helper = engine::Helper::kConnect, .argv = {std::to_string(asked.port)}},
                       std::move(handlers), call.actor());
                 });
}

}  // namespace

void add_forward_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/forward", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return forward(controller, call); }));
}

}  // namespace muster::server
