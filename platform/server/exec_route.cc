// GET /v1/jobs/{name}/exec: a program in a task, over a WebSocket.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

void exec(control::Controller& controller, ProgramBridges& bridges, const Call& call,
          http::Respond respond) {
  bridges.answer(
      controller, call,
      [&](const job::Job& job,
          engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
        MUSTER_TRY(const api::ExecRequest asked,
                   api::exec_request_from_parameters(call.request.query));
        std::map<std::string, std::string> environment;
        // What today's terminals understand.
        if (asked.terminal) environment["TERM"] = "xterm-256color";
        return controller.exec(job.id, asked.task,
                               {.argv = asked.command,
                                .environment = std::move(environment),
                                .terminal = asked.terminal,
                                .rows = asked.rows,
                                .columns = asked.columns},
                               std::move(handlers), call.actor());
      },
      std::move(respond));
}

}  // namespace

void add_exec_route(Router& router, control::Controller& controller) {
  router.add("GET", "/v1/jobs/{name}/exec", Permission::kSignedIn,
             [&controller, bridges = std::make_shared<ProgramBridges>()](const Call& call,
                                                                         http::Respond respond) {
               exec(controller, *bridges, call, std::move(respond));
             });
}

}  // namespace muster::server
