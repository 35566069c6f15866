// GET /v1/jobs/{name}/attach: the program of a task, over a WebSocket.
#include <memory>
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

void attach(control::Controller& controller, ProgramBridges& bridges, const Call& call,
            http::Respond respond) {
  bridges.answer(
      controller, call,
      [&](const job::Job& job,
          engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
        MUSTER_TRY(const api::AttachRequest asked,
                   api::attach_request_from_parameters(call.request.query));
        return controller.attach(job.id, asked.task, std::move(handlers), call.actor());
      },
      std::move(respond));
}

}  // namespace

void add_attach_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/attach", Permission::kSignedIn,
             [&controller, bridges = std::make_shared<ProgramBridges>()](const Call& call,
                                                                         http::Respond respond) {
               attach(controller, *bridges, call, std::move(respond));
             });
}

}  // namespace muster::server
