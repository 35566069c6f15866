// GET /v1/jobs/{name}/copy: a tar of a file or a folder of a task, or one that is unpacked into it,
// over a WebSocket.
#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

Answer copy(control::Controller& controller, const Call& call) {
  return bridged(controller, call,
                 [&](const job::Job& job,
                     engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
                   MUSTER_TRY(const api::CopyRequest asked,
                              api::copy_request_from_parameters(call.request.query));
                   const auto helper = asked.into ? engine::Helper::kUnpack : engine::Helper::kPack;
                   return controller.exec(job.id, asked.task,
                                          {.helper = helper, .argv = {asked.path}},
                                          std::move(handlers), call.actor());
                 });
}

}  // namespace

void add_copy_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/copy", Permission::kSignedIn,
             at_once([&controller](const Call& call) { return copy(controller, call); }));
}

}  // namespace muster::server
