// Projects and their quotas. A quota reduces what other projects may claim, so only an admin of the
// server changes quotas.

#include <chrono>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/cluster_wire.h"
#include "api/routes.h"
#include "api/usage.h"
#include "base/clock.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using control::Controller;
using control::NodeService;

RouteAnswer list_projects(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  std::vector<job::ProjectStatus> visible;
  for (job::ProjectStatus& status : controller.projects().list()) {
    if (sight.sees_project(status.project.name)) {
      visible.push_back(sight.redacted(std::move(status)));
    }
  }
  return json_answer(200, api::projects_to_json(visible));
}

RouteAnswer get_project(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  MUSTER_CHECK(sight.project(name, access::Role::kViewer));
  MUSTER_TRY(job::ProjectStatus status, controller.projects().status(name));
  return json_answer(200, api::project_to_json(sight.redacted(std::move(status))));
}

RouteAnswer create_project(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(job::Project project, api::read_project(call.request.body, {}));
  MUSTER_TRY(const job::ProjectStatus created,
             controller.projects().create(std::move(project), call.actor()));
  return json_answer(201, api::project_to_json(created));
}

/// Changes the fields in the body and keeps the others.
RouteAnswer change_project(Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const job::ProjectStatus now, controller.projects().status(call.path.at("name")));
  MUSTER_TRY(job::Project changed, api::read_project(call.request.body, now.project));
  MUSTER_TRY(const job::ProjectStatus status,
             controller.projects().set(std::move(changed), call.actor()));
  return json_answer(200, api::project_to_json(status));
}

RouteAnswer remove_project(Controller& controller, const ApiCall& call) {
  MUSTER_CHECK(controller.projects().remove(call.path.at("name"), call.actor()));
  return nothing_more();
}

/// The project and those below it that the caller sees.
std::unordered_set<std::string> with_subprojects(const Controller& controller, const Sight& sight,
                                                 const std::string& name) {
  std::unordered_set<std::string> names{name};
  for (const job::ProjectStatus& status : controller.projects().list()) {  // parents first
    const job::Project& project = status.project;
    if (names.contains(project.parent) && sight.sees_project(project.name)) {
      names.insert(project.name);
    }
  }
  return names;
}

constexpr std::chrono::hours kUsualUsageSpan{30 * 24};

RouteAnswer usage_of_project(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  const std::string& name = call.path.at("name");
  MUSTER_CHECK(sight.project(name, access::Role::kViewer));
  MUSTER_TRY(const api::UsageQuery query, api::usage_query_from_parameters(call.request.query));
  const base::Time until = query.until.value_or(base::SystemClock().now());
  api::UsageSum sum(query.since.value_or(until - kUsualUsageSpan), until);
  const std::unordered_set<std::string> counted = with_subprojects(controller, sight, name);
  controller.jobs().each_job(false, std::nullopt, [&](const job::JobFacts& job) {
    if (counted.contains(std::string(job.project)) && sight.sees(job)) sum.add(job);
    return true;
  });
  const api::ProjectUsage usage = sum.of(name);
  if (!query.as_csv) return json_answer(200, api::usage_to_json(usage));
  // Names of projects have no characters that a header quotes.
  http::Response answer{.content_type = "text/csv; charset=utf-8",
                        .body = api::usage_to_csv(usage)};
  answer.headers["content-disposition"] = "attachment; filename=\"usage-" + name + ".csv\"";
  answer.headers["x-content-type-options"] = "nosniff";
  return answer;
}

}  // namespace

void add_project_routes(Router& router, Controller& controller) {
  router.add(
      "GET", "/v1/projects", Permission::kSignedIn,
      at_once([&controller](const ApiCall& call) { return list_projects(controller, call); }));
  router.add("GET", "/v1/projects/{name}", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return get_project(controller, call); }));
  router.add(
      "GET", "/v1/projects/{name}/usage", Permission::kSignedIn,
      at_once([&controller](const ApiCall& call) { return usage_of_project(controller, call); }));
  router.add(
      "POST", "/v1/projects", Permission::kServerAdmin,
      at_once([&controller](const ApiCall& call) { return create_project(controller, call); }));
  router.add(
      "PATCH", "/v1/projects/{name}", Permission::kServerAdmin,
      at_once([&controller](const ApiCall& call) { return change_project(controller, call); }));
  router.add(
      "DELETE", "/v1/projects/{name}", Permission::kServerAdmin,
      at_once([&controller](const ApiCall& call) { return remove_project(controller, call); }));
}

namespace {

using base::Result;

RouteAnswer list_nodes(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  std::vector<job::Node> nodes = controller.nodes().list();
  for (job::Node& node : nodes) node = sight.redacted(std::move(node));
  return json_answer(200, api::nodes_to_json(nodes));
}

RouteAnswer get_node(const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(job::Node node, controller.nodes().find(call.path.at("name")));
  const Sight sight(controller, call.who);
  return json_answer(200, api::node_to_json(sight.redacted(std::move(node))));
}

using NodeChange = Result<job::Node> (NodeService::*)(const std::string& name,
                                                      const access::Actor& by);

RouteHandler changing_node(Controller& controller, NodeChange change) {
  return at_once([&controller, change](const ApiCall& call) -> RouteAnswer {
    MUSTER_TRY(const job::Node node,
               (controller.nodes().*change)(call.path.at("name"), call.actor()));
    return json_answer(200, api::node_to_json(node));
  });
}

}  // namespace

// A what-if simulation, which takes up to seconds, on another thread.

namespace {

api::WhatIf what_if_answer(const Controller::WhatIfAnswer& from) {
  api::WhatIf answer{.evictions = from.evictions, .complete = from.complete};
  for (const Controller::WhatIfJob& each : from.jobs) {
    answer.jobs.push_back({.id = each.job.id,
                           .name = each.job.name,
                           .project = each.job.project,
                           .before = each.before,
                           .after = each.after});
  }
  return answer;
}

Result<void> simulate(const Controller& controller, base::Background& background,
                      const ApiCall& call, const http::Respond& respond) {
  MUSTER_TRY(const api::WhatIfRequest request, api::what_if_request_from_json(call.request.body));
  MUSTER_TRY(auto compute, controller.what_if({.add_nodes = request.add_nodes,
                                               .like = request.like,
                                               .run_time = request.run_time}));
  const auto answer = std::make_shared<std::string>();
  background.run([compute, answer] { *answer = api::what_if_to_json(what_if_answer(compute())); },
                 [answer, respond] { respond(json_answer(200, std::move(*answer))); });
  return {};
}

}  // namespace

void add_what_if_route(Router& router, Controller& controller, base::Background& background) {
  router.add("POST", "/v1/what-if", Permission::kServerViewer,
             [&controller, &background](const ApiCall& call, const http::Respond& respond) {
               const Result<void> asked = simulate(controller, background, call, respond);
               if (!asked) respond(problem(asked.error()));
             });
}

void add_node_routes(Router& router, Controller& controller) {
  router.add("GET", "/v1/nodes", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return list_nodes(controller, call); }));
  router.add("GET", "/v1/nodes/{name}", Permission::kSignedIn,
             at_once([&controller](const ApiCall& call) { return get_node(controller, call); }));
  router.add("POST", "/v1/nodes/{name}/cordon", Permission::kServerAdmin,
             changing_node(controller, &NodeService::cordon));
  router.add("POST", "/v1/nodes/{name}/uncordon", Permission::kServerAdmin,
             changing_node(controller, &NodeService::uncordon));
  router.add("POST", "/v1/nodes/{name}/drain", Permission::kServerAdmin,
             changing_node(controller, &NodeService::drain));
}

// Machine types: the claim of a task that requests one.

void add_machine_route(Router& router, const job::MachineTypes& types) {
  router.add("GET", std::string(api::kMachineTypesPath), Permission::kSignedIn,
             at_once([&types](const ApiCall&) -> RouteAnswer {
               return json_answer(200, api::machine_types_to_json(types));
             }));
}

}  // namespace muster::server
