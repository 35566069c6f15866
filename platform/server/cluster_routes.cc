// Projects and their quotas. A quota reduces what other projects may claim, so only an admin of the
// server changes quotas.

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/cluster_wire.h"
#include "api/routes.h"
#include "api/usage.h"
#include "base/clock.h"
#include "base/turns.h"
#include "server/listed_objects.h"
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

using NamesOfProjects = std::set<std::string, std::less<>>;

/// The project and those below it that the caller sees.
NamesOfProjects with_subprojects(const Controller& controller, const Sight& sight,
                                 const std::string& name) {
  NamesOfProjects names{name};
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
  const NamesOfProjects counted = with_subprojects(controller, sight, name);
  const size_t parts = parts_of_jobs(controller);
  std::vector<api::UsageSum> sums(
      parts, api::UsageSum(query.since.value_or(until - kUsualUsageSpan), until));
  examine_parts(parts, [&](size_t part) {
    const Sight sight_of_part(controller, call.who);
    api::UsageSum& sum = sums[part];
    controller.jobs().each_job_of_part(
        false, part, parts, job::FactTexts::kNone, [&](const job::JobFacts& job) {
          const bool is_counted = sum.may_count(job) && counted.contains(job.project);
          if (is_counted && sight_of_part.sees(job)) sum.add(job);
          return true;
        });
  });
  for (size_t part = 1; part < parts; ++part) sums[0].add(sums[part]);
  const api::ProjectUsage usage = sums[0].of(name);
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

/// Simulations have a thread of their own, on which the users take turns. The state of the cluster is
/// copied when the turn of a simulation comes, so that those which wait hold no memory.
class Simulations {
 public:
  Simulations(base::EventLoop& loop, const Controller& controller)
      : controller_(controller), background_(loop) {}

  /// Responds now or later.
  void ask(const ApiCall& call, const http::Respond& respond) {
    const auto request = api::what_if_request_from_json(call.request.body);
    if (!request) return respond(problem(request.error()));
    if (turns_.waiting(call.who.user) >= kMostWaiting) return respond(too_many(call.who.user));
    turns_.add(call.who.user,
               [this,
                change = Controller::WhatIfChange{.add_nodes = request->add_nodes,
                                                  .like = request->like,
                                                  .run_time = request->run_time},
                respond, has_left = call.request.peer.has_left](base::Turns::Done done) {
                 if (has_left && has_left()) {
                   respond(left_before_its_turn());
                   return done();
                 }
                 begin(change, respond, std::move(done));
               });
  }

 private:
  static constexpr size_t kMostWaiting = 4;  ///< of one user

  void begin(const Controller::WhatIfChange& change, const http::Respond& respond,
             base::Turns::Done done) {
    auto compute = controller_.what_if(change);
    if (!compute) {
      respond(problem(compute.error()));
      return done();
    }
    const auto answer = std::make_shared<std::string>();
    background_.run([compute = *std::move(compute),
                     answer] { *answer = api::what_if_to_json(what_if_answer(compute())); },
                    [answer, respond, done = std::move(done)] {
                      respond(json_answer(200, std::move(*answer)));
                      done();
                    });
  }

  static http::Response too_many(const std::string& user) {
    constexpr int kStatus = 429;
    http::Response refusal =
        problem({.code = base::ErrorCode::kExhausted,
                 .what = "user '" + user + "' has " + std::to_string(kMostWaiting) +
                         " simulations that wait",
                 .advice = "try again when they are answered"},
                kStatus);
    refusal.headers["retry-after"] = "10";
    return refusal;
  }

  /// Most clients that have left cannot read this answer.
  static http::Response left_before_its_turn() {
    return problem({.code = base::ErrorCode::kUnavailable,
                    .what = "the client closed its side of the connection before the simulation",
                    .advice = "keep the connection open until the answer has arrived"});
  }

  const Controller& controller_;
  base::Turns turns_;  ///< by user
  base::Background background_;
};

}  // namespace

void add_what_if_route(Router& router, base::EventLoop& loop, Controller& controller) {
  const auto simulations = std::make_shared<Simulations>(loop, controller);
  router.add("POST", "/v1/what-if", Permission::kServerViewer,
             [simulations](const ApiCall& call, const http::Respond& respond) {
               simulations->ask(call, respond);
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
