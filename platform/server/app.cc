#include "server/app.h"

#include <unistd.h>

#include <utility>

#include "api/wire.h"
#include "base/log.h"
#include "server/answers.h"
#include "server/request_id.h"
#include "server/routes.h"

namespace muster::server {

using base::ErrorCode;
using http::Respond;
using http::Response;

namespace {

Authenticator::Options limits_of(const AppOptions& options) {
  return {.request_rate = options.request_rate,
          .request_burst = options.request_burst,
          .failed_logins = options.failed_logins};
}

bool is_json_or_unsaid(const http::Request& request) {
  const auto type = request.headers.find("content-type");
  if (type == request.headers.end()) return true;
  const std::string& value = type->second;
  std::string media = value.substr(0, value.find(';'));
  while (!media.empty() && media.back() == ' ') media.pop_back();
  return media == "application/json";
}

Response wrong_type() {
  constexpr int kUnsupportedMediaType = 415;
  return problem({.code = base::ErrorCode::kInvalid,
                  .what = "the body of a request is JSON",
                  .advice = "send 'content-type: application/json', or none"},
                 kUnsupportedMediaType);
}

Answer may_shut_down(const Call& call) {
  if (call.request.peer.user) return Response{.status = 202};
  return base::Error{.code = ErrorCode::kRefused,
                     .what = "a server is ended from its own machine only",
                     .advice = "there: muster server --stop"};
}

}  // namespace

App::App(Parts parts, AppOptions options, std::function<void()> leave)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      leave_(std::move(leave)),
      authenticator_({parts_.accounts, parts_.clock, parts_.owner}, limits_of(options_)) {
  add_routes();
  touch();
}

http::Handler App::handler() {
  return [this](http::Request request, Respond respond) {
    touch();
    take(std::move(request), std::move(respond));
  };
}

void App::set_options(const AppOptions& options) {
  options_.request_rate = options.request_rate;
  options_.request_burst = options.request_burst;
  options_.failed_logins = options.failed_logins;
  options_.log_requests = options.log_requests;
  options_.session_lifetime = options.session_lifetime;
  authenticator_.set_options(limits_of(options_));
}

void App::take(http::Request request, Respond respond) {
  Call call{.request = std::move(request)};
  call.id = request_id(call.request, parts_.random);
  const auto found = router_.find(call.request.method, call.request.path);
  auto who = authenticator_.identify(
      call.request, found.handler == nullptr && found.permission != Permission::kAnybody
                        ? Permission::kSignedIn
                        : found.permission);
  if (who) call.who = *who;
  if (!call.who.token.empty()) {
    call.still_valid = [this, who = call.who] { return authenticator_.still_is(who); };
  }
  respond = answering(call, found.route, std::move(respond));
  if (!who) return respond(who.error());
  if (!is_json_or_unsaid(call.request)) return respond(wrong_type());
  router_.handle(std::move(call), std::move(respond));
}

/// `respond`, with the request's id in the answer, a line in the log, and its place in the counts.
Respond App::answering(const Call& call, std::string route, Respond respond) {
  const bool logged = options_.log_requests || !call.request.peer.user;
  return [this, logged, respond = std::move(respond), route = std::move(route), id = call.id,
          method = call.request.method, path = call.request.path, user = call.who.user,
          address = call.request.peer.address, since = parts_.clock.now()](Response response) {
    response.headers["x-request-id"] = id;
    const int status = response.websocket ? 101 : response.status;
    requests_.add(method, route, status);
    if (logged) {
      const std::chrono::duration<double, std::milli> took = parts_.clock.now() - since;
      base::log_info("request", {{"method", method},
                                 {"path", path},
                                 {"status", status},
                                 {"ms", took.count()},
                                 {"user", user},
                                 {"request", id},
                                 {"address", address}});
    }
    respond(std::move(response));
  };
}

void App::add_routes() {
  router_.add("GET", "/v1/info", Permission::kSignedIn, at_once([this](const Call& call) -> Answer {
                api::ServerInfo info{.version = options_.version};
                if (call.who.over_server() >= access::Role::kAdmin) {
                  info.pid = ::getpid();
                  info.state_folder = options_.state_folder;
                }
                return json_answer(200, api::info_to_json(info));
              }));
  add_job_routes(router_, parts_.controller);
  add_job_list_route(router_, parts_.controller);
  add_log_routes(router_, parts_.loop, parts_.controller);
  add_exec_route(router_, parts_.controller);
  add_watch_routes(router_, parts_.loop, parts_.controller);
  add_project_routes(router_, parts_.controller);
  add_member_routes(router_, parts_.accounts, parts_.controller);
  add_node_routes(router_, parts_.controller);
  add_account_routes(router_, parts_.accounts, parts_.controller, parts_.clock,
                     options_.session_lifetime);
  add_audit_routes(router_, parts_.accounts, parts_.controller);
  add_status_routes(router_, parts_.controller, requests_, options_.version);
  router_.add("POST", "/v1/shutdown", Permission::kServerAdmin,
              at_once([this](const Call& call) -> Answer {
                MUSTER_TRY(Response accepted, may_shut_down(call));
                leaving_ = true;
                parts_.loop.post(leave_);
                return accepted;
              }));
}

void App::touch() {
  if (!options_.idle_exit) return;
  idle_timer_ = parts_.loop.after(*options_.idle_exit, [this] { look_whether_idle(); });
}

void App::look_whether_idle() {
  if (!parts_.controller.idle()) return touch();
  if (std::exchange(leaving_, true)) return;
  base::log_info("nothing runs and nobody asks: the server leaves");
  leave_();
}

}  // namespace muster::server
