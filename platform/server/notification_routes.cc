// Subscriptions to the events of a project's jobs, and failed deliveries.
//
// The path of a receiver's URL is often its only protection, so only callers who may change the
// subscriptions of a project can read it.
#include <string>
#include <utility>

#include "api/notification_wire.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Result;
using control::Controller;
using http::Respond;
using notify::DeliveryOutcome;
using notify::IssuedSubscription;
using notify::Notifications;

http::Response keyed_answer(int status, const IssuedSubscription& keyed) {
  return json_answer(status, api::keyed_subscription_to_json(
                                 {.subscription = keyed.subscription, .key = keyed.key}));
}

/// 429 if too many requests of the project to receivers wait.
http::Response refused(const base::Error& error) {
  if (base::detail_of<notify::TooManyProbes>(error) == nullptr) return problem(error);
  constexpr int kTooManyWait = 429;
  http::Response refusal = problem(error, kTooManyWait);
  refusal.headers["retry-after"] = "10";
  return refusal;
}

RouteAnswer list_subscriptions(Notifications& notifications, const Controller& controller,
                               const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kViewer));
  std::vector<job::Subscription> subscriptions = notifications.subscriptions(project);
  if (Sight(controller, call.who).role_in(project) < Role::kAdmin) {
    for (job::Subscription& each : subscriptions) each.url = job::origin_of(each.url);
  }
  return json_answer(200, api::subscriptions_to_json(subscriptions));
}

void add_subscription(Notifications& notifications, const Controller& controller,
                      const ApiCall& call, const Respond& respond) {
  auto project = project_in_path(controller, call, Role::kAdmin);
  if (!project) return respond(problem(project.error()));
  auto request = api::subscription_request_from_json(call.request.body);
  if (!request) return respond(problem(request.error()));
  notifications.add({.project = *std::move(project),
                     .url = std::move(request->url),
                     .on = std::move(request->on),
                     .job = std::move(request->job),
                     .labels = std::move(request->labels),
                     .with_lines = request->with_lines,
                     .members = request->members},
                    call.actor(), [respond](const Result<IssuedSubscription>& added) {
                      respond(added ? keyed_answer(201, *added) : refused(added.error()));
                    });
}

RouteAnswer remove_subscription(Notifications& notifications, const Controller& controller,
                                const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_CHECK(notifications.remove(project, call.path.at("id"), call.actor()));
  return nothing_more();
}

RouteAnswer rotate(Notifications& notifications, const Controller& controller,
                   const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const IssuedSubscription keyed,
             notifications.rotate(project, call.path.at("id"), call.actor()));
  return keyed_answer(200, keyed);
}

void test(Notifications& notifications, const Controller& controller, const ApiCall& call,
          const Respond& respond) {
  const auto project = project_in_path(controller, call, Role::kAdmin);
  if (!project) return respond(problem(project.error()));
  notifications.test(
      *project, call.path.at("id"), call.actor(),
      [respond](const Result<DeliveryOutcome>& outcome) {
        if (!outcome) return respond(refused(outcome.error()));
        const bool arrived = !outcome->fault && outcome->status / 100 == 2;
        respond(json_answer(
            200, api::ping_result_to_json({.arrived = arrived,
                                           .status = outcome->status,
                                           .fault = arrived ? "" : notify::fault_of(*outcome),
                                           .advice = outcome->fault ? outcome->fault->advice : "",
                                           .took = outcome->took})));
      });
}

RouteAnswer list_dead(Notifications& notifications, const Controller& controller,
                      const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kViewer));
  return json_answer(200, api::dead_letters_to_json(notifications.dead(project)));
}

RouteAnswer retry(Notifications& notifications, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const std::vector<std::string> ids, api::retry_ids_from_json(call.request.body));
  MUSTER_TRY(const int count, notifications.retry(project, ids, call.actor()));
  return json_answer(200, api::retried_to_json(count));
}

}  // namespace

void add_notification_routes(Router& router, Notifications& notifications, Controller& controller) {
  const auto add_one = [&](const char* method, const char* path, auto answer) {
    router.add(method, path, Permission::kSignedIn,
               at_once([&notifications, &controller, answer](const ApiCall& call) {
                 return answer(notifications, controller, call);
               }));
  };
  const auto add_slow = [&](const char* method, const char* path, auto handle) {
    router.add(method, path, Permission::kSignedIn,
               [&notifications, &controller, handle](const ApiCall& call, const Respond& respond) {
                 handle(notifications, controller, call, respond);
               });
  };
  add_one("GET", "/v1/projects/{name}/notifications", list_subscriptions);
  add_slow("POST", "/v1/projects/{name}/notifications", add_subscription);
  add_one("DELETE", "/v1/projects/{name}/notifications/{id}", remove_subscription);
  add_one("POST", "/v1/projects/{name}/notifications/{id}/rotate", rotate);
  add_slow("POST", "/v1/projects/{name}/notifications/{id}/test", test);
  add_one("GET", "/v1/projects/{name}/dead-letters", list_dead);
  add_one("POST", "/v1/projects/{name}/dead-letters/retry", retry);
}

}  // namespace muster::server
