// GET /v1/jobs/{name}/forward: a connection to a port of a task, over a WebSocket.
#include <memory>
#include <string>
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

void forward(control::Controller& controller, ProgramBridges& bridges, const Call& call,
             http::Respond respond) {
  bridges.answer(
      controller, call,
      [&](const job::Job& job,
          engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
        MUSTER_TRY(const api::ForwardRequest asked,
                   api::forward_request_from_parameters(call.request.query));
        return controller.exec(
            job.id, asked.task,
            {.helper = engine::Helper::kConnect, .argv = {std::to_string(asked.port)}},
            std::move(handlers), call.actor());
      },
      std::move(respond));
}

}  // namespace

void add_forward_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/forward", Permission::kSignedIn,
             [&controller, bridges = std::make_shared<ProgramBridges>()](const Call& call,
                                                                         http::Respond respond) {
               forward(controller, *bridges, call, std::move(respond));
             });
}

}  // namespace muster::server
