// GET /v1/jobs/{name}/copy: a tar of a file or a folder of a task, or one that is unpacked into it,
// over a WebSocket.
#include <memory>
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

void copy(control::Controller& controller, ProgramBridges& bridges, const Call& call,
          http::Respond respond) {
  bridges.answer(
      controller, call,
      [&](const job::Job& job,
          engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
        MUSTER_TRY(const api::CopyRequest asked,
                   api::copy_request_from_parameters(call.request.query));
        const auto helper = asked.into ? engine::Helper::kUnpack : engine::Helper::kPack;
        return controller.exec(job.id, asked.task, {.helper = helper, .argv = {asked.path}},
                               std::move(handlers), call.actor());
      },
      std::move(respond));
}

}  // namespace

void add_copy_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/copy", Permission::kSignedIn,
             [&controller, bridges = std::make_shared<ProgramBridges>()](const Call& call,
                                                                         http::Respond respond) {
               copy(controller, *bridges, call, std::move(respond));
             });
}

}  // namespace muster::server
