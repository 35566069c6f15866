// GET /v1/jobs/{name}/attach: the program of a task, over a WebSocket.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/terminal.h"
#include "server/program_bridge.h"
#include "server/routes.h"

namespace muster::server {

namespace {

void attach(control::Controller& controller, ProgramBridges& bridges, const ApiCall& call,
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
             [&controller, bridges = std::make_shared<ProgramBridges>()](const ApiCall& call,
                                                                         http::Respond respond) {
               attach(controller, *bridges, call, std::move(respond));
             });
}

// GET /v1/jobs/{name}/copy: sends a file or a folder of a task as a tar, or unpacks a tar into a
// task, over a WebSocket.

namespace {

void copy(control::Controller& controller, ProgramBridges& bridges, const ApiCall& call,
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
             [&controller, bridges = std::make_shared<ProgramBridges>()](const ApiCall& call,
                                                                         http::Respond respond) {
               copy(controller, *bridges, call, std::move(respond));
             });
}

// GET /v1/jobs/{name}/exec: a program in a task, over a WebSocket.

namespace {

void exec(control::Controller& controller, ProgramBridges& bridges, const ApiCall& call,
          http::Respond respond) {
  bridges.answer(
      controller, call,
      [&](const job::Job& job,
          engine::ExecHandlers handlers) -> base::Result<std::unique_ptr<engine::Exec>> {
        MUSTER_TRY(const api::ExecRequest asked,
                   api::exec_request_from_parameters(call.request.query));
        std::map<std::string, std::string> environment;
        // The type of most terminals today.
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
             [&controller, bridges = std::make_shared<ProgramBridges>()](const ApiCall& call,
                                                                         http::Respond respond) {
               exec(controller, *bridges, call, std::move(respond));
             });
}

// GET /v1/jobs/{name}/forward: a connection to a port of a task, over a WebSocket.

namespace {

void forward(control::Controller& controller, ProgramBridges& bridges, const ApiCall& call,
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
             [&controller, bridges = std::make_shared<ProgramBridges>()](const ApiCall& call,
                                                                         http::Respond respond) {
               forward(controller, *bridges, call, std::move(respond));
             });
}

}  // namespace muster::server
