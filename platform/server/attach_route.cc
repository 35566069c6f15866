// GET /v1/jobs/{name}/attach: the program of a task, over a WebSocket.
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

Answer attach(control::Controller& controller, const Call& call) {
  return bridged(controller, call,
                 [&](const job::Job& job,
                     engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
                   MUSTER_TRY(const api::AttachRequest asked,
                              api::attach_request_from_parameters(call.request.query));
                   return controller.attach(job.id, asked.task, std::move(handlers), call.actor());
                 });
}

}  // namespace

void add_attach_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/attach", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return attach(controller, call); }));
}

}  // namespace muster::server
