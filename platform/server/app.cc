#include "server/app.h"

#include <unistd.h>

#include "api/wire.h"
#include "base/log.h"
#include "server/answers.h"
#include "server/routes.h"

namespace muster::server {

using http::Request;
using http::Respond;

App::App(base::EventLoop& loop, control::Controller& controller, AppOptions options,
         std::function<void()> leave)
    : loop_(loop), controller_(controller), options_(std::move(options)), leave_(std::move(leave)) {
  add_routes();
  touch();
}

http::Handler App::handler() {
  return [this](const Request& request, Respond respond) {
    touch();
    router_.handle(request, std::move(respond));
  };
}

void App::add_routes() {
  router_.add("GET", "/v1/info", [this](const Request&, const PathValues&, const Respond& respond) {
    respond(json_answer(200, api::info_to_json({.version = options_.version,
                                                .pid = ::getpid(),
                                                .state_folder = options_.state_folder})));
  });
  add_job_routes(router_, controller_);
  add_project_routes(router_, controller_);
  add_node_routes(router_, controller_);
  router_.add("POST", "/v1/shutdown",
              [this](const Request&, const PathValues&, const Respond& respond) {
                respond({.status = 202});
                leaving_ = true;
                leave_();
              });
}

void App::touch() {
  if (!options_.idle_exit) return;
  idle_timer_ = loop_.after(*options_.idle_exit, [this] { look_whether_idle(); });
}

void App::look_whether_idle() {
  if (!controller_.idle()) return touch();
  if (std::exchange(leaving_, true)) return;
  base::log_info("nothing runs and nobody asks: the server leaves");
  leave_();
}

}  // namespace muster::server
