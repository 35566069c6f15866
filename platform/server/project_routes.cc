#include <string>

#include "api/project_wire.h"
#include "server/answers.h"
#include "server/routes.h"

namespace muster::server {

namespace {

using base::Result;
using control::Controller;
using http::Request;
using http::Respond;
using http::Response;

Response project_answer(int status, const Result<job::ProjectStatus>& project) {
  return project ? json_answer(status, api::project_to_json(*project)) : problem(project.error());
}

Response create(Controller& controller, const Request& request) {
  const auto project = api::read_project(request.body, {});
  if (!project) return problem(project.error());
  return project_answer(201, controller.create_project(*project));
}

/// Changes what the body says and leaves the rest as it is now.
Result<job::ProjectStatus> change(Controller& controller, const Request& request,
                                  const std::string& name) {
  MUSTER_TRY(const job::ProjectStatus now, controller.project(name));
  MUSTER_TRY(job::Project changed, api::read_project(request.body, now.project));
  return controller.set_project(std::move(changed));
}

Response remove(Controller& controller, const std::string& name) {
  const auto removed = controller.remove_project(name);
  return removed ? Response{.status = 204} : problem(removed.error());
}

}  // namespace

void add_project_routes(Router& router, Controller& controller) {
  router.add("GET", "/v1/projects", [&](const Request&, const PathValues&, const Respond& respond) {
    respond(json_answer(200, api::projects_to_json(controller.projects())));
  });
  router.add("POST", "/v1/projects",
             [&](const Request& request, const PathValues&, const Respond& respond) {
               respond(create(controller, request));
             });
  router.add("GET", "/v1/projects/{name}",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(project_answer(200, controller.project(path.at("name"))));
             });
  router.add("PATCH", "/v1/projects/{name}",
             [&](const Request& request, const PathValues& path, const Respond& respond) {
               respond(project_answer(200, change(controller, request, path.at("name"))));
             });
  router.add("DELETE", "/v1/projects/{name}",
             [&](const Request&, const PathValues& path, const Respond& respond) {
               respond(remove(controller, path.at("name")));
             });
}

}  // namespace muster::server
